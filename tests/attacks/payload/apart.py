"""What the payloads share: tries in a process of their own each, and calls of the C library that may fail."""

import ctypes
import json
import os

ON_X86 = os.uname().machine == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def checked(result, what):
    """The C library's word for failure is -1, and for an address the same in 64 bits."""
    if result in (-1, None, 2**64 - 1):
        raise OSError(ctypes.get_errno(), what)
    return result


def system_call(number, *arguments):
    """A call by its number on x86-64 and on arm64, with whole machine words and pointers."""
    own = number if isinstance(number, int) else number[0 if ON_X86 else 1]
    words = [ctypes.c_ulong(word % 2**64) if isinstance(word, int) else word for word in arguments]
    return checked(libc.syscall(ctypes.c_long(own), *words), f"call {own}")


def apart(attempt):
    """What a try says, "errno N: …" if it could not be done, and the id of its process."""
    come, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = str(attempt())
        except OSError as error:
            said = f"errno {error.errno}: {error.strerror}"
        os.write(go, said.encode())
        os._exit(0)
    os.close(go)
    said = b""
    while part := os.read(come, 4096):
        said += part
    os.close(come)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return [said.decode() or f"ended with {code}", pid]


def report(tries):
    """Try all, and print one JSON object: name -> [what it said, process id]."""
    print(json.dumps({name: apart(attempt) for name, attempt in tries.items()}), flush=True)
