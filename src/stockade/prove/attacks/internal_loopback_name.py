"""A permitted name that answers with a loopback address.

`localtest.me` and its likes: anyone can own a name that resolves to 127.0.0.1. The gateway
stands on the host, so its loopback is the host's, and a guard that exempts loopback "because it
is local" opens every service there.

Not covered: a loopback service that an `internal:` entry opens by name and port.
"""

ATTACK = {
    "title": "Services on the loopback of the host by a permitted name",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-350", "R034"],
    "rules": (
        "  - allow: loop.test\n    ports: [7777]\n    protocol: http\n"
        "  - allow: loop6.test\n    ports: [7777]\n    protocol: http\n"
    ),
    "reachable": ["loop.test", "loop6.test"],
    "arrives": [{"what": "host", "name": "loopback"}, {"what": "host", "name": "loopback6"}],
    "stopped": [{"reason": ["loopback-address"], "entry": ["transparent"], "where": {"name": "loop*.test"}}],
}


def attempt(kit):
    for name in ("loop.test", "loop6.test"):
        kit.talk(name, kit.facts["service_port"], kit.get("/", f"{name}:7777"))
