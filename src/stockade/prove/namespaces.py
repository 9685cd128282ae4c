"""The few Linux calls that the range needs and Python 3.11 does not have.

ctypes is used because `os.unshare` and `os.setns` came with 3.12 and `mount(2)` never did.
Each wrapper takes plain values and raises `OSError` with the errno, so nothing of
ctypes leaves this module.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x1000, 0x2000, 0x4000, 1 << 18

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _raise_on_error(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    """Leave the named namespaces for fresh ones (unshare(2))."""
    _raise_on_error(_libc.unshare(flags), "unshare")


def mount(source: str, target: str | Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2); empty strings stand for its NULL arguments."""
    arguments = [text.encode() or None for text in (source, str(target), kind)]
    _raise_on_error(
        _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}"
    )


def bind(source: str | Path, target: str | Path, recursive: bool = False) -> None:
    mount(str(source), target, flags=MS_BIND | (MS_REC if recursive else 0))


def set_parent_death_signal(number: int) -> None:
    """Have the kernel signal us when our parent thread ends (prctl(2)); cleared by a change of uid."""
    _raise_on_error(_libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def map_single_id(inner: int, outer_uid: int, outer_gid: int) -> None:
    """Map one uid and gid into the user namespace that this process has just entered.

    Mapping one's own id needs no privilege in the parent (user_namespaces(7)), but
    `setgroups` must be given up first, else the gid map is refused.
    """
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inner} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{inner} {outer_gid} 1")
