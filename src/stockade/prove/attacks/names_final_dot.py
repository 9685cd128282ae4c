"""A denied name with a dot at the end.

With the dot the name is the same and the text is another: a deny entry that compares text does
not match, a wildcard beside it does.

Not covered: two dots, which are no name.
"""

ATTACK = {
    "title": "Denied name with a final dot",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-1289", "CWE-42", "R018", "RFC 1034 section 3.1"],
    "rules": "  - allow: '*.test'\n    ports: [80, 443]\n  - deny: evil.test\n",
    "arrives": [
        {"what": "tcp", "address": "93.184.216.66"},
        {"what": "question", "name": "evil.test"},
    ],
    "stopped": [{"reason": ["listed-deny"], "entry": ["http-proxy"], "where": {"name": "evil.test"}}],
}

HOST = "evil.test."


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/", HOST), entry="http-proxy")
    kit.talk(HOST, 80, kit.get("/", HOST))
