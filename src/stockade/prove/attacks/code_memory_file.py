"""Code in a memory file that is mapped and called, without execve.

The memfd is sealed against execve (MFD_NOEXEC_SEAL), which is what a careful filter asks for; the
mapping runs all the same.

Layers: memfd alone; without it the attack arrives.

Not covered: `code: jit`, where this is permitted.
"""

import os

import native

ATTACK = {
    "title": "Code mapped from a memory file",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["memfd_create(2) MFD_NOEXEC_SEAL", "ATT&CK T1620"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "memfd_create(MFD_NOEXEC_SEAL)"},
            "seen": ["ENOSYS"],
        }
    ],
}


def attempt(kit):
    def make():
        fd = os.memfd_create("x", 8)
        os.write(fd, native.CODE.ljust(native.PAGE, b"\0"))
        native.write_by(native.mapped(native.READ | native.EXECUTE, native.PRIVATE, fd), kit)

    native.apart(kit, "memfd", make)
