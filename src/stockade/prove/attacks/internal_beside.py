"""Beside what the policy opens inside: another network and another port of the opened name.

The policy opens one internal name, network and port. The attack asks for the name's other port,
and for a second opened name that answers just outside the network.

Not covered: another service on the same address and port; the gateway cannot tell them apart.
"""

ATTACK = {
    "title": "Internal network beside the part that is opened",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-183", "R055"],
    "rules": "  - allow: '*.corp.test'\n    ports: [80, 8080]\n    protocol: http\n",
    "policy": (
        "internal:\n"
        "  - {host: app.corp.test, networks: [10.20.0.0/24], ports: [8080]}\n"
        "  - {host: moved.corp.test, networks: [10.20.0.0/24], ports: [8080]}\n"
    ),
    "zone": {"app.corp.test": {"a": ["10.20.0.5"]}, "moved.corp.test": {"a": ["10.20.1.0"]}},
    "reachable": ["app.corp.test", "moved.corp.test"],
    "arrives": [
        {"what": "tcp", "address": "10.20.1.0"},
        {"what": "tcp", "address": "10.20.0.5", "port": 80},
    ],
    "stopped": [
        {
            "reason": ["private-address"],
            "entry": ["transparent"],
            "where": {"name": "moved.corp.test", "address": "10.20.1.0"},
        },
    ],
}


def attempt(kit):
    kit.talk("app.corp.test", 80, kit.get("/admin", "app.corp.test"))
    kit.talk("moved.corp.test", 8080, kit.get("/admin", "moved.corp.test:8080"))
