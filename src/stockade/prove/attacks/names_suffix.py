"""The permitted name as the beginning of another.

`allowed.test.evil.test` belongs to evil.test. A pattern without an end, or a comparison of the
beginning, takes it for the permitted one; so does a person who reads a log in a hurry.

Not covered: names below the permitted one, which an exact rule does not cover either
(technique dns-below-permitted).
"""

ATTACK = {
    "title": "Permitted name in front of another domain",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-625", "CWE-777", "R027"],
    "arrives": [
        {"what": "request", "name": "allowed.test.evil.test"},
        {"what": "question", "name": "allowed.test.evil.test"},
    ],
    "stopped": [
        {"reason": ["lookalike"], "entry": ["transparent"], "where": {"name": "allowed.test.evil.test"}}
    ],
}


def attempt(kit):
    kit.talk("allowed.test.evil.test", 80, kit.get("/", "allowed.test.evil.test"))
