"""The process rewrites its own read-only code through /proc/self/mem.

Writes there pass the protection of pages: no call asks for writable or executable memory. Landlock
forbids writing below /proc; nothing else here would.

Layers: landlock alone; without it the attack arrives.

Not covered: reading other processes' memory there (calls-foreign-memory, calls-ptrace).
"""

import os

import native

ATTACK = {
    "title": "Own code rewritten through /proc/self/mem",
    "group": "commands",
    "layer": "landlock",
    "risk": "boundary-tampering",
    "references": ["proc_pid_mem(5)", "CWE-123", "Landlock LANDLOCK_ACCESS_FS_WRITE_FILE"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["EACCES"]}],
}


def attempt(kit):
    def make():
        at = native.own_function()
        fd = os.open("/proc/self/mem", os.O_RDWR)
        os.pwrite(fd, native.CODE, at)
        native.write_by(at, kit)

    native.apart(kit, "/proc/self/mem", make)
