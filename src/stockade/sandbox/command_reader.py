"""What a waiting execve is about: its path, its arguments, and the file that it would run.

Everything here comes from a hostile process: strings may be endless, unmapped or
changing, links may loop, the file may be a device. What cannot be read is reported as
such, and is a denial. Where links of procfs could come into it a path is walked by hand,
one component at a time, since ``/proc/self`` means the worker and not this process.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from msgspec import Struct

from stockade.decision.script import HEAD_BYTES, parse_script
from stockade.sandbox import kernel
from stockade.sandbox.eye import Sighting

PATH_LIMIT = 4096
ARGUMENT_LIMIT = 1024
ARGUMENTS_LIMIT = 64
ARGUMENTS_BYTES = 4096  # of all together: each is looked through for secrets, while everybody waits
_PAGE = 4096
_LINKS_DEEP = 40  # as the kernel
_STEPS = (
    4096  # twice what one path can hold; with links in it a path could have 80,000, half a second of ours
)
_AT_FDCWD, _AT_EMPTY_PATH, _AT_EXECVE_CHECK = -100, 0x1000, 0x10000
# What the kernel would say by itself about a path that leads to no file.
_KERNEL_SAYS = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES))


class CommandTry(Struct, frozen=True, kw_only=True):
    """One execve that waits.

    Attributes:
        path: As it was given, empty for a descriptor alone.
        argv: The arguments, cut to `ARGUMENTS_LIMIT`, `ARGUMENT_LIMIT` and `ARGUMENTS_BYTES`.
        identity: Device and inode of the file; None if there is none.
        file: Its path as the kernel names it, ``/memfd:x (deleted)`` for one in memory.
        interpreter: What its ``#!`` line starts (`Script.text`), empty if it has none.
        nothing: The errno that says why there is nothing to run; 0 for a regular file with a bit that
            permits execution, and for what could not be looked at.
        unreadable: Why it could not be looked at; empty if it could.
        is_check: It is only asked whether this may run (AT_EXECVE_CHECK, kernel 6.14): nothing will.
    """

    path: str = ""
    argv: tuple[str, ...] = ()
    identity: tuple[int, int] | None = None
    file: str = ""
    interpreter: str = ""
    nothing: int = 0
    unreadable: str = ""
    is_check: bool = False


def read_command(sighting: Sighting, *, is_at: bool) -> CommandTry:
    """Read what a sighted execve (or execveat, `is_at`) wants. Raises nothing."""
    args = sighting.args
    folder, flags = (_signed(args[0]), args[4] & 0xFFFFFFFF) if is_at else (_AT_FDCWD, 0)
    path_at, argv_at = args[1:3] if is_at else args[:2]
    path = b""
    try:
        memory = Memory(sighting.pid)
        path = memory.string(path_at, PATH_LIMIT)
        argv = tuple(memory.arguments(argv_at))
    except OSError as error:
        why = f"its memory cannot be read: {error.strerror}"
        return CommandTry(path=os.fsdecode(path), unreadable=why)
    shown, words = os.fsdecode(path), tuple(map(os.fsdecode, argv))
    is_check = bool(flags & _AT_EXECVE_CHECK)
    try:
        fd = open_target(
            sighting.pid, folder, path, is_by_descriptor=bool(flags & _AT_EMPTY_PATH) and not path
        )
    except OSError as error:
        if error.errno in _KERNEL_SAYS:
            return CommandTry(path=shown, argv=words, nothing=error.errno)
        why = f"its path cannot be followed: {error.strerror}"
        return CommandTry(path=shown, argv=words, unreadable=why, is_check=is_check)
    try:
        return _look_at(fd, shown, words, is_check)
    finally:
        os.close(fd)


def _look_at(fd: int, path: str, argv: tuple[str, ...], is_check: bool) -> CommandTry:
    status = os.fstat(fd)
    is_program = stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)
    script = parse_script(_head_of(fd)) if is_program else None
    return CommandTry(
        path=path,
        argv=argv,
        identity=(status.st_dev, status.st_ino),
        file=os.readlink(f"/proc/self/fd/{fd}"),
        interpreter="" if script is None else script.text,
        is_check=is_check,
        nothing=0 if is_program else errno.EACCES,  # as execve(2) says of folders, devices, files without x
    )


def _head_of(fd: int) -> bytes:
    """The first bytes of a regular file held by an O_PATH descriptor; empty if we may not read it."""
    try:
        readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(readable, HEAD_BYTES)
    finally:
        os.close(readable)


# --- memory ------------------------------------------------------------------------------------


class Memory:
    """Strings of another process. A page is read once: arguments mostly lie side by side.

    Raises, in all that reads:
        OSError: It cannot be read (EFAULT), or a string is longer than its limit (ENAMETOOLONG).
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pages: dict[int, bytes] = {}

    def string(self, address: int, limit: int) -> bytes:
        """A string up to its NUL, which must come within the limit."""
        found = b""
        while len(found) < limit:
            page, start = self._page(address + len(found))
            stop = start + limit - len(found)
            end = page.find(b"\0", start, stop)
            if end >= 0:
                return found + page[start:end]
            found += page[start:stop]
        raise OSError(errno.ENAMETOOLONG, "it has no end")

    def arguments(self, address: int) -> Iterator[bytes]:
        """The strings of an argument vector, the first ones and the beginnings of long ones."""
        if address == 0:
            return
        left = ARGUMENTS_BYTES
        for index in range(ARGUMENTS_LIMIT):
            pointer = int.from_bytes(self._bytes(address + 8 * index, 8), "little")
            if pointer == 0:
                return
            if left <= 0:
                break
            try:
                word = self.string(pointer, ARGUMENT_LIMIT)
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                word = self._bytes(pointer, 64) + "…".encode()
            left -= len(word)
            yield word
        yield "…".encode()

    def _bytes(self, address: int, length: int) -> bytes:
        found = b""
        while len(found) < length:
            page, start = self._page(address + len(found))
            found += page[start : start + length - len(found)]
        return found

    def _page(self, address: int) -> tuple[bytes, int]:
        """The page of an address, and where in it the address lies."""
        start = address % _PAGE
        page = self._pages.get(address - start)
        if page is None:
            page = self._pages[address - start] = kernel.read_memory(self._pid, address - start, _PAGE)
        if len(page) < _PAGE:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return page, start


