"""An open file of another process is taken over.

pidfd_getfd(2) copies a descriptor out of another process: a connection, a pipe or a file that only
that one was given. Here the end of a pipe that the attacker has closed himself; what comes out of
it shows that he has it.

Layers: seccomp alone; without it the attack arrives.

Not covered: descriptors that are inherited by a fork, which belong to both; /proc/PID/fd, through which
files and pipes (not sockets) of the worker's own processes can be opened again.
"""

import os

import native

ATTACK = {
    "title": "Descriptor of another process taken",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["pidfd_getfd(2)", "CWE-403"],
    "arrives": [{"what": "state", "name": "descriptor-taken"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "pidfd_getfd"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def take():
        come, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(go, b"theirs")
            native.libc.pause()
        os.close(go)
        os.set_blocking(come, True)
        number = come
        os.close(come)
        try:
            taken = native.system_call((438, 438), os.pidfd_open(pid), number, 0)
            return os.read(taken, 10).decode()
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)

    if kit.do("pidfd_getfd", take).get("result") == "theirs":
        kit.effect("descriptor-taken")
