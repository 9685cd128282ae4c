"""A listener of the worker's own on somebody else's address.

Every address is local in the room, so one can be bound; if a connection to it came to that listener,
the worker could play the server for others in the room and talk past the gateway. In the open the
host's own address is used.

Not covered: listeners on loopback, which belong to the worker.
"""

import select
import socket

ATTACK = {
    "title": "Own listener on a foreign address",
    "group": "roads",
    "layer": "gateway",
    "risk": "boundary-tampering",
    "references": ["CWE-940", "ip(7) IP_FREEBIND", "ATT&CK T1557"],
    "arrives": [{"what": "state", "name": "own-listener-reached"}],
    "stopped": [
        {
            "reason": ["own-address"],
            "entry": ["transparent"],
            "where": {"address": "10.9.0.2", "port": "7782"},
        }
    ],
}


def attempt(kit):
    def talk():
        place = (kit.facts["host_address"], 7782)
        with socket.socket() as listener:
            listener.bind(place)
            listener.listen()
            with socket.create_connection(place, 4) as stream:
                stream.sendall(b"to my listener")
                if listener not in select.select([listener, stream], [], [], 0.5)[0]:
                    return "nobody came"
                return listener.accept()[0].recv(100).decode()

    if kit.do("own listener", talk).get("result") == "to my listener":
        kit.effect("own-listener-reached")
