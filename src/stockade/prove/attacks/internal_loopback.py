"""The host's own loopback, dialled directly.

Development servers, agents and databases listen on 127.0.0.1 and ::1 of the host and trust whoever
reaches them. A worker that shares the host's network reaches them too.

Not covered: what listens on the loopback of the worker's own room belongs to the worker.
"""

ATTACK = {
    "title": "Services on the loopback of the host",
    "group": "internal",
    "layer": "room",
    "risk": "ssrf",
    "references": ["CWE-918", "R034", "RFC 1122 section 3.2.1.3"],
    "arrives": [{"what": "host", "name": "loopback"}, {"what": "host", "name": "loopback6"}],
    "stopped": [{"silent": ["ECONNREFUSED"]}],
}


def attempt(kit):
    for place in ("127.0.0.1", "::1", "127.8.8.8"):
        kit.talk(place, kit.facts["service_port"], kit.get("/", "localhost"))
