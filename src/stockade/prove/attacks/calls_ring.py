"""Files are written by a ring of orders, without a system call for each.

io_uring takes orders in shared memory and carries them out in the kernel: no filter sees the write,
the open or the connect. Here one order writes the word into the witness file.

Layers: seccomp alone; without it the attack arrives.

Not covered: nothing is known; the three calls are answered ENOSYS, as on a kernel without them.
"""

import mmap
import os
import struct

import native

ATTACK = {
    "title": "Orders through io_uring",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["io_uring_setup(2)", "CWE-693", "kCTF: io_uring switched off"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "io_uring_setup*"},
            "seen": ["ENOSYS"],
        }
    ],
}


def attempt(kit):
    import ctypes

    def write():
        parameters = ctypes.create_string_buffer(120)
        ring = native.system_call((425, 425), 4, parameters)
        tail, entries, array = (struct.unpack_from("<I", parameters, 40 + at)[0] for at in (4, 12, 24))
        size = array + struct.unpack_from("<I", parameters, 0)[0] * 4
        submissions = mmap.mmap(ring, size, offset=0)
        orders = mmap.mmap(ring, 4 * 64, offset=0x10000000)
        witness = os.open(kit.facts["witness"], os.O_WRONLY | os.O_CREAT, 0o666)
        text = ctypes.create_string_buffer(kit.word.encode())
        order = struct.pack("<BBHiQQII", 23, 0, 0, witness, 0, ctypes.addressof(text), len(kit.word), 0)
        orders[: len(order)] = order  # IORING_OP_WRITE
        struct.pack_into("<I", submissions, array, 0)
        struct.pack_into("<I", submissions, tail, 1)
        return native.system_call((426, 426), ring, 1, 1, 1, 0, 0) + entries * 0

    kit.do("io_uring", write)
