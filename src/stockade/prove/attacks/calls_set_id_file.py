"""A file in the workspace gets the set-user-id bit.

The workspace belongs to somebody on the host: a program with that bit runs there with the owner's
rights, root's if root started the run. All the calls that can set it are tried: chmod, by
descriptor, and at the making of the file.

Layers: seccomp alone; without it the attack arrives.

Not covered: file capabilities, which take a right that nobody inside has.
"""

import os

ATTACK = {
    "title": "Set-user-id file left in the workspace",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["chmod(2)", "ATT&CK T1548.001", "CWE-732"],
    "arrives": [{"what": "state", "name": "set-id-file"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "chmod(0o4755)"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    path = f"{kit.folder}/left"
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    kit.do("chmod", os.chmod, path, 0o4755)
    kit.do("fchmod", lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o4755))
    kit.do("open", lambda: os.close(os.open(f"{path}2", os.O_CREAT | os.O_WRONLY, 0o4755)))
    kit.do("mknod", os.mknod, f"{path}3", 0o104755)
