"""Commands as no shell would give them: odd paths, odd arguments, pointers that lead nowhere.

Usage: odd_commands.py WORK. `true` is permitted and `id` is not. Prints one JSON object:
case -> exit code of the program, or the errno of execve as "errno N".
"""

import ctypes
import json
import os
import sys

from apart import libc

PERMITTED, DENIED = b"/usr/bin/true", b"/usr/bin/id"
PATH_MAX = 4096  # with the NUL: limits.h
UNMAPPED = ctypes.c_void_p(8)


def vector(*words):
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def stretched(path, length):
    """The same file by a longer path."""
    folder, name = os.path.split(path)
    dots = length - len(path) - 1
    return folder + b"/" + b"./" * (dots // 2) + b"/" * (dots % 2 + 1) + name


def linked(name, path):
    link = os.path.join(os.fsencode(sys.argv[1]), name)
    os.symlink(path, link)
    return link


def pointers(*values):
    return (ctypes.c_void_p * (len(values) + 1))(*values, None)


MANY = [b"many"] + [b"%d" % number for number in range(299)]
LONG = b"a" * 100_000
SECRETS = [b"secrets", b"--password=hunter2hunter2", b"--token", b"ghp_0123456789abcdefghijABCDEFGHIJ012345"]
WORD = ctypes.c_char_p(b"word")
WORD_AT = ctypes.cast(WORD, ctypes.c_void_p).value
CASES = {
    "plain": (PERMITTED, vector(b"plain")),
    "many": (PERMITTED, vector(*MANY)),
    "long": (PERMITTED, vector(b"long", LONG)),
    "secrets": (PERMITTED, vector(*SECRETS)),
    "none": (PERMITTED, None),
    "none-denied": (DENIED, None),
    "longest-path": (stretched(PERMITTED, PATH_MAX - 1), vector(b"longest")),
    "longest-path-denied": (stretched(DENIED, PATH_MAX - 1), vector(b"longest")),
    "too-long-path": (stretched(PERMITTED, PATH_MAX), vector(b"too-long")),
    "endless-path": (PERMITTED + b"/" * 9000, vector(b"endless")),
    "not-text": (linked(b"\xff\xfe", PERMITTED), vector(b"not-text", b"\xff")),
    "not-text-denied": (linked(b"\xfd\n\x1b[31m", DENIED), vector(b"not-text", b"\n\x1b]0;x\x07")),
    "unmapped-path": (UNMAPPED, vector(b"nowhere")),
    "unmapped-arguments": (PERMITTED, UNMAPPED),
    "unmapped-argument": (PERMITTED, pointers(WORD_AT, 8)),
    "unmapped-environment": (PERMITTED, vector(b"environment")),
    "unmapped-arguments-denied": (DENIED, UNMAPPED),
    "empty-path": (b"", vector(b"empty")),
    "no-file": (b"/usr/bin/there-is-none", vector(b"none")),
    "folder": (b"/usr/bin", vector(b"folder")),
    "no-program": (b"/etc/passwd", vector(b"no-program")),
}


def attempt(name, path, arguments):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_RDWR), 1)
        libc.execve(path, arguments, UNMAPPED if name == "unmapped-environment" else vector(b"CASE=1"))
        os._exit(100 + ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"errno {code - 100}" if code >= 100 else code


print(json.dumps({name: attempt(name, *case) for name, case in CASES.items()}))
