"""The program is started by posix_spawn with vfork, not by fork and execve.

Filters that hook the wrappers of a language or of the C library miss the other ways to the same
call. All of them end in the kernel's execve, where Stockade stands.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: calls by another calling convention (calls-int80, calls-x32).
"""

import os

ATTACK = {
    "title": "Program by posix_spawn",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["posix_spawn(3)", "ATT&CK T1106"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "/usr/bin/dash"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def spawn():
        program = os.path.realpath("/bin/sh")
        return os.waitpid(os.posix_spawn(program, ["sh", "-c", kit.witness_script()], {}), 0)[1]

    kit.do("posix_spawn", spawn)
