"""Beside what the policy opens inside: another network and another port of the opened name.

The policy opens one internal service by name, network and port. The name answers outside that
network, and the service's host has other ports.

Not covered: another service on the same address and port; the gateway cannot tell them apart.
"""

ATTACK = {
    "title": "Internal network beside the part that is opened",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-183", "R055"],
    "rules": "  - allow: app.corp.test\n    ports: [80, 8080]\n    protocol: http\n",
    "policy": "internal:\n  - {host: app.corp.test, networks: [10.20.0.0/24], ports: [8080]}\n",
    "zone": {
        "app.corp.test": {"ttl": 0, "sequence": [{"a": ["10.20.0.5"]}, {"a": ["10.20.1.5"]}]},
    },
    "reachable": ["app.corp.test"],
    "arrives": [
        {"what": "tcp", "address": "10.20.1.5"},
        {"what": "tcp", "address": "10.20.0.5", "port": 80},
    ],
    "stopped": [{"reason": ["private-address"], "entry": ["transparent"]}],
}


def attempt(kit):
    for port in (80, 8080):
        kit.talk("app.corp.test", port, kit.get("/admin", f"app.corp.test:{port}"))
