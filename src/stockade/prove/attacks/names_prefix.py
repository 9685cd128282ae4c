"""The permitted name as the end of another, without a dot between.

`notallowed.test` ends in the letters of the permitted name and is another domain, which anyone
may register. A comparison of the end that forgets the dot takes it for a name below.

Not covered: names that really are below, when a wildcard permits them.
"""

ATTACK = {
    "title": "Another domain that ends like a permitted one",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-625", "CWE-1289", "R028"],
    "rules": "  - allow: '*.allowed.test'\n    ports: [80, 443]\n",
    "zone": {"notallowed.test": {"a": ["93.184.216.66"]}},
    "arrives": [
        {"what": "request", "name": "notallowed.test"},
        {"what": "question", "name": "notallowed.test"},
    ],
    "stopped": [{"reason": ["lookalike"], "entry": ["transparent"], "where": {"name": "notallowed.test"}}],
}


def attempt(kit):
    kit.talk("notallowed.test", 80, kit.get("/", "notallowed.test"))
