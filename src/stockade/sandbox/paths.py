"""What stands at the paths of the host that a run wants to show: looked at once, without following links.

A link that the worker planted in one run must not widen the view of the next, so no
component of an operator's path may be a link (openat2 with RESOLVE_NO_SYMLINKS). One
exception: the operator's own working folder is resolved once, since the shell leads
people through links, and its path was not made by the worker (reports R134, R145).
"""

from __future__ import annotations

import errno
import os
import stat

from msgspec import Struct

from stockade.errors import HostError, UserError
from stockade.sandbox import kernel
from stockade.sandbox.view import is_below

# As a workspace these would show secrets or the machine itself; below most of them is fine.
_NOT_A_WORKSPACE = frozenset(
    [
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/proc",
        "/root/.ssh",
        "/run",
        "/sbin",
        "/sys",
        "/usr",
        "/var",
    ]
)
_NEVER_SHOWN = ("/proc", "/sys", "/dev", "/boot")
# Programs, libraries and settings of the machine: a worker that may write there owns it after all,
# most of all one that root has started. Sources that are kept below /usr are a workspace like others.
_NEVER_WRITTEN = ("/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr")
_WRITTEN_ALL_THE_SAME = ("/usr/src", "/usr/local/src")


class PathFact(Struct, frozen=True):
    """What stood at a path when it was judged."""

    path: str
    is_folder: bool
    uid: int
    gid: int
    device: int
    inode: int

    @property
    def owner(self) -> tuple[int, int]:
        return (self.uid, self.gid)

    @property
    def identity(self) -> tuple[int, int] | None:
        """What must be found there again; None for what is still to be made."""
        return (self.device, self.inode) if self.inode else None


def probe_path(path: str, asked_by: str) -> PathFact:
    """Judge a path that the operator named.

    Args:
        path: An absolute path.
        asked_by: ``files.read`` or the like, for the message.

    Raises:
        UserError: It does not exist, goes through a link, or may never be shown.
    """
    if path == "/" or any(path == place or path.startswith(place + "/") for place in _NEVER_SHOWN):
        raise UserError("path-not-shown", f"{asked_by}: {path} belongs to the machine and is never shown")
    try:
        fd = kernel.open_without_links(path, os.O_PATH)
    except OSError as error:
        raise _explain(path, asked_by, error) from error
    try:
        return _fact(path, os.fstat(fd), asked_by)
    finally:
        os.close(fd)


def plain_fact(path: str) -> PathFact | None:
    """What stands there, if it is a folder or a regular file: the only things that can be covered."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    is_folder = stat.S_ISDIR(status.st_mode)
    if not (is_folder or stat.S_ISREG(status.st_mode)):
        return None
    return PathFact(path, is_folder, status.st_uid, status.st_gid, status.st_dev, status.st_ino)


def probe_writable(path: str, asked_by: str) -> PathFact:
    """Judge a path that the worker may write.

    Raises:
        UserError: As `probe_path`, or it belongs to the machine's own programs and settings.
    """
    fact = probe_path(path, asked_by)
    is_the_machine_s = any(is_below(path, place) for place in _NEVER_WRITTEN) or path in _NOT_A_WORKSPACE
    if is_the_machine_s and not any(is_below(path, place) for place in _WRITTEN_ALL_THE_SAME):
        raise UserError(
            "path-not-written",
            f"{asked_by}: {path} holds programs or settings of the machine, which no worker may write",
            "give it a folder of its own, and copy what came out of it",
        )
    return fact


def _explain(path: str, asked_by: str, error: OSError) -> UserError:
    if os.path.lexists(path) and os.path.realpath(path) != os.path.normpath(path):
        return UserError(
            "path-through-link",
            f"{asked_by}: {path} goes through a link",
            f"write the path that it leads to, if that is what you mean: {os.path.realpath(path)}",
        )
    return UserError("path-unusable", f"{asked_by}: {path}: {os.strerror(error.errno or 0)}")


def _fact(path: str, status: os.stat_result, asked_by: str) -> PathFact:
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise UserError("path-unusable", f"{asked_by}: {path} is neither a folder nor a regular file")
    is_folder = stat.S_ISDIR(status.st_mode)
    return PathFact(path, is_folder, status.st_uid, status.st_gid, status.st_dev, status.st_ino)


def probe_workspace(path: str) -> PathFact:
    """Judge the operator's working folder; links on the way are resolved here, once."""
    real = os.path.realpath(path)
    if real in _NOT_A_WORKSPACE:
        raise UserError(
            "workspace-not-usable",
            f"{real} cannot be a workspace: it would show the machine's own files",
            "change into the folder that the command works on",
        )
    fact = probe_path(real, "workspace")
    if not fact.is_folder:
        raise UserError("workspace-not-usable", f"{real} is not a folder")
    return fact


def make_folder(path: str, mode: int) -> tuple[int, int]:
    """Make a folder, and those above it, for the owner of the folder around; gives its identity.

    No link is followed: a worker of another run may put one where a folder was.

    Raises:
        HostError: It cannot be made.
    """
    try:
        return _make_folder(path, mode)
    except OSError as error:
        raise HostError(
            "folder-not-made", f"{path} cannot be made: {error.strerror}", "make it, or choose another place"
        ) from error


def _make_folder(path: str, mode: int) -> tuple[int, int]:
    above, name = os.path.split(path)
    try:
        parent = kernel.open_without_links(above, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        _make_folder(above, mode)
        parent = kernel.open_without_links(above, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.mkdir(name, mode, dir_fd=parent)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(name, flags, dir_fd=parent)
        try:
            if os.geteuid() == 0:
                around = os.fstat(parent)
                os.fchown(made, around.st_uid, around.st_gid)
            status = os.fstat(made)
        finally:
            os.close(made)
    finally:
        os.close(parent)
    return (status.st_dev, status.st_ino)


def read_regular(path: str, limit_bytes: int) -> bytes:
    """The first part of a file that a worker may have made: no link is followed, and no FIFO waited for.

    Raises:
        OSError: It is not there, cannot be read, or is no regular file.
    """
    fd = kernel.open_without_links(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no regular file", path)
        return os.read(fd, limit_bytes)
    finally:
        os.close(fd)
