"""A WebSocket to a place that permits requests only.

The policy lets the worker read from `provider.test` under inspection. After an upgrade nobody
inspects anything: both sides send frames for as long as they like.

Not covered: WebSockets that the policy permits, and those inside TLS.
"""

ATTACK = {
    "title": "WebSocket where only requests are permitted",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 6455 section 4", "R099", "CWE-441"],
    "rules": "  - proxy: provider.test\n    ports: [80]\n    methods: [GET]\n",
    "reachable": ["provider.test"],
    "arrives": [{"what": "request", "name": "provider.test", "path": "/ws"}],
    "stopped": [{"reason": ["upgrade-not-permitted"], "entry": ["transparent"]}],
}


def attempt(kit):
    upgrade = "GET /ws HTTP/1.1\r\nHost: provider.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = "Sec-WebSocket-Key: cmFuZ2Utc29ja2V0LWtleQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    kit.talk("provider.test", 80, upgrade + key, patience=0.1)
