"""A user namespace of the worker's own would give it every capability in it, and with them a new network."""

from __future__ import annotations

from kernel_steps import Contained

NAMESPACES = """
import ctypes, os
FLAGS = {"user": 0x10000000, "net": 0x40000000, "mount": 0x20000, "pid": 0x20000000}
libc = ctypes.CDLL(None, use_errno=True)
def made(flag):
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(flag) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0
print("user", made(FLAGS["user"]))
for name in ("net", "mount", "pid"):
    print(name, made(FLAGS["user"] | FLAGS[name]))
"""


def test_the_worker_cannot_make_a_user_namespace_and_what_comes_with_one(contained: Contained) -> None:
    assert contained.plainly(NAMESPACES).out.split() == [
        "user",
        "True",
        "net",
        "True",
        "mount",
        "True",
        "pid",
        "True",
    ]
    shown = contained.python(NAMESPACES).out
    assert shown.split() == ["user", "False", "net", "False", "mount", "False", "pid", "False"]


# A file system of the worker's own, on which nothing says noexec; then a copied program from it.
FRESH = """
import ctypes, os, shutil
libc = ctypes.CDLL(None, use_errno=True)
def step(name, result):
    if result < 0: print(name, ctypes.get_errno(), flush=True)
    return result >= 0
me, group = os.getuid(), os.getgid()
if step("unshare", libc.unshare(0x10000000 | 0x20000)):
    try:
        maps = ("uid_map", f"{me} {me} 1"), ("setgroups", "deny"), ("gid_map", f"{group} {group} 1")
        for name, text in maps:
            with open(f"/proc/self/{name}", "w") as file: file.write(text)
    except OSError as error: print(name, error.errno, flush=True)
    if step("mount", libc.mount(b"fresh", b"/tmp", b"tmpfs", 0, None)):
        shutil.copy("/usr/bin/id", "/tmp/copy")
        try: os.execv("/tmp/copy", ["copy", "-u"])
        except OSError as error: print("execve", error.errno)
"""
NEITHER = ("--without-layer", "memfd", "--without-layer", "notify", "--exec", "listed")
NO_LANDLOCK, NO_FILTER = ("--without-layer", "landlock"), ("--without-layer", "seccomp")
NAMESPACES_INSIDE = ("--user-namespaces",)


def test_f10_a_fresh_file_system_undoes_the_mounts_where_nothing_else_stands(contained: Contained) -> None:
    """The control: the noexec mounts are up, and bubblewrap, Landlock and the filter let it happen."""
    options = (*NEITHER, *NO_LANDLOCK, *NO_FILTER, *NAMESPACES_INSIDE)
    assert contained.python(FRESH, options=options).out.strip().isdigit()
    copied = "import os, shutil; shutil.copy('/usr/bin/id', '/tmp/c'); os.execv('/tmp/c', ['c'])"
    assert "Permission denied" in contained.python(copied, options=options).err


def test_f10_each_of_three_protections_alone_forbids_a_fresh_file_system(contained: Contained) -> None:
    no_namespaces = contained.python(FRESH, options=(*NEITHER, *NO_LANDLOCK, *NO_FILTER))
    assert no_namespaces.out == "unshare 28\n"  # ENOSPC: the limit on user namespaces is reached
    landlock = contained.python(FRESH, options=(*NEITHER, *NO_FILTER, *NAMESPACES_INSIDE))
    assert landlock.out == "uid_map 13\nmount 1\n"
    filtered = contained.python(FRESH, options=(*NEITHER, *NO_LANDLOCK, *NAMESPACES_INSIDE))
    assert filtered.out == "unshare 1\n"
