"""An abstract Unix socket of the host, which has no file.

No mount hides such a name; it belongs to the network namespace. D-Bus, X11 and container shims use
them. The family of the socket is given with a higher bit set, which the kernel does not read.

Layers: seccomp, with a record; without it the room, in which the name does not exist.

Not covered: `exec: {unix-sockets: true}`, where the worker's own abstract names work and the host's
are in another namespace.
"""

import os
import struct

import native

ATTACK = {
    "title": "Abstract Unix socket of the host",
    "group": "roads",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["unix(7)", "CVE-2020-15257", "CWE-184"],
    "arrives": [{"what": "host", "name": "abstract"}],
    "stopped": [
        {
            "reason": ["control-socket"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_UNIX+0x100000000*"},
            "seen": ["EAFNOSUPPORT"],
        }
    ],
}


def attempt(kit):
    def dial():
        fd = native.system_call((41, 198), 1 | 1 << 32, 1, 0)
        name = b"\0" + kit.facts["abstract"][1:].encode()
        address = struct.pack("H", 1) + name
        native.system_call((42, 203), fd, address, len(address))
        os.write(fd, b"from the worker\n")
        return os.read(fd, 100).decode("latin-1")

    kit.do("abstract", dial)
