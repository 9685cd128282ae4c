"""An empty folder that holds a name while a run is on, so that the worker cannot make it.

What does not exist cannot be covered, and a settings folder that appears is obeyed by an
editor or agent at once (R138). So for the length of the run an empty folder stands there,
read-only for the worker, who can neither fill nor rename nor remove a mount point. A folder
and not a file, since git does not see empty folders: `git status` stays clean outside, and
`git add .` works inside (placeholder files are what users of other sandboxes complain of,
anthropics/claude-code#83497, #78419; openai/codex#31599).

What must stay true:

* Only a hold is removed: the folder that was made or found here, empty, with the sign in it.
  The sign is its modification time, which nobody else sets and any change of it undoes.
* Several runs may share a hold, and the last one removes it: each has a shared lock on it
  (flock(2)), and whoever removes takes the exclusive one. A worker cannot have that while its
  run is on, since its own supervisor holds the shared one.
* A killed run leaves an empty folder. The next one with that folder writable takes it over.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time

from msgspec import Struct

from stockade.errors import HostError
from stockade.sandbox import kernel

SIGN_S = 0x53544B44  # "STKD" as a time, in 2014; even, since FAT keeps two seconds
_ATTEMPTS, _PAUSE_S = 50, 0.01
# File systems without such locks (NFS wants a file open for writing): runs do not wait for each other.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_hold(path: str) -> bool:
    """Whether an empty folder of ours stands here: another run's, or a killed one's."""
    try:
        fd = kernel.open_without_links(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return _has_sign(fd)
    finally:
        os.close(fd)


def _has_sign(fd: int) -> bool:
    return int(os.fstat(fd).st_mtime) == SIGN_S and not os.listdir(fd)


class Hold(Struct):
    """A hold that this run made, or shares with another run; `withdraw` it at the end."""

    path: str
    fd: int
    identity: tuple[int, int]

    def withdraw(self) -> None:
        """Remove the folder if it is still ours and nobody else's; safe to call again."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        try:
            with contextlib.suppress(OSError):  # another run needs it, or it is gone: left alone
                self._remove(fd)
        finally:
            os.close(fd)

    def _remove(self, fd: int) -> None:
        parent = _open_parent(self.path)
        try:
            if _lock(fd, fcntl.LOCK_EX) and _has_sign(fd) and _is_named(parent, self.path, fd):
                os.rmdir(os.path.basename(self.path), dir_fd=parent)
        finally:
            os.close(parent)


def open_hold(path: str) -> Hold:
    """Make a hold, or take part in one that is there.

    Raises:
        HostError: It cannot be made, or something else has appeared in its place.
    """
    try:
        parent = _open_parent(path)
        try:
            fd = _hold(parent, path)
        finally:
            os.close(parent)
    except OSError as error:
        raise HostError(
            "settings-not-held",
            f"{path} cannot be kept empty for the run, and the command could put settings there:"
            f" {error.strerror}",
            f"make {os.path.dirname(path)} writable for yourself, or make the folder yourself",
        ) from error
    status = os.fstat(fd)
    return Hold(path, fd, (status.st_dev, status.st_ino))


def _open_parent(path: str) -> int:
    """The folder around, found without following links: another run's worker may plant one."""
    return kernel.open_without_links(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)


def _hold(parent: int, path: str) -> int:
    """A descriptor of the hold in this folder, with a shared lock on it."""
    name = os.path.basename(path)
    for _ in range(_ATTEMPTS):
        fd = _open_or_make(parent, name)
        if _lock(fd, fcntl.LOCK_SH) and _is_named(parent, path, fd):
            if _has_sign(fd):
                return fd
            os.close(fd)
            raise HostError("settings-not-held", f"{path} has just appeared", "look at it, and start again")
        os.close(fd)  # another run is just removing it
        time.sleep(_PAUSE_S)
    raise OSError(errno.EAGAIN, "another process has locked it", path)


def _open_or_make(parent: int, name: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        return os.open(name, _FOLDER, dir_fd=parent)
    draft = f"{name}.{os.urandom(8).hex()}"
    fd = _make(parent, draft)
    try:
        kernel.rename_to_free(draft, name, parent)
    except FileExistsError:
        pass  # another run was first; the caller looks again
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without that way to rename, NFS for one
            raise
        os.close(fd)
        fd = _make(parent, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(draft, dir_fd=parent)
    return fd


def _make(parent: int, name: str) -> int:
    os.mkdir(name, 0o755, dir_fd=parent)
    fd = os.open(name, _FOLDER, dir_fd=parent)
    os.fchmod(fd, 0o755)  # whatever the umask: the worker must be able to look in
    if os.geteuid() == 0:
        around = os.fstat(parent)
        os.fchown(fd, around.st_uid, around.st_gid)
    os.utime(fd, (SIGN_S, SIGN_S))
    return fd


def _lock(fd: int, kind: int) -> bool:
    """Take a lock of the open folder; False if another one is in the way."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return True


def _is_named(parent: int, path: str, fd: int) -> bool:
    """Whether what is open is what stands there under the name."""
    try:
        status = os.stat(os.path.basename(path), dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and os.path.samestat(status, os.fstat(fd))
