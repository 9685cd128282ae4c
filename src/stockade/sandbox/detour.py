"""Files of a git folder that lead git elsewhere, and what takes their place while a run is on.

``commondir`` makes a git folder take its settings and hooks from another one. Git writes it into
the folders of linked work trees only (gitrepository-layout(5)); in a whole git folder it gets
around whatever protects ``config`` and ``hooks`` there, and the operator's next ``git status``
obeys it. ``config.worktree`` is obeyed like ``config`` where ``extensions.worktreeConfig`` is on
(git-worktree(1)). What does not exist cannot be covered, so for the length of a run a *stop*
takes its place: a ``commondir`` that says ``.``, this very folder, or a ``config.worktree`` with
nothing but a comment. It changes nothing. The view covers it read-only; a mount point can be
neither renamed nor removed inside.

What must stay true:

* Only a stop is removed: the file that was made or found here, with nothing else in it.
* Several runs may share a stop, and the last one removes it: each holds a read lock, and
  whoever removes takes the write lock. A worker cannot have that one, as its view of the
  file is read-only; with a read lock it can only make the harmless file stay.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Collection

from msgspec import Struct

from stockade.errors import HostError
from stockade.sandbox import kernel

NAME = "commondir"
WORKTREE_CONFIG = "config.worktree"
STOP = b"."
_STOPS = {
    NAME: STOP,
    WORKTREE_CONFIG: b"# Empty, and held by `stockade run` while a command may write here.\n",
}
_TO_WORKTREES_REPOSITORY = b"../.."  # what `git worktree add` writes, from .git/worktrees/NAME
_READ_LIMIT_BYTES = 4096
_ATTEMPTS, _PAUSE_S = 50, 0.01
# File systems without locks: the stop works, but two runs on one folder do not wait for each other.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})  # file systems without hard links


def git_detour(folder: str) -> str:
    return os.path.join(folder, NAME)


def is_detour(folder: str, whole_folders: Collection[str]) -> bool:
    """Whether this git folder's ``commondir`` leads anywhere that git itself would not send it."""
    path = git_detour(folder)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return True
        content = _read(path).rstrip(b"\r\n")
    except FileNotFoundError:
        return False
    except OSError:
        return True  # what cannot be read is not known to be harmless
    if content == STOP:
        return False
    group, repository = os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))
    is_of_worktree = os.path.basename(group) == "worktrees" and repository in whole_folders
    return not (is_of_worktree and folder not in whole_folders and content == _TO_WORKTREES_REPOSITORY)


def needs_stop(path: str) -> bool:
    """Whether a worker could make this file and is to be stopped; one that is there can be covered."""
    folder, name = os.path.split(path)
    if os.path.lexists(path):
        with contextlib.suppress(OSError):
            return stat.S_ISREG(os.lstat(path).st_mode) and _read(path) == _STOPS[name]  # of a killed run
        return False
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return False
    # Of its own folder a worker can change the mode; in another's it can do no more than we can.
    return os.access(folder, os.W_OK) or os.stat(folder).st_uid == os.geteuid()


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, _READ_LIMIT_BYTES)
    finally:
        os.close(fd)


class Stop(Struct):
    """A stop that this run made, or shares with another run; `withdraw` it at the end."""

    path: str
    fd: int
    identity: tuple[int, int]

    def withdraw(self) -> None:
        """Remove the file if it is still ours and nobody else's; safe to call again."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        try:
            with contextlib.suppress(OSError):  # another run needs it, or it is gone: left alone
                self._remove(fd)
        finally:
            os.close(fd)

    def _remove(self, fd: int) -> None:
        folder = _open_folder(self.path)
        try:
            name = os.path.basename(self.path)
            if _lock(fd, fcntl.F_WRLCK) and _is_stop(folder, name, fd):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)


def open_stop(path: str) -> Stop:
    """Make a stop, or take part in one that is there.

    Raises:
        HostError: It cannot be made, or a detour has appeared in its place.
    """
    try:
        folder = _open_folder(path)
        try:
            fd = _hold(folder, path)
        finally:
            os.close(folder)
    except OSError as error:
        raise HostError(
            "git-not-protected",
            f"{path} cannot be made, and the command could make it to run commands: {error.strerror}",
            f"make {os.path.dirname(path)} writable for yourself, or give the command another folder",
        ) from error
    status = os.fstat(fd)
    return Stop(path, fd, (status.st_dev, status.st_ino))


def _hold(folder: int, path: str) -> int:
    """A descriptor of the stop in this folder, with a read lock on it."""
    name = os.path.basename(path)
    for _ in range(_ATTEMPTS):
        fd = _open_or_make(folder, name)
        if _lock(fd, fcntl.F_RDLCK):
            if _is_stop(folder, name, fd):
                return fd
            if _is_named(folder, name, fd):
                os.close(fd)
                raise HostError(
                    "git-not-protected",
                    f"{path} sends git to other settings and hooks",
                    "look at it, delete it, and do not use git there before",
                )
        os.close(fd)  # another run is just removing it
        time.sleep(_PAUSE_S)
    raise OSError(errno.EAGAIN, "another process has locked it", path)


def _open_folder(path: str) -> int:
    """The folder around, found without following links: another run's worker may plant one."""
    return kernel.open_without_links(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)


def _open_or_make(folder: int, name: str) -> int:
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for mode in (os.O_RDWR, os.O_RDONLY):  # read-only if it is another user's: it then stays
        with contextlib.suppress(FileNotFoundError, PermissionError):
            return os.open(name, flags | mode, dir_fd=folder)
    return _make(folder, name)


def _make(folder: int, name: str) -> int:
    """Make the file with its content in one step: git fails on an empty ``commondir``."""
    draft = f"{name}.{os.urandom(8).hex()}"
    fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        os.write(fd, _STOPS[name])
        if os.geteuid() == 0:
            around = os.fstat(folder)
            os.fchown(fd, around.st_uid, around.st_gid)
        _put_in_place(draft, name, folder)
    except OSError:
        os.close(fd)
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
    return fd


def _put_in_place(draft: str, name: str, folder: int) -> None:
    """Give it its name, unless another run was first; the caller looks again what stands there."""
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def _lock(fd: int, kind: int) -> bool:
    """Take a lock of the open file (fcntl(2), F_OFD_SETLK); False if another one is in the way."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


def _is_stop(folder: int, name: str, fd: int) -> bool:
    return _is_named(folder, name, fd) and os.pread(fd, _READ_LIMIT_BYTES, 0) == _STOPS[name]


def _is_named(folder: int, name: str, fd: int) -> bool:
    """Whether what is open is a file, and what stands there under the name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and os.path.samestat(status, os.fstat(fd))
