"""The metadata service inside a 6to4 address.

A 6to4 address carries an IPv4 address behind 2002::/16, at another place than mapped and NAT64
do. To a table that knows only those it is ordinary global IPv6.

Not covered: whether a relay exists on the way; the range shows that the packet was sent to one.
"""

ATTACK = {
    "title": "Metadata service through 6to4",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "RFC 3056 section 2", "RFC 7526"],
    "arrives": [{"what": "tcp", "address": "2002:a9fe:a9fe::1"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"risk": "metadata-credentials", "address": "2002:a9fe:a9fe::1"},
        },
    ],
}


def attempt(kit):
    kit.talk("2002:a9fe:a9fe::1", 80, kit.get("/latest/meta-data/", "169.254.169.254"))
