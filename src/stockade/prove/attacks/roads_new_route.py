"""A route of the worker's own is put into the table.

Route messages over netlink can be sent by everybody, and ordinary programs read the table so. A change
takes a right that nobody inside has.

Not covered: reading the table; it says that every address is local.
"""

import socket
import struct

ATTACK = {
    "title": "Own route by netlink",
    "group": "roads",
    "layer": "room",
    "risk": "boundary-tampering",
    "references": ["rtnetlink(7)", "ATT&CK T1599", "CWE-269"],
    "arrives": [{"what": "state", "name": "route-set"}],
    "stopped": [{"silent": ["EPERM"]}],
    "needs": ["root"],
}


def attempt(kit):
    def order(kind, flags):
        address = struct.pack("HH4s", 8, 1, socket.inet_aton("203.0.113.77"))  # RTA_DST
        # AF_INET, 32 bits, table main, by the administrator, everywhere, blackhole
        body = struct.pack("8BI", 2, 32, 0, 0, 254, 4, 0, 6, 0) + address
        message = struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as line:
            line.settimeout(2)
            line.bind((0, 0))
            line.send(message)
            code = -struct.unpack_from("i", line.recv(4096), 16)[0]
        if code:
            raise OSError(code, "netlink")
        return "done"

    if kit.do("new route", order, 24, 0x605).get("result") == "done":  # RTM_NEWROUTE
        kit.do("away again", order, 25, 5)
        kit.effect("route-set")
