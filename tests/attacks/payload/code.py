"""Ways for native code to get into a process: each puts the same few bytes somewhere and runs them.

Usage: code.py WORK. The bytes return 42; a program in memory is `id`. Each way has a process of its
own. Prints one JSON object: way -> [what came of it, process id], "42" if the code ran.
"""

import ctypes
import glob
import os
import shutil
import sys

from apart import ON_X86, checked, libc, report, system_call

WORK = sys.argv[1]
CODE = bytes.fromhex("b82a000000c3" if ON_X86 else "40058052c0035fd6")  # return 42
READ, WRITE, EXECUTE = 1, 2, 4
SHARED, PRIVATE, ANONYMOUS = 1, 2, 32
PAGE = 4096
for function in (libc.mmap, libc.shmat):
    function.restype = ctypes.c_void_p


def mapped(protection, flags, fd=-1):
    return checked(libc.mmap(None, PAGE, protection, flags, fd, ctypes.c_long(0)), "mmap")


def protect(address, protection):
    checked(libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), protection), "mprotect")


def put(address):
    ctypes.memmove(address, CODE, len(CODE))
    return address


def call(address):
    return str(ctypes.CFUNCTYPE(ctypes.c_int)(address)())


# --- memory that belongs to no file -----------------------------------------------------------


def writable_and_executable():
    return call(put(mapped(READ | WRITE | EXECUTE, PRIVATE | ANONYMOUS)))


def written_then_executable():
    at = put(mapped(READ | WRITE, PRIVATE | ANONYMOUS))
    protect(at, READ | EXECUTE)
    return call(at)


def with_a_key():
    """pkey_mprotect with the key -1 is mprotect under another number."""
    at = put(mapped(READ | WRITE, PRIVATE | ANONYMOUS))
    system_call((329, 288), at, PAGE, READ | EXECUTE, -1)
    return call(at)


def read_implies_execute():
    checked(libc.personality(ctypes.c_ulong(0x400000)), "personality")
    return call(put(mapped(READ | WRITE, PRIVATE | ANONYMOUS)))


def shared_memory():
    """One segment attached twice: to write, and with SHM_EXEC."""
    key = checked(libc.shmget(0, PAGE, 0o1700), "shmget")
    try:
        put(checked(libc.shmat(key, None, 0), "shmat"))
        return call(checked(libc.shmat(key, None, 0o110000), "shmat"))
    finally:
        libc.shmctl(key, 0, None)


def memory_file(content):
    """With MFD_NOEXEC_SEAL for code, which may still be mapped; without for a program."""
    fd = checked(libc.memfd_create(b"x", 8 if content is CODE else 0), "memfd_create")
    os.write(fd, content + bytes(-len(content) % PAGE))
    return fd


def memory_file_mapped():
    return call(mapped(READ | EXECUTE, PRIVATE, memory_file(CODE)))


def memory_file_executed():
    with open("/usr/bin/id", "rb") as file:
        fd = memory_file(file.read())
    done = in_a_child(lambda: os.execve(fd, ["id"], {}))
    if done:
        raise OSError(done, "execve")
    return "42"


def in_a_child(action):
    """Its exit code; an error number for what could not be done."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        try:
            action()
        except OSError as error:
            os._exit(error.errno)
        os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# --- code that is there already ---------------------------------------------------------------


def own_function():
    """Where the C library's `labs` begins, a function that nothing here needs."""
    return ctypes.cast(libc.labs, ctypes.c_void_p).value


def code_made_writable():
    at = own_function()
    protect(at - at % PAGE, READ | WRITE | EXECUTE)
    return call(put(at))


def through(path):
    def way():
        at = own_function()
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, CODE, at)
        return call(at)

    return way


def poked():
    """A tracer writes into the code of another process, whatever its protection: ptrace(2), POKETEXT."""
    at = own_function()
    come, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(come, 1)
        os._exit(int(call(at)))
    try:
        trace(16, pid)  # PTRACE_ATTACH
        os.waitpid(pid, 0)
        for offset in range(0, len(CODE), 8):
            word = int.from_bytes(CODE[offset : offset + 8].ljust(8, b"\0"), sys.byteorder)
            trace(4, pid, at + offset, word)  # PTRACE_POKETEXT
        trace(17, pid)  # PTRACE_DETACH
    except OSError:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        raise
    os.write(go, b"x")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def trace(request, pid, at=0, word=0):
    system_call((101, 117), request, pid, at, word)


# --- files -----------------------------------------------------------------------------------


def written(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o755)
    os.write(fd, CODE + bytes(PAGE - len(CODE)))
    return fd


def file_in(folder):
    return lambda: call(mapped(READ | EXECUTE, PRIVATE, written(f"{folder}/code-{os.getpid()}")))


def file_without_a_name():
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
    os.write(fd, CODE + bytes(PAGE - len(CODE)))
    return call(mapped(READ | EXECUTE, PRIVATE, fd))


def file_mapped_twice():
    fd = written(f"/tmp/twice-{os.getpid()}")
    put(mapped(READ | WRITE, SHARED, fd))
    return call(mapped(READ | EXECUTE, SHARED, fd))


def zeros():
    fd = os.open("/dev/zero", os.O_RDWR)
    return call(put(mapped(READ | WRITE | EXECUTE, PRIVATE, fd)))


def library():
    """A library of the worker's own, as a native package in a workspace is one."""
    path = f"{WORK}/own.so"
    shutil.copy(sorted(glob.glob("/usr/lib/*/libz.so.1.*"))[0], path)
    try:
        ctypes.CDLL(path)
    except OSError as error:  # the loader says it in words alone
        raise OSError(0, str(error)) from error
    return "42"


WAYS = {
    "writable-and-executable": writable_and_executable,
    "written-then-executable": written_then_executable,
    "with-a-key": with_a_key,
    "read-implies-execute": read_implies_execute,
    "shared-memory": shared_memory,
    "memory-file-mapped": memory_file_mapped,
    "memory-file-executed": memory_file_executed,
    "code-made-writable": code_made_writable,
    "proc-self-mem": through("/proc/self/mem"),
    "proc-thread-mem": through("/proc/thread-self/mem"),
    "poked": poked,
    "file-tmp": file_in("/tmp"),
    "file-shm": file_in("/dev/shm"),
    "file-home": file_in(os.environ["HOME"]),
    "file-work": file_in(WORK),
    "file-without-a-name": file_without_a_name,
    "file-mapped-twice": file_mapped_twice,
    "dev-zero": zeros,
    "library": library,
}

report(WAYS)