def _signed(word: int) -> int:
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word & 0x80000000 else word


# --- paths -------------------------------------------------------------------------------------


def open_target(pid: int, folder: int, path: bytes, *, is_by_descriptor: bool = False) -> int:
    """An O_PATH descriptor of the file that a path leads to in the view of another process.

    Args:
        pid: The calling thread.
        folder: Its descriptor that a relative path starts from, or AT_FDCWD.
        path: As given.
        is_by_descriptor: The descriptor itself is meant (``AT_EMPTY_PATH``).

    Raises:
        OSError: As the kernel would say it, or EPERM for what may not be looked at.
    """
    if is_by_descriptor:
        return os.open(f"/proc/{pid}/fd/{folder}", os.O_PATH | os.O_CLOEXEC)
    if not path:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    place = "root" if path.startswith(b"/") else "cwd" if folder == _AT_FDCWD else f"fd/{folder}"
    start = os.open(f"/proc/{pid}/{place}", os.O_PATH | os.O_CLOEXEC)
    try:
        return _open_by_kernel(start, path)
    except OSError:
        pass  # it may be right, and only the walk knows
    finally:
        os.close(start)
    walk = _Walk(pid)
    try:
        return walk.follow(path, f"/proc/{pid}/{place}")
    finally:
        walk.close()


def _open_by_kernel(start: int, path: bytes) -> int:
    """The same by one call of ours, for most commands: where the way is the same for us and for the worker.

    It differs where ``/proc/self`` or a magic link comes into it. Then this fails: magic links are
    refused, and in the worker's procfs there is no ``self`` for us.
    """
    return kernel.open_as_worker(start, path, os.O_PATH, is_root=path.startswith(b"/"))


class _Walk:
    """One path, one component at a time. `here` is where it has come to."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._here = -1
        self._links = 0

    def close(self) -> None:
        if self._here >= 0:
            os.close(self._here)
            self._here = -1

    def follow(self, path: bytes, start: str) -> int:
        self._go(os.open(start, os.O_PATH | os.O_CLOEXEC))
        pending = _parts(path)[::-1]  # the next one is the last
        for _ in range(_STEPS):
            if not pending:
                found, self._here = self._here, -1
                return found
            pending += self._step(pending.pop())[::-1]
        raise OSError(errno.EOVERFLOW, "it has too many parts")

    def _step(self, name: bytes) -> list[bytes]:
        """Go one component on; gives the components of a link that take its place."""
        if name in (b"self", b"thread-self") and self._is_proc_root():
            return _parts(self._own_folder(name))
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._here)
        status = os.fstat(found)
        if not stat.S_ISLNK(status.st_mode):
            self._go(found)
            return []
        self._links += 1
        try:
            if self._links > _LINKS_DEEP:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            text = os.readlink(b"", dir_fd=found)
        finally:
            os.close(found)
        if self._is_on_proc(status) and not self._is_proc_root():
            # A magic link (exe, cwd, root, fd/3): what it shows is no path, so it is the kernel that follows.
            self._go(os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=self._here))
            return []
        if text.startswith(b"/"):
            self._go(os.open(f"/proc/{self._pid}/root", os.O_PATH | os.O_CLOEXEC))
        return _parts(text)

    def _go(self, fd: int) -> None:
        self.close()
        self._here = fd

    def _is_proc_root(self) -> bool:
        """Inodes of procfs begin with 1, which is its root (fs/proc/root.c: PROC_ROOT_INO)."""
        status = os.fstat(self._here)
        return status.st_ino == 1 and self._is_on_proc(status)

    def _is_on_proc(self, status: os.stat_result) -> bool:
        """On the worker's procfs, whose device is asked for only where a path may lead to it."""
        return status.st_dev == _device_of(f"/proc/{self._pid}/root/proc")

    def _own_folder(self, name: bytes) -> bytes:
        """What ``/proc/self`` is for the worker, by the numbers of its own procfs."""
        with open(f"/proc/{self._pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file if b":" in line)
        group, thread = fields[b"NStgid"].split()[-1], fields[b"NSpid"].split()[-1]
        return group if name == b"self" else group + b"/task/" + thread


def _parts(path: bytes) -> list[bytes]:
    return [part for part in path.split(b"/") if part not in (b"", b".")]


def _device_of(path: str) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None
