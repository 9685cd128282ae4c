"""One shared memory segment attached twice: once to write, once to run.

Neither attachment is writable and executable, and there is no mmap call.

Layers: memfd alone; without it the attack arrives.

Not covered: shared memory between programs that is only data; it stays open.
"""

import native

ATTACK = {
    "title": "Shared segment attached executable",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["shmat(2) SHM_EXEC", "CWE-693"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "shmat(*SHM_EXEC*"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def make():
        key = native.checked(native.libc.shmget(0, native.PAGE, 0o1700), "shmget")
        try:
            native.put(native.checked(native.libc.shmat(key, None, 0), "shmat"))
            native.write_by(native.checked(native.libc.shmat(key, None, 0o110000), "shmat"), kit)
        finally:
            native.libc.shmctl(key, 0, None)

    native.apart(kit, "shmat", make)
