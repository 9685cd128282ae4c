"""System calls that Python has no name for, each as one small function.

ctypes is unsafe by nature; it is needed because these calls have no wrapper in the
standard library of Python 3.11. Sound because each function passes integers, byte
strings that outlive the call, or one structure of fixed layout, and turns every
failure into `OSError` with its errno. The numbers are the same on x86-64 and arm64
(all are newer than the point where the tables were unified).
"""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import warnings
from collections.abc import Sequence

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 0x4, 0x40
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOEXEC = 0x8
MOUNT_ATTR_IDMAP = 0x00100000

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REC, MS_PRIVATE = 0x4000, 0x40000

RENAME_NOREPLACE = 1

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_IN_ROOT = 0x10

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_SET_MDWE = 65
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2

NS_GET_USERNS = 0xB701

_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_SECCOMP = {"x86_64": 317, "aarch64": 277}  # the one number here that differs

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.process_vm_readv.restype = ctypes.c_ssize_t


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def fork_quietly() -> int:
    """`os.fork`, without Python 3.12's warning about threads and with no garbage collection in the child.

    Sound here because the children that we fork only make system calls through names
    that are imported already, and end in exec or `os._exit`. A collection in the child
    could close a descriptor whose number the child has taken for something else.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        gc.disable()
    return pid


def open_without_links(path: str | bytes, flags: int, mode: int = 0) -> int:
    """Open a path in which no component may be a link; ELOOP says that one was (openat2, 5.6)."""
    return _open(AT_FDCWD, path, flags, mode, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)


def open_within(root_fd: int, path: str | bytes, flags: int) -> int:
    """The same, where `root_fd` is the root directory: for a view, seen from outside."""
    resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT
    return _open(root_fd, path, flags, 0, resolve)


def open_as_worker(start: int, path: str | bytes, flags: int, *, is_root: bool) -> int:
    """Open a path from a folder of a worker's view, where it means the same to it and to us.

    Magic links of procfs are refused (ELOOP). With `is_root` the folder is the worker's root,
    and other links are followed below it; else they are refused too, since an absolute one
    would lead from our own root.
    """
    links = RESOLVE_IN_ROOT if is_root else RESOLVE_NO_SYMLINKS
    return _open(start, path, flags, 0, links | RESOLVE_NO_MAGICLINKS)


def _open(folder: int, path: str | bytes, flags: int, mode: int, resolve: int) -> int:
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    raw = ctypes.c_char_p(os.fsencode(path))
    result = _libc.syscall(_OPENAT2, folder, raw, ctypes.byref(how), ctypes.sizeof(how))
    return _check(result, f"openat2 {os.fsdecode(path)}")


def rename_to_free(old: str, new: str, folder: int) -> None:
    """Rename within an open folder, unless something stands there already (renameat2, RENAME_NOREPLACE).

    Plain rename would replace an empty folder in silence. A file system that does not know
    the flag answers EINVAL.
    """
    arguments = (folder, ctypes.c_char_p(os.fsencode(old)), folder, ctypes.c_char_p(os.fsencode(new)))
    result = _libc.renameat2(*arguments, ctypes.c_uint(RENAME_NOREPLACE))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new)


def open_tree(path: str | bytes) -> int:
    """Clone the mount at a path, with all below it, as a detached tree (needs CAP_SYS_ADMIN)."""
    raw = ctypes.c_char_p(os.fsencode(path))
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    return _check(_libc.syscall(_OPEN_TREE, AT_FDCWD, raw, flags), f"open_tree {os.fsdecode(path)}")


def open_tree_at(fd: int) -> int:
    """Like `open_tree`, for what an open descriptor refers to: no path is looked up again."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH
    return _check(_libc.syscall(_OPEN_TREE, fd, ctypes.c_char_p(b""), flags), "open_tree")


def set_mount_attributes(tree_fd: int, attributes: int, userns_fd: int = 0) -> None:
    """Set attributes on a detached tree and all below it (mount_setattr, 5.12)."""
    attr = _MountAttr(attributes, 0, 0, userns_fd)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    result = _libc.syscall(
        _MOUNT_SETATTR, tree_fd, ctypes.c_char_p(b""), flags, ctypes.byref(attr), ctypes.sizeof(attr)
    )
    _check(result, "mount_setattr")


