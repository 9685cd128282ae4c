"""A program in a file without a name.

O_TMPFILE gives a file that was never in a folder, so nothing that watches names sees it; it is
run by a descriptor that was opened again for reading.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: files that are deleted after the start; what runs then was judged with its name.
"""

import os

import native

ATTACK = {
    "title": "Program from a file without a name",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["open(2) O_TMPFILE", "ATT&CK T1564"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"file": "*(deleted)*"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def start():
        fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
        with open("/bin/sh", "rb") as file:
            os.write(fd, file.read())
        readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        os.close(fd)
        os.execve(readable, ["sh", "-c", kit.witness_script()], {})

    native.apart(kit, "O_TMPFILE", start)
