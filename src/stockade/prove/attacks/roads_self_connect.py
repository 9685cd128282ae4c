"""A socket dials its own address and talks to itself.

Two SYNs that cross make a connection without any listener, so nobody accepts it and nobody could
record it. On a public address of the room that would be traffic that the gateway does not see; it is
refused and counted. In the open the host's own address is used.

Not covered: the room's loopback, which belongs to the worker.
"""

import socket
import struct

ATTACK = {
    "title": "Connection to oneself",
    "group": "roads",
    "layer": "room",
    "risk": "boundary-tampering",
    "references": ["RFC 9293 section 3.5 (simultaneous open)", "CWE-778"],
    "arrives": [{"what": "state", "name": "talked-to-itself"}],
    "stopped": [{"reason": ["own-address"], "where": {"address": "10.9.0.2", "port": "7781"}}],
}

# A connection that waits for its end would keep the port from the next try.
END_AT_ONCE = struct.pack("ii", 1, 0)


def attempt(kit):
    def talk():
        place = (kit.facts["host_address"], 7781)
        with socket.socket() as stream:
            stream.settimeout(4)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, END_AT_ONCE)
            stream.bind(place)
            stream.connect(place)
            stream.sendall(b"to myself")
            return stream.recv(100).decode()

    if kit.do("self-connect", talk).get("result") == "to myself":
        kit.effect("talked-to-itself")
