"""Executable memory from /dev/zero.

Mapping the device gives fresh memory without MAP_ANONYMOUS, so a filter that looks for that word
alone does not see it.

Layers: memfd or mounts (the folder of devices may not execute either).

Not covered: other devices; there are none inside.
"""

import os

import native

ATTACK = {
    "title": "Executable memory from /dev/zero",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["zero(4)", "CWE-184"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "mmap(PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE)"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def make():
        fd = os.open("/dev/zero", os.O_RDWR)
        rights = native.READ | native.WRITE | native.EXECUTE
        native.write_by(native.put(native.mapped(rights, native.PRIVATE, fd)), kit)

    native.apart(kit, "mmap", make)
