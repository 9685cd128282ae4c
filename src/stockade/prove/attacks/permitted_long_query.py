"""Data in the query of a read.

A GET without a body looks harmless, and its query carries what one likes. The rule limits the length.

Not covered: many short queries; the record has the length of each.
"""

ATTACK = {
    "title": "Data in a long query",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1041", "EchoLeak CVE-2025-32711", "CWE-201"],
    "arrives": [{"what": "request", "name": "docs.test", "path": "/search?*"}],
    "stopped": [{"reason": ["query-too-long"], "entry": ["transparent"], "where": {"name": "docs.test"}}],
    "rules": "  - {proxy: docs.test, ports: [80], protocol: http, methods: [GET], max-query: 64}\n",
    "reachable": ["docs.test"],
}


def attempt(kit):
    kit.talk("docs.test", 80, kit.get("/search?q=" + "data" * 200, "docs.test"))
