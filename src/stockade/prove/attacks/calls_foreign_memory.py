"""The memory of another process is read.

The other process makes a secret after the fork and tells only its digest; who can say the secret
afterwards has read it out of its memory. So one program would have what was given to another.

Layers: seccomp alone; without it the attack arrives.

Not covered: /proc/PID/mem, which asks the same permission and is read like a file: between the
worker's own processes it is open for reading.
"""

import ctypes
import hashlib
import os
import struct

import native

ATTACK = {
    "title": "Memory of another process read",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["process_vm_readv(2)", "ATT&CK T1003.007"],
    "arrives": [{"what": "state", "name": "memory-read"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "process_vm_readv(*"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    place = ctypes.create_string_buffer(32)  # at the same address in the child

    def read():
        come, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            place.raw = os.urandom(32)
            os.write(go, hashlib.sha256(place.raw).digest())
            native.libc.pause()
        digest = os.read(come, 32)
        own = ctypes.create_string_buffer(32)
        local, remote = (struct.pack("2Q", ctypes.addressof(buffer), 32) for buffer in (own, place))
        try:
            native.system_call((310, 270), pid, local, 1, remote, 1, 0)
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        return hashlib.sha256(own.raw).digest() == digest

    if kit.do("process_vm_readv", read).get("result"):
        kit.effect("memory-read")
