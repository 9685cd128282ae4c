"""The worker gives its packets the mark by which the gateway's are let pass.

All that the gateway's sockets send in the room carries a mark. Setting one takes a right over the
network namespace, which nobody inside has; the connection that follows is judged like any other.

Not covered: marks that the host's own firewall uses; no packet of the room gets there.
"""

import socket

ATTACK = {
    "title": "The gateway's mark on the worker's packets",
    "group": "roads",
    "layer": "gateway",
    "risk": "boundary-tampering",
    "references": ["socket(7) SO_MARK", "CWE-290"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["transparent"],
            "where": {"address": "93.184.216.66"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def mark(stream, value):
        stream.setsockopt(socket.SOL_SOCKET, 36, value)

    def dial(stream):
        stream.settimeout(4)
        stream.connect(("93.184.216.66", 80))
        stream.sendall(kit.get("/marked", "93.184.216.66").encode())
        return stream.recv(200).decode("latin-1")

    with socket.socket() as stream:
        for value in (0x53, 1, -1):
            kit.do("mark", mark, stream, value)
        kit.do("dial", dial, stream)
