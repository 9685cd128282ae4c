"""A folder of small files that nobody but us may have written: what a scan remembers.

Who can write here can say that a program is none, so nothing is read that somebody else
owns or may write, that is a link, or that has a second name. An ordinary user's worker
has the user's uid, and no check of ownership tells the two apart: the folder must not be
visible inside. Nothing here is needed: what cannot be read is scanned again, and what
cannot be written is scanned again next time.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Iterator

# A tree of 200,000 files takes 20 MB.
_LIMIT_BYTES = 64 * 1024 * 1024
# Each folder that was ever named in `exec.libraries` leaves a file; the oldest go.
_LIMIT_FILES = 64

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def cache_name(path: str) -> str:
    """The file's name for what belongs to a path.

    Two paths may share one: its content says whose it is, so the second costs time, no more.
    """
    return f"{zlib.crc32(os.fsencode(path)):08x}.json"


def load_cached(folder: str, name: str) -> bytes:
    """The content of a file of the cache; empty if there is none that we can have written."""
    with contextlib.suppress(OSError), _opened(folder) as folder_fd:
        fd = os.open(name, _READ_FLAGS, dir_fd=folder_fd)
        try:
            status = os.fstat(fd)
            is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if is_file and _is_ours(status) and status.st_size <= _LIMIT_BYTES:
                return os.read(fd, status.st_size)  # one that grew or shrank meanwhile does not decode
        finally:
            os.close(fd)
    return b""


def save_cached(folder: str, name: str, content: bytes) -> bool:
    """Put a file into the cache, whole or not at all; makes the folder (0700). False: not saved."""
    if len(content) > _LIMIT_BYTES:
        return False
    fresh = f".{name}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        with _opened(folder) as folder_fd:
            try:
                _write(folder_fd, fresh, content)
                os.rename(fresh, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(fresh, dir_fd=folder_fd)
                raise
            _remove_oldest(folder_fd)
            return True
    return False


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    fd = os.open(folder, _FOLDER_FLAGS)
    try:
        if not _is_ours(os.fstat(fd)):
            raise PermissionError(f"{folder} is somebody else's")
        yield fd
    finally:
        os.close(fd)


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _write(folder_fd: int, name: str, content: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder_fd)  # of a process that had our number and was killed
    fd = os.open(name, _WRITE_FLAGS, 0o600, dir_fd=folder_fd)
    with open(fd, "wb") as file:
        file.write(content)


def _remove_oldest(folder_fd: int) -> None:
    names = os.listdir(folder_fd)
    if len(names) <= _LIMIT_FILES:
        return
    by_age = sorted(names, key=lambda name: os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mtime)
    for name in by_age[: len(names) - _LIMIT_FILES]:
        os.unlink(name, dir_fd=folder_fd)
