"""Data in echo requests (ICMP).

Many networks let pings pass unseen. Neither a raw socket nor the unprivileged kind opens inside, and
the room would drop the packet.

Layers: seccomp, with a record; without it the worker lacks the right, and the room drops what is
sent.

Not covered: ICMP errors that the kernel sends by itself; they carry nothing of the worker's choice.
"""

ATTACK = {
    "title": "Data in pings",
    "group": "roads",
    "layer": "seccomp",
    "risk": "exfiltration",
    "references": ["ATT&CK T1095", "RFC 792"],
    "arrives": [{"what": "packet", "protocol": "icmp"}],
    "stopped": [
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_INET, SOCK_DGRAM, *ICMP*"},
        },
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_INET, SOCK_DGRAM, 1)"},
        },
    ],
    "needs": ["root"],
}


def attempt(kit):
    kit.icmp("93.184.216.66")
