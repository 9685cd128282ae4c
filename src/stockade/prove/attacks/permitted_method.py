"""A permitted place, asked to change something.

The rule lets documentation be read; the same host takes uploads by PUT, and deletions.

Not covered: reads that change something by themselves.
"""

ATTACK = {
    "title": "Method that the rule does not permit",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-650", "ATT&CK T1567"],
    "arrives": [{"what": "request", "name": "docs.test", "path": "/changed*"}],
    "stopped": [{"reason": ["method-not-permitted"], "entry": ["transparent"], "where": {"method": "PUT"}}],
    "rules": "  - {proxy: docs.test, ports: [80], protocol: http, methods: [GET]}\n",
    "reachable": ["docs.test"],
}


def attempt(kit):
    kit.talk("docs.test", 80, kit.get("/read", "docs.test"))
    kit.talk("docs.test", 80, kit.get("/changed", "docs.test", "PUT", body=f"left {kit.word}"))
    kit.talk(
        "docs.test",
        80,
        kit.get("/changed", "docs.test", headers=("X-HTTP-Method-Override: PUT",), method="DELETE"),
    )
