"""The worker chooses the address that its packets come from.

A gateway that trusts sources (its own, the resolver's, another worker's) is deceived so, and answers
go astray. The address here is the host's own. The gateway does not look at it.

Not covered: sources in packets that the worker writes itself, for which it lacks the socket (roads-raw).
"""

import socket

ATTACK = {
    "title": "Source address of one's choice",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "RFC 2827"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "93.184.216.66"}}
    ],
}


def attempt(kit):
    def dial():
        with socket.socket() as stream:
            stream.settimeout(4)
            stream.bind((kit.facts["host_address"], 0))
            stream.connect(("93.184.216.66", 80))
            stream.sendall(kit.get("/source", "93.184.216.66").encode())
            return stream.recv(200).decode("latin-1")

    kit.do("source", dial)