def move_mount(tree_fd: int, target: str | bytes) -> None:
    """Attach a detached tree at a path of the caller's own mount namespace."""
    raw = ctypes.c_char_p(os.fsencode(target))
    empty = ctypes.c_char_p(b"")
    result = _libc.syscall(_MOVE_MOUNT, tree_fd, empty, AT_FDCWD, raw, MOVE_MOUNT_F_EMPTY_PATH)
    _check(result, f"move_mount {os.fsdecode(target)}")


def move_mount_to(tree_fd: int, place_fd: int) -> None:
    """The same, onto what an open descriptor refers to: no path is looked up again."""
    empty = ctypes.c_char_p(b"")
    flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
    _check(_libc.syscall(_MOVE_MOUNT, tree_fd, empty, place_fd, empty, flags), "move_mount")


def mount(source: bytes, target: bytes, kind: bytes, flags: int, data: bytes = b"") -> None:
    _check(_libc.mount(source, target, kind, ctypes.c_ulong(flags), data), f"mount {target.decode()}")


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read_memory(pid: int, address: int, length: int) -> bytes:
    """Memory of another process (process_vm_readv(2)); shorter if the rest is not mapped.

    Unlike ``/proc/PID/mem`` it works on a process that made itself undumpable, since we
    own the user namespace that its memory belongs to.
    """
    buffer = ctypes.create_string_buffer(length)
    here, there = _Span(ctypes.addressof(buffer), length), _Span(address, length)
    result = _libc.process_vm_readv(
        ctypes.c_int(pid),
        ctypes.byref(here),
        ctypes.c_ulong(1),
        ctypes.byref(there),
        ctypes.c_ulong(1),
        ctypes.c_ulong(0),
    )
    return buffer.raw[: _check(result, "process_vm_readv")]


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def die_with_parent(signum: int) -> None:
    """Ask for `signum` when the thread that forked us ends (cleared by a change of credentials)."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def forbid_privileges() -> None:
    """No program that is started from here on has more rights than this process (no_new_privs)."""
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def forbid_new_code() -> None:
    """Memory that was writable never becomes executable (PR_SET_MDWE, 6.3; EINVAL before)."""
    _check(_libc.prctl(PR_SET_MDWE, 1, 0, 0, 0), "prctl(PR_SET_MDWE)")


def map_writable_code() -> None:
    """Map a page that can be written and executed; only to see whether that is refused."""
    import mmap  # no start needs it

    _libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    found = _libc.mmap(None, ctypes.c_size_t(mmap.PAGESIZE), protection, flags, -1, ctypes.c_long(0))
    _check(-1 if found == ctypes.c_void_p(-1).value else 0, "mmap")


def restrict_files(ruleset: bytes, rules: Sequence[tuple[int, str]]) -> None:
    """Bind this process by Landlock: a `struct landlock_ruleset_attr`, and rules as (rights, path)."""
    handle = _check(
        _libc.syscall(_LANDLOCK_CREATE_RULESET, ruleset, ctypes.c_size_t(len(ruleset)), 0), "Landlock"
    )
    for rights, path in rules:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        attribute = struct.pack("=Qi", rights, place)
        _check(_libc.syscall(_LANDLOCK_ADD_RULE, handle, 1, attribute, 0), f"Landlock {path}")
        os.close(place)
    _check(_libc.syscall(_LANDLOCK_RESTRICT_SELF, handle, 0), "Landlock")
    os.close(handle)


def install_filter(program: bytes, flags: int) -> int:
    """Load an array of `struct sock_filter` (seccomp(2)); with NEW_LISTENER gives its descriptor."""
    code = ctypes.create_string_buffer(program, len(program))
    loaded = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(code))
    number = _SECCOMP[os.uname().machine]
    return _check(_libc.syscall(number, 1, ctypes.c_ulong(flags), loaded), "seccomp")


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def keep_capabilities_over_exec(capabilities: tuple[int, ...]) -> None:
    """Make capabilities ambient, so that a program we start in this namespace has them.

    Needed because the builder is not uid 0 in the room's user namespace until its
    map is written, and execve drops what is not ambient then (capabilities(7)).
    """
    header = _CapHeader(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(ctypes.byref(header), data), "capget")
    data[2] |= sum(1 << number for number in capabilities)  # inheritable, numbers below 32
    _check(_libc.capset(ctypes.byref(header), data), "capset")
    for number in capabilities:
        _check(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0), "prctl(PR_CAP_AMBIENT)")
