"""The program by an open descriptor and no path at all.

execveat(2) with AT_EMPTY_PATH runs what a descriptor stands for; there is no name that could be
compared with a list.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: descriptors of files in memory (commands-memory-file).
"""

import os

import native

ATTACK = {
    "title": "Program by descriptor (execveat)",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["execveat(2) AT_EMPTY_PATH", "fexecve(3)"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"file": "*/dash"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    import ctypes

    def start():
        fd = os.open("/bin/sh", os.O_PATH)
        words = [b"sh", b"-c", kit.witness_script().encode(), None]
        arguments = (ctypes.c_char_p * len(words))(*words)
        native.system_call((322, 281), fd, b"", arguments, (ctypes.c_char_p * 1)(None), 0x1000)

    native.apart(kit, "execveat", start)
