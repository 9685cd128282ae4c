"""A program's table inside the kernel.

bpf(2) makes tables and programs that the kernel itself keeps and runs. A value is put into a table
and read back from there.

Layers: seccomp, with a record; without it the worker still lacks the right to it, and nobody
records the try.

Not covered: filters of the old kind on the worker's own sockets, which programs use and which see
only what the worker sees anyway.
"""

import ctypes
import struct

import native

ATTACK = {
    "title": "Table in the kernel (bpf)",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["bpf(2)", "CVE-2021-3490", "ATT&CK T1014"],
    "arrives": [{"what": "state", "name": "kernel-table"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "bpf"},
            "seen": ["EPERM"],
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    def order(number, *numbers):
        attributes = ctypes.create_string_buffer(struct.pack(*numbers).ljust(128, b"\0"), 128)
        return native.system_call((321, 280), number, attributes, 128)

    def keep():
        table = order(0, "5I", 2, 4, 8, 1, 0)  # BPF_MAP_CREATE of an array with one entry
        key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(kit.word[:8].encode(), 8)
        found = ctypes.create_string_buffer(8)
        order(2, "QQQQ", table, ctypes.addressof(key), ctypes.addressof(value), 0)
        order(1, "QQQQ", table, ctypes.addressof(key), ctypes.addressof(found), 0)
        return found.raw == value.raw

    if kit.do("bpf", keep).get("result"):
        kit.effect("kernel-table")
