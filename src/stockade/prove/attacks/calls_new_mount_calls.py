"""The same through the newer calls for mounts.

fsopen, fsconfig, fsmount and move_mount replace mount(2) step by step; a filter that names the old
one alone is passed.

Layers: seccomp, with a record; without it the worker still lacks the right to it, and nobody
records the try.

Not covered: calls that came after the filter's table, which get ENOSYS by their number.
"""

import os

import native

ATTACK = {
    "title": "Mount by the newer calls",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["fsopen(2)", "CVE-2022-0185", "CWE-184"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "fsopen"},
            "seen": ["EPERM"],
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    def cover():
        if kit.is_open:
            native.system_call((272, 97), 0x20000)
        context = native.system_call((430, 430), b"tmpfs", 0)
        native.system_call((431, 431), context, 6, 0, 0, 0)  # fsconfig, FSCONFIG_CMD_CREATE
        folder = native.system_call((432, 432), context, 0, 0)  # fsmount: a folder without a place
        with open("/bin/sh", "rb") as shell:
            fd = os.open("sh", os.O_WRONLY | os.O_CREAT, 0o755, dir_fd=folder)
            os.write(fd, shell.read())
            os.close(fd)
        program = os.open("sh", os.O_RDONLY, dir_fd=folder)
        os.execve(program, ["sh", "-c", kit.witness_script()], {})

    native.apart(kit, "fsopen", cover)
