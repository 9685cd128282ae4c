"""Internal services by their private addresses.

A worker that guesses or scans 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, carrier-grade space and
unique local IPv6 finds what stands beside its host: admin pages, databases, other tenants.

Not covered: internal services on public addresses, which only a list of names keeps closed.
"""

ATTACK = {
    "title": "Internal services by private address",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "R085", "RFC 1918", "RFC 6598", "RFC 4193"],
    "arrives": [
        {"what": "tcp", "address": "10.20.0.5"},
        {"what": "tcp", "address": "172.16.9.9"},
        {"what": "tcp", "address": "192.168.1.1"},
        {"what": "tcp", "address": "100.64.0.1"},
        {"what": "tcp", "address": "fd12:3456::9"},
    ],
    "stopped": [
        {
            "reason": ["private-address"],
            "entry": ["transparent"],
            "where": {"address": "10.20.0.5", "port": "8080"},
        },
    ],
}

PLACES = ("10.20.0.5", "172.16.9.9", "192.168.1.1", "100.64.0.1", "fd12:3456::9")


def attempt(kit):
    for place in PLACES:
        kit.talk(place, 8080, kit.get("/admin", f"[{place}]" if ":" in place else place))
