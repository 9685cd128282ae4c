"""Names asked of everybody on the link: multicast DNS, LLMNR, NetBIOS.

Nobody has to be configured: whoever stands on the link hears the name that is asked for, and may
answer it with an address of his own.

Not covered: listeners inside the room, where only the worker is. The room's kernel has no road for
such a packet and tells nobody, so there is no record: the error that the worker sees is the proof.
"""

ATTACK = {
    "title": "Names asked by multicast",
    "group": "dns",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["RFC 6762 section 3", "RFC 4795", "ATT&CK T1557.001"],
    "arrives": [
        {"what": "packet", "protocol": "udp", "port": 5353},
        {"what": "packet", "protocol": "udp", "port": 5355},
    ],
    "stopped": [{"silent": ["EINVAL"]}],
}


def attempt(kit):
    import wire

    message = wire.text(wire.dns_message(wire.question(f"{kit.word}.local")))
    kit.udp("224.0.0.251", 5353, message, patience=0.1)
    kit.udp("224.0.0.252", 5355, message, patience=0.1)
