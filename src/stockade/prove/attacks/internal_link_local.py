"""Routers and agents on the link itself.

169.254.0.0/16 and fe80::/10 need no route: whatever stands on the same link answers there,
unknown to any list. IPv6 adds a zone to the address, `fe80::1%lo`, which parsers cut off,
keep or choke on.

Not covered: what is asked of the whole link by multicast (technique roads-multicast).
"""

ATTACK = {
    "title": "Machines on the same link by link-local address",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "RFC 3927", "RFC 4291 section 2.5.6", "RFC 6874"],
    "arrives": [{"what": "tcp", "address": "169.254.1.1"}],
    "stopped": [{"reason": ["link-local-address"], "entry": ["transparent"]}],
}


def attempt(kit):
    kit.talk("169.254.1.1", 80, kit.get("/", "169.254.1.1"))
    kit.talk("fe80::1%lo", 80, kit.get("/", "[fe80::1%25lo]"))
    kit.talk("fe80::1%lo", 80, kit.get("/", "[fe80::1]"), entry="http-proxy")
