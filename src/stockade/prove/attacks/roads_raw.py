"""Packets of an IP protocol that has no ports.

A raw socket sends whatever protocol number it likes; firewalls that name TCP, UDP and ICMP let the
others pass. It does not open inside.

Layers: seccomp, with a record; without it the worker lacks the right, and the room drops what is
sent.

Not covered: raw sockets with headers of one's own choice; they need the same socket.
"""

ATTACK = {
    "title": "Raw packets of another IP protocol",
    "group": "roads",
    "layer": "seccomp",
    "risk": "exfiltration",
    "references": ["raw(7)", "ATT&CK T1095", "RFC 3692 protocol 253"],
    "arrives": [{"what": "packet", "protocol": "253"}],
    "stopped": [
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_INET, SOCK_RAW, 253)"},
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    kit.raw("93.184.216.66", 253)
