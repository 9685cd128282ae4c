"""A program in a memory file, which lies on no mount and in no folder.

The content is copied into a memfd and run by its descriptor: nothing is on a disk, so noexec
mounts and path rules have nothing to say. With the layer `memfd` given up the eye still refuses
the command, since a memory file is not a permitted one.

Layers: memfd or notify; mounts and landlock say nothing about memory.

Not covered: code that is mapped and called without execve (code-memory-file).
"""

import os

ATTACK = {
    "title": "Program from a memory file",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["memfd_create(2)", "ATT&CK T1620", "MFD_NOEXEC_SEAL"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "memfd_create(*"},
            "seen": ["ENOSYS"],
        }
    ],
}


def attempt(kit):
    import native

    def start():
        fd = os.memfd_create("x", 0)
        with open("/bin/sh", "rb") as file:
            os.write(fd, file.read())
        os.execve(fd, ["sh", "-c", kit.witness_script()], {})

    native.apart(kit, "memfd", start)
