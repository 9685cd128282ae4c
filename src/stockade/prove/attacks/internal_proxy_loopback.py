"""The host's loopback through the proxy entry.

A proxy dials from where it stands. Asked for 127.0.0.1 or `localhost`, it reaches the services
of its own machine for a client that could not.

Not covered: a proxy that the operator runs elsewhere; its own machine is its own affair.
"""

ATTACK = {
    "title": "Services on the loopback of the host through the proxy",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-441", "R034"],
    "arrives": [{"what": "host", "name": "loopback"}, {"what": "host", "name": "loopback6"}],
    "stopped": [{"reason": ["loopback-address"], "entry": ["http-proxy"]}],
}


def attempt(kit):
    port = kit.facts["service_port"]
    for place in ("127.0.0.1", "::1", "localhost"):
        said = kit.talk(place, port, kit.get("/", "localhost"), entry="http-proxy")
        if not said.get("connect"):  # no proxy on this host: without a policy it would dial what we dial
            kit.talk(place, port, kit.get("/", "localhost"))
