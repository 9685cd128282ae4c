"""What Landlock is told: what may be executed, read and written. Pure but for the probe.

Landlock judges the file, whatever path leads to it, so a second link, a bind or
``/proc/self/root`` gives no other answer. It adds to the mounts what those cannot say:
no program but the listed ones even where files may be mapped executable, nothing is
written below /proc (so no code through /proc/self/mem), no socket is made where the
host would find it, and abstract sockets and signals end at the sandbox.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence

from stockade.sandbox.environment import HOME
from stockade.sandbox.view import Mount, MountKind, is_below

# linux/landlock.h
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
SCOPE_ABSTRACT_UNIX_SOCKET, SCOPE_SIGNAL = 1 << 0, 1 << 1

READ = READ_FILE | READ_DIR
WRITE_TO_FILE = WRITE_FILE | TRUNCATE
WRITE = WRITE_TO_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_FIFO | MAKE_SYM | REFER
USE_DEVICE = WRITE_TO_FILE | IOCTL_DEV

# What the kernel knows by ABI (landlock(7)): rights that it does not know must not be named.
_RIGHTS_SINCE = ((1, (1 << 13) - 1), (2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))
_SCOPES_SINCE = 6
_NETWORK_SINCE = 4
_CREATE_RULESET, _VERSION_FLAG = 444, 1


def probe_landlock() -> tuple[int, int]:
    """The ABI that this kernel speaks, and 0; or 0 and the errno that says why there is none.

    ENOSYS: not built in; EOPNOTSUPP: not started at boot; anything else: refused, by a filter around us.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    version = libc.syscall(
        ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
    )
    return (int(version), 0) if version > 0 else (0, ctypes.get_errno())


def known_rights(abi: int) -> int:
    return sum(rights for since, rights in _RIGHTS_SINCE if abi >= since)


def compile_ruleset(abi: int) -> bytes:
    """``struct landlock_ruleset_attr``: every right that the kernel knows needs a rule that gives it.

    The network rights are left out: the room judges connections, and says who and why.
    """
    scopes = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL
    if abi >= _SCOPES_SINCE:
        return struct.pack("=QQQ", known_rights(abi), 0, scopes)
    if abi >= _NETWORK_SINCE:
        return struct.pack("=QQ", known_rights(abi), 0)
    return struct.pack("=Q", known_rights(abi))


def private_folders(mounts: Sequence[Mount]) -> list[str]:
    """Writable folders of the sandbox itself, which nobody on the host sees."""
    found = [mount.target for mount in mounts if mount.kind is MountKind.TMPFS and mount.mode & 0o200]
    return [*found, HOME]


def plan_rules(
    mounts: Sequence[Mount], files: frozenset[str], executable: Iterable[str], abi: int
) -> list[tuple[int, str]]:
    """The rules as (rights, path in the view).

    Args:
        mounts: The view.
        files: Those targets of writable mounts that are files: they take fewer rights.
        executable: Real paths that may be executed; ``/`` for every program.
        abi: What the kernel speaks.
    """
    rules: dict[str, int] = {"/": READ, "/dev": USE_DEVICE}
    shared = [mount.target for mount in mounts if mount.kind is MountKind.WRITABLE]
    for path in shared:
        rules[path] = WRITE_TO_FILE if path in files else WRITE
    for path in private_folders(mounts):
        # Rights go down: below a folder that holds one of the host's, a socket could be made there too.
        holds_shared = any(is_below(place, path) for place in shared)
        rules[path] = WRITE if holds_shared else WRITE | MAKE_SOCK
    for path in executable:
        rules[path] = rules.get(path, 0) | EXECUTE
    known = known_rights(abi)
    return [(rights & known, path) for path, rights in rules.items()]
