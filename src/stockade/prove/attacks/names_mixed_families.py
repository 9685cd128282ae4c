"""A permitted name whose IPv4 answer is good and whose IPv6 answer is the metadata service.

The A answer is public; the AAAA answer is the IPv4-mapped form of the metadata address. A guard
that judges one family leaves the other, and clients prefer IPv6.

Not covered: names that have answers in one family only.
"""

ATTACK = {
    "title": "Good IPv4 and bad IPv6 answer of one name",
    "group": "names",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-350", "R030", "R051", "RFC 6724"],
    "rules": "  - allow: mixed6.test\n    ports: [80]\n",
    "reachable": ["mixed6.test"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "mixed6.test"},
        }
    ],
}


def attempt(kit):
    for address in kit.resolve("mixed6.test").get("addresses", []):
        kit.talk(address, 80, kit.get("/", "mixed6.test"))
