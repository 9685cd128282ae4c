"""The host under a permitted name that answers with its own address, opened by mistake.

The policy even has an `internal:` entry for the network in which the host stands, as one for a
whole office network would. Its own address must stay closed all the same: behind it are the
services that trust the machine, and the gateway itself.

Not covered: other machines of that network; the entry opens them on purpose.
"""

ATTACK = {
    "title": "Services of the host by a permitted and opened name",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-183", "R014"],
    "rules": "  - allow: host.test\n    ports: [7777]\n    protocol: http\n",
    "policy": "internal:\n  - {host: host.test, networks: [10.9.0.0/24], ports: [7777]}\n",
    "reachable": ["host.test"],
    "arrives": [{"what": "host", "name": "own-address"}],
    "stopped": [{"reason": ["own-address"], "entry": ["transparent"], "where": {"name": "host.test"}}],
}


def attempt(kit):
    kit.talk("host.test", kit.facts["service_port"], kit.get("/", "host.test:7777"))
