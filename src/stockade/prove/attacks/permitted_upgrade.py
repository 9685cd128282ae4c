"""A permitted request becomes a raw pipe.

After `Upgrade: websocket` there are no more requests that could be judged: whatever is sent goes
through. The rule names no upgrade, so none is let through.

Not covered: rules that permit it, and tunnels (`allow`), which are raw pipes anyway.
"""

ATTACK = {
    "title": "Request upgraded to a raw pipe",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 6455", "CVE-2020-11724", "CWE-444"],
    "arrives": [{"what": "request", "name": "docs.test", "path": "/ws*"}],
    "stopped": [
        {"reason": ["upgrade-not-permitted"], "entry": ["transparent"], "where": {"name": "docs.test"}}
    ],
    "rules": "  - {proxy: docs.test, ports: [80], protocol: http, methods: [GET]}\n",
    "reachable": ["docs.test"],
}


def attempt(kit):
    headers = (
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    request = kit.get("/ws", "docs.test", headers=headers).replace("Connection: close", "Connection: Upgrade")
    kit.talk("docs.test", 80, request, patience=0.3)
