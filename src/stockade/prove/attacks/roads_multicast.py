"""A word to all neighbours: multicast DNS and broadcast.

Discovery protocols reach whoever listens on the link, and some devices answer with more than their
name. No packet leaves the room's loopback.

Not covered: devices that the host itself asks.
"""

import socket

ATTACK = {
    "title": "Multicast to the host's neighbours",
    "group": "roads",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["RFC 6762", "ATT&CK T1557.001"],
    "arrives": [
        {"what": "packet", "protocol": "udp", "address": "224.0.0.251"},
        {"what": "udp", "address": "224.0.0.251"},
    ],
    "stopped": [{"reason": ["reserved-address"], "entry": ["udp"], "where": {"address": "224.0.0.251"}}],
}


def attempt(kit):
    def shout():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            if kit.is_open:
                sender.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton(kit.facts["host_address"]))
            return sender.sendto(f"to all {kit.word}".encode(), ("224.0.0.251", 5353))

    kit.do("multicast", shout)
