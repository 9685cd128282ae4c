"""A listener of the worker's own on somebody else's address.

Every address is local in the room, so one can be bound; if a connection to it came to that listener,
the worker could play the server for others in the room and talk past the gateway. In the open the
host's own address is used.

Not covered: listeners on loopback, which belong to the worker.
"""

import select
import socket
import struct

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

# A connection that waits for its end would keep the port from the next try.
END_AT_ONCE = struct.pack("ii", 1, 0)


def attempt(kit):
    def talk():
        place = (kit.facts["host_address"], 7782)
        with socket.socket() as listener:
            listener.bind(place)
            listener.listen()
            with socket.create_connection(place, 4) as stream:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, END_AT_ONCE)
                stream.sendall(b"to my listener")
                if listener not in select.select([listener, stream], [], [], 0.5)[0]:
                    return "nobody came"
                return listener.accept()[0].recv(100).decode()

    if kit.do("own listener", talk).get("result") == "to my listener":
        kit.effect("own-listener-reached")
