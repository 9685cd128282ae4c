"""Roads to a program that is not permitted: `id -u`, by every name and loader that there is.

Usage: roads.py WORK. Prints one JSON object: road -> what `id` printed, or the error.
"""

import ctypes
import glob
import json
import os
import shutil
import subprocess
import sys

WORK = sys.argv[1]
TARGET = "/usr/bin/id"
LOADER = next(iter(glob.glob("/lib64/ld-linux-x86-64.so.2") + glob.glob("/lib/ld-linux-aarch64.so.1")))
IN_LIBRARIES = "/usr/lib/git-core/git"  # a program inside a folder from which libraries are loaded
libc = ctypes.CDLL(None, use_errno=True)


def run(*argv, **more):
    done = subprocess.run(argv, capture_output=True, timeout=10, **more)
    if done.returncode != 0:
        raise OSError(0, f"exit {done.returncode}: {done.stderr.decode(errors='replace').strip()[:120]}")
    return done.stdout.decode().strip()


def copy_to(folder):
    path = f"{folder}/python3"  # under the name of a permitted program
    shutil.copy(TARGET, path)
    os.chmod(path, 0o755)
    return path


def link_in(folder):
    path = f"{folder}/link-{os.getpid()}"
    os.symlink(TARGET, path)
    return path


def hard_link():
    path = f"{WORK}/hard"
    os.link(copy_to(WORK), path)
    return path


def script(first_line):
    path = f"{WORK}/script{abs(hash(first_line))}"
    with open(path, "w") as file:
        file.write(first_line + "\nprint(4711)\n")
    os.chmod(path, 0o755)
    return path


def spawn(function):
    """posix_spawn by Python's own name for it, output through a pipe."""
    read, write = os.pipe()
    pid = function(TARGET, [TARGET, "-u"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    os.close(write)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = os.read(read, 100).decode().strip()
    os.close(read)
    if code:
        raise OSError(0, f"exit {code}")
    return said


def in_child(action):
    """Run an action that ends in execve in a child, and give what the program then printed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(write, 1)
            action()
        except OSError as error:
            os.write(2, str(error).encode())
            os._exit(100 + (error.errno or 0) % 100)
        os._exit(99)
    os.close(write)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = os.read(read, 100).decode().strip()
    os.close(read)
    if code:
        raise OSError(code - 100, f"exit {code}")
    return said


def by_descriptor(path):
    fd = os.open(path, os.O_RDONLY)
    return lambda: os.execve(fd, [TARGET, "-u"], {})


def empty_path_descriptor():
    """execveat(fd, "", argv, envp, AT_EMPTY_PATH)"""
    fd = os.open(TARGET, os.O_PATH)
    argv = (ctypes.c_char_p * 3)(TARGET.encode(), b"-u", None)
    number = 322 if os.uname().machine == "x86_64" else 281
    libc.syscall(number, fd, b"", argv, (ctypes.c_char_p * 1)(None), 0x1000)
    raise OSError(ctypes.get_errno(), "execveat")


def memory_file(how):
    def action():
        fd = os.memfd_create("copy")
        with open(TARGET, "rb") as file:
            os.write(fd, file.read())
        if how == "fd":
            os.execve(fd, [TARGET, "-u"], {})
        os.execv(f"/proc/self/fd/{fd}", [TARGET, "-u"])

    return action


def nameless_file():
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
    with open(TARGET, "rb") as file:
        os.write(fd, file.read())
    readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    os.execve(readable, [TARGET, "-u"], {})


def preloaded():
    """Is code of a library of ours in the memory of a permitted program?"""
    library = sorted(glob.glob("/usr/lib/*/libz.so.1.*") + glob.glob("/usr/lib/*/libm.so.6"))[0]
    shutil.copy(library, f"{WORK}/lib.so")
    seen = "[line for line in open('/proc/self/maps') if 'lib.so' in line and 'x' in line.split()[1]]"
    code = f"import sys; sys.exit(not {seen})"
    run(sys.executable, "-c", code, env={"LD_PRELOAD": f"{WORK}/lib.so"})
    return "4711"


ROADS = {
    "plain": lambda: run(TARGET, "-u"),
    "dots": lambda: run("/usr/share/../bin/./id", "-u"),
    "proc-root": lambda: run("/proc/self/root/usr/bin/id", "-u"),
    "thread-root": lambda: run("/proc/thread-self/root/usr/bin/id", "-u"),
    "link": lambda: run(link_in("/tmp"), "-u"),
    "hard-link": lambda: run(hard_link(), "-u"),
    "copy-tmp": lambda: run(copy_to("/tmp"), "-u"),
    "copy-shm": lambda: run(copy_to("/dev/shm"), "-u"),
    "copy-home": lambda: run(copy_to(os.environ["HOME"]), "-u"),
    "copy-work": lambda: run(copy_to(WORK), "-u"),
    "loader": lambda: run(LOADER, TARGET, "-u"),
    "loader-copy": lambda: run(LOADER, copy_to(WORK), "-u"),
    "loader-libraries": lambda: run(LOADER, IN_LIBRARIES, "--version") and "4711",
    "libraries": lambda: run(IN_LIBRARIES, "--version") and "4711",
    "shebang-denied": lambda: run(script("#!/bin/echo 4711"))[:4],
    "shebang-permitted": lambda: run(script("#!/usr/bin/python3")),
    "preload": preloaded,
    "env": lambda: run("/usr/bin/env", "id", "-u"),
    "shell": lambda: run("/bin/sh", "-c", "id -u"),
    "posix-spawn": lambda: spawn(os.posix_spawn),
    "execve-fd": lambda: in_child(by_descriptor(TARGET)),
    "execveat-empty": lambda: in_child(empty_path_descriptor),
    "memfd-fd": lambda: in_child(memory_file("fd")),
    "memfd-path": lambda: in_child(memory_file("path")),
    "nameless": lambda: in_child(nameless_file),
}

found = {}
for road, walk in ROADS.items():
    try:
        found[road] = walk()
    except (OSError, subprocess.SubprocessError) as error:
        found[road] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
