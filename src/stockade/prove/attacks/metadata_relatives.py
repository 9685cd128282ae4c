"""Metadata services of other clouds and of containers, at addresses of their own.

100.100.100.200 lies in carrier-grade space, 192.0.0.192 in protocol assignments, 169.254.170.2
beside the well-known address: a guard for 169.254.169.254 alone knows none of them.

Not covered: clouds that the address table does not name; all these ranges are closed anyway.
"""

ATTACK = {
    "title": "Metadata services of other clouds and of containers",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "R039", "RFC 6598", "RFC 6890"],
    "arrives": [
        {"what": "tcp", "address": "100.100.100.200"},
        {"what": "tcp", "address": "192.0.0.192"},
        {"what": "tcp", "address": "169.254.170.2"},
    ],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"risk": "metadata-credentials", "address": "100.100.100.200"},
        },
    ],
}


def attempt(kit):
    for place in ("100.100.100.200", "192.0.0.192", "169.254.170.2"):
        kit.talk(place, 80, kit.get("/latest/meta-data/", place))
