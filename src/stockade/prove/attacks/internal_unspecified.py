"""The host's loopback by the address that means "none".

A connect to 0.0.0.0 or to [::] reaches the own machine, and so passes a guard that only knows
127.0.0.0/8. At a proxy the own machine is the proxy's, which is the host.

Not covered: the room's own loopback, which the worker reaches this way and which is its own.
"""

ATTACK = {
    "title": "Services of the host by the unspecified address",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-183", "RFC 1122 section 3.2.1.3"],
    "arrives": [{"what": "host", "name": "loopback"}, {"what": "host", "name": "loopback6"}],
    "stopped": [{"reason": ["reserved-address"], "entry": ["http-proxy"]}],
}


def attempt(kit):
    port = kit.facts["service_port"]
    for place in ("0.0.0.0", "::"):
        kit.talk(place, port, kit.get("/", "localhost"))
        kit.talk(place, port, kit.get("/", "localhost"), entry="http-proxy")
