"""Characters are pushed into the terminal, as if the person at it had typed them.

TIOCSTI put a command into the shell that gets the terminal back; the kernel reads 32 bits of the
request, so it is also tried with a higher bit set. The terminal here is the attacker's own.

Layers: seccomp alone; without it the attack arrives.

Not covered: escape sequences that make a terminal answer; those are left out of what it shows.
"""

import ctypes
import fcntl
import os
import termios

import native

ATTACK = {
    "title": "Characters pushed into a terminal (TIOCSTI)",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["ioctl_tty(2)", "CVE-2017-5226", "CVE-2019-10063"],
    "arrives": [{"what": "state", "name": "typed"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "ioctl(TIOCSTI*"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def push(request):
        come, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                _master, slave = os.openpty()
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                for letter in b"typed\n":
                    native.system_call((16, 29), slave, request, ctypes.create_string_buffer(bytes([letter])))
                os.write(go, os.read(slave, 100))
            except OSError as error:
                os.write(go, f"errno {error.errno}".encode())
            finally:
                os._exit(0)
        os.close(go)
        said = os.read(come, 100).decode().strip()
        os.waitpid(pid, 0)
        if said.startswith("errno"):
            raise OSError(int(said.split()[1]), "ioctl")
        return said

    for request in (0x5412, 0x5412 | 1 << 32):
        if kit.do("ioctl", push, request).get("result") == "typed":
            kit.effect("typed")
