"""A process writes code into another one as its tracer.

A tracer writes into memory whatever its protection, so it needs no memory that is writable and
executable. The traced child then calls that code, which leaves the word.

Layers: seccomp alone; without it the attack arrives.

Not covered: what a process does to itself (code-own-memory-file).
"""

import os
import sys

import native

ATTACK = {
    "title": "Code written into another process (ptrace)",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["ptrace(2)", "ATT&CK T1055.008"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "ptrace(PTRACE_ATTACH*"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def trace(request, pid, at=0, word=0):
        native.system_call((101, 117), request, pid, at, word)

    def poke():
        at = native.own_function()
        come, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(come, 1)
            native.write_by(at, kit)
            os._exit(0)
        try:
            trace(16, pid)  # PTRACE_ATTACH
            os.waitpid(pid, 0)
            for offset in range(0, len(native.CODE), 8):
                part = native.CODE[offset : offset + 8].ljust(8, b"\0")
                trace(4, pid, at + offset, int.from_bytes(part, sys.byteorder))  # PTRACE_POKETEXT
            trace(17, pid)  # PTRACE_DETACH
        except OSError:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise
        os.write(go, b"x")
        return os.waitpid(pid, 0)[1]

    kit.do("ptrace", poke)
