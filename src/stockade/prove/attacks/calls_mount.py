"""Something is mounted over what the worker sees.

A mount covers a read-only file, brings back what was hidden, or opens a folder that may execute.
Here a tmpfs in a private mount namespace; a program is copied there and run.

Layers: seccomp, with a record; without it the worker still lacks the right to it, and nobody
records the try.

Not covered: mounts that the host makes later; they do not appear inside.
"""

import os

import native

ATTACK = {
    "title": "Mount",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["mount(2)", "ATT&CK T1611"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "mount"},
            "seen": ["EPERM"],
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    def cover():
        place = f"{kit.folder}/mounted"
        os.mkdir(place)
        if kit.is_open:  # so that nothing of the host is changed
            native.system_call((272, 97), 0x20000)
            native.checked(native.libc.mount(b"none", b"/", None, 0x4000 | 1 << 18, None), "private")
        native.checked(native.libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, None), "mount")
        program = native.copy_of_shell(f"{place}/sh")
        os.execv(program, ["sh", "-c", kit.witness_script()])

    native.apart(kit, "mount", cover)
