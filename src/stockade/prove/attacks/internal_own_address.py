"""The host by its own addresses on the network.

What the host serves to its neighbours is usually open to itself, past the firewall that stands
in front of it. The worker learns the address from any route table, log or guess.

Not covered: another address of the same machine in another namespace, which is not the
gateway's own.
"""

ATTACK = {
    "title": "Services of the host by its own address",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "R085"],
    "arrives": [{"what": "host", "name": "own-address"}, {"what": "host", "name": "own-address6"}],
    "stopped": [{"reason": ["own-address"], "entry": ["transparent"]}],
}


def attempt(kit):
    port = kit.facts["service_port"]
    for place in (kit.facts["host_address"], kit.facts["host_address6"]):
        kit.talk(place, port, kit.get("/", "host"))
        kit.talk(place, port, kit.get("/", "host"), entry="http-proxy")
