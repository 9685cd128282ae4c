"""A denied name in other letter case.

Names know no case, text does: a deny entry that compares bytes lets `EVIL.test` through where a
wildcard permits the rest. Letter case must not close a permitted name either; the tests show it.

Not covered: letters outside ASCII, whose folding is a trick of its own.
"""

ATTACK = {
    "title": "Denied name in other letter case",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-178", "R020", "RFC 4343"],
    "rules": "  - allow: '*.test'\n    ports: [80, 443]\n  - deny: evil.test\n",
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["listed-deny"], "entry": ["socks5"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    kit.talk("EVIL.Test", 80, kit.get("/", "EVIL.Test"), entry="socks5", as_name=True)
    kit.talk("eViL.tEsT", 443, kit.get("/", "eViL.tEsT"), sni="eViL.tEsT")
