"""A service of the neighbouring worker on the same host.

Two workers run side by side; one listens on all addresses that it has. The other tries its own
loopback, the addresses that every room has, the host's address, and the proxy. In one network
all of them lead to the neighbour.

Not covered: what two workers leave for each other at places that both policies permit.
"""

ATTACK = {
    "title": "Service of the neighbouring worker",
    "group": "internal",
    "layer": "room",
    "risk": "boundary-tampering",
    "references": ["CWE-653", "CWE-668", "R124"],
    "before": ["neighbour"],
    "arrives": [{"what": "state", "name": "neighbour-reached"}],
    "stopped": [{"silent": ["ECONNREFUSED"]}],
}


def attempt(kit):
    port = kit.facts["neighbour_port"]
    for place in ("127.0.0.1", "::1"):
        kit.talk(place, port, kit.get("/", "neighbour"), patience=0.2)
    for place in (kit.facts["host_address"], "198.18.0.1"):
        kit.talk(place, port, kit.get("/", "neighbour"), patience=0.2)
    if not kit.is_open:
        kit.talk("127.0.0.1", port, kit.get("/", "neighbour"), entry="http-proxy", patience=0.2)
