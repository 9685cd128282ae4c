"""What the processor does is counted by the kernel's performance events.

It samples what other code does, is a large part of the kernel within everybody's reach, and a clock
fine enough for side channels. A counter is opened and read.

Layers: seccomp alone; without it the attack arrives.

Not covered: reading the processor's own time stamp, which no call is needed for.
"""

import ctypes
import os
import struct

import native

ATTACK = {
    "title": "Performance events",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["perf_event_open(2)", "CVE-2013-2094", "CWE-200"],
    "arrives": [{"what": "state", "name": "counter-read"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "perf_event_open"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def count():
        # PERF_TYPE_SOFTWARE, the processor time of this process, without kernel and hypervisor
        head = struct.pack("2I5Q", 1, 128, 0, 0, 0, 0, 1 << 5 | 1 << 6)
        attributes = ctypes.create_string_buffer(head.ljust(128, b"\0"), 128)
        fd = native.system_call((298, 241), attributes, 0, -1, -1, 0)
        sum(range(10000))
        return struct.unpack("Q", os.read(fd, 8))[0] > 0

    if kit.do("perf_event_open", count).get("result"):
        kit.effect("counter-read")
