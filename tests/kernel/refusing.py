"""Run a command under a system-call filter of somebody else's, such as a container's.

Usage: refusing.py [--listener] [CALL:ERRNO | prctl/OPTION:ERRNO]... -- CMD...

Each named call fails with that errno, for the command and all that it starts. With --listener
a notifying filter is on it too, whose listener stays open. Imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

# asm/unistd_64.h; arm64 has asm-generic/unistd.h
NUMBERS = {
    "x86_64": {"prctl": 157, "quotactl": 179, "process_vm_readv": 310, "seccomp": 317},
    "aarch64": {"prctl": 167, "quotactl": 60, "process_vm_readv": 270, "seccomp": 277},
}[os.uname().machine] | {
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
ALLOW, ERRNO, NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000  # linux/seccomp.h
NEW_LISTENER = 8
LIBC = ctypes.CDLL(None, use_errno=True)


def line(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def refusal(rule: str) -> bytes:
    """Instructions that answer one call, and go on behind themselves with any other."""
    call, number = rule.split(":")
    name, _, option = call.partition("/")
    answer = line(RETURN, 0, 0, ERRNO | int(number))
    if not option:
        return line(LOAD, 0, 0, 0) + line(EQUAL, 0, 1, NUMBERS[name]) + answer
    is_option = line(LOAD, 0, 0, 16) + line(EQUAL, 0, 1, int(option))  # the first argument, low half
    return line(LOAD, 0, 0, 0) + line(EQUAL, 0, 3, NUMBERS[name]) + is_option + answer


def install(code: bytes, flags: int) -> int:
    code += line(RETURN, 0, 0, ALLOW)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(held))
    result: int = LIBC.syscall(NUMBERS["seccomp"], 1, ctypes.c_ulong(flags), program)
    if result < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return result


def keep_open(listener: int) -> None:
    """A process that holds the listener until the command ends; nothing that the filter reports is called."""
    pid = os.getpid()
    if os.fork() == 0:
        LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == pid:
            os.closerange(0, listener)
            signal.pause()
        os._exit(0)
    os.close(listener)


def main() -> None:
    split = sys.argv.index("--")
    rules, command = sys.argv[1:split], sys.argv[split + 1 :]
    LIBC.prctl(38, 1, 0, 0, 0)  # no_new_privs
    if "--listener" in rules:
        rules.remove("--listener")
        unused = line(LOAD, 0, 0, 0) + line(EQUAL, 0, 1, NUMBERS["quotactl"]) + line(RETURN, 0, 0, NOTIFY)
        keep_open(install(unused, NEW_LISTENER))
    if rules:
        install(b"".join(map(refusal, rules)), 0)
    os.execvp(command[0], command)


main()
