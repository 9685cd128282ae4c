"""The kernel is made to wait in the middle of a copy for as long as one likes.

userfaultfd(2) hands a page fault to a program; most exploits of races in the kernel use it. The
handshake shows that it can be used.

Layers: seccomp alone; without it the attack arrives.

Not covered: FUSE, which can be used alike and takes a mount.
"""

import ctypes
import fcntl
import struct

import native

ATTACK = {
    "title": "Page faults taken over (userfaultfd)",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["userfaultfd(2)", "CVE-2022-2588", "CWE-362"],
    "arrives": [{"what": "state", "name": "faults-taken"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "userfaultfd"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def take():
        fd = native.system_call((323, 282), 1)  # UFFD_USER_MODE_ONLY, which every user may
        hello = ctypes.create_string_buffer(struct.pack("QQQ", 0xAA, 0, 0))
        fcntl.ioctl(fd, 0xC018AA3F, hello)  # UFFDIO_API
        return bool(struct.unpack_from("Q", hello, 16)[0])

    if kit.do("userfaultfd", take).get("result"):
        kit.effect("faults-taken")
