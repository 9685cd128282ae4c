"""A permitted host, another part of it.

One path of the host is permitted; the attacker asks for another one, plainly and by a way that leads
there once somebody resolves the dots.

Not covered: what the permitted path's own program does with its arguments.
"""

ATTACK = {
    "title": "Path that the rule does not permit",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-22", "CWE-425"],
    "arrives": [{"what": "request", "name": "docs.test", "path": "*admin*"}],
    "stopped": [
        {"reason": ["path-not-permitted"], "entry": ["transparent"], "where": {"path": "/admin/upload"}}
    ],
    "rules": "  - {proxy: docs.test, ports: [80], protocol: http, methods: [GET], paths: [/public/**]}\n",
    "reachable": ["docs.test"],
}


def attempt(kit):
    kit.talk("docs.test", 80, kit.get("/public/page", "docs.test"))
    kit.talk("docs.test", 80, kit.get("/admin/upload", "docs.test"))
    kit.talk("docs.test", 80, kit.get("/public/../admin/upload", "docs.test"))
