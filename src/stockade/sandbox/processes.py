"""One process of the sandbox, read from outside through a folder of its procfs that is held open.

Why a folder held open: a process id can be given to another process at any time, an open
``/proc/N`` cannot. What is read through it belongs to that process, or the read fails.

All of it works on a process that made itself undumpable, for root and for the ordinary user
who owns the sandbox's user namespace: its ``fd`` folder then belongs to root, but ``fdinfo``
is guarded by a right that the owner has (proc(5), ptrace(2) "access mode checking"), and
tells the inode since Linux 5.14.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from msgspec import Struct

# A command line may have megabytes (execve(2)); what is left out of the view is in the record of its exec.
ARGV_BYTES = 2048
ARGV_WORDS = 32
LEFT_OUT = b"\xe2\x80\xa6"
_STAT_BYTES = 4096
_INFO_BYTES = 512
# proc_pid_status(5); the kernel escapes line ends in the name above them
_IDS = re.compile(rb"^Tgid:\s*(\d+)$.*?^NStgid:.*?(\d+)$", re.MULTILINE | re.DOTALL)
_INFO = re.compile(rb"^mnt_id:\s*(\d+)$.*?^ino:\s*(\d+)$", re.MULTILINE | re.DOTALL)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_HANDLE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Effort:
    """How much one look-up may still look at: a worker chooses how many descriptors there are."""

    def __init__(self, links: int) -> None:
        self.left = links

    def spend(self, count: int = 1) -> bool:
        """Take so many; False if there were not enough left."""
        self.left -= count
        return self.left >= 0


class ProcessStat(Struct, frozen=True):
    """What ``/proc/N/stat`` says, see proc_pid_stat(5).

    Attributes:
        parent: The parent's id in the namespace of that procfs.
        start_time: In clock ticks since boot.
        image: Where program, stack and arguments lie. A fork keeps all of it and an exec
            draws it anew, so two equal images are one exec. Empty if it is not shown to us.
    """

    parent: int
    start_time: int
    image: tuple[bytes, ...]


def parse_stat(text: bytes) -> ProcessStat:
    """Read the one line of ``stat``. The name in it is the worker's and may hold anything.

    Raises:
        ValueError: It is no such line.
    """
    words = text[text.rindex(b")") + 2 :].split()  # from field 3 on
    if len(words) < 49:
        raise ValueError("a stat line has 52 fields")
    # startcode 26, startstack 28, arg_start 48, arg_end 49, env_start 50, env_end 51
    image = tuple(words[number - 3] for number in (26, 28, 48, 49, 50, 51))
    return ProcessStat(int(words[1]), int(words[19]), image if words[25] != b"0" else ())


def parse_argv(data: bytes) -> tuple[bytes, ...]:
    """Whole words of a ``cmdline``, as far as it was read; what is left out is marked.

    A word that was cut is left out, since what makes it a secret could be in the other half.
    """
    words = data.split(b"\0")
    rest = words.pop()
    if len(words) > ARGV_WORDS:
        return (*words[:ARGV_WORDS], LEFT_OUT)
    if len(data) >= ARGV_BYTES and rest:
        return (*words, LEFT_OUT)
    return (*words, rest) if rest else tuple(words)  # a program that renames itself may end without NUL


def parse_info(data: bytes) -> tuple[int, int] | None:
    """Mount and inode of a descriptor, from its ``fdinfo``."""
    found = _INFO.search(data)
    return None if found is None else (int(found[1]), int(found[2]))


def read_start_time(pid: int) -> int | None:
    """When a process of our own PID namespace began, in clock ticks; with the pid it names one process."""
    stat = read_stat(pid)
    return None if stat is None else stat.start_time


def read_ids(thread: int) -> tuple[int, int] | None:
    """The process of a thread: its id in our own PID namespace and in its innermost one."""
    with suppress(OSError):
        found = _IDS.search(_read_path(f"/proc/{thread}/status"))
        return None if found is None else (int(found[1]), int(found[2]))
    return None


def read_stat(pid: int) -> ProcessStat | None:
    """What the kernel says of a process of our own PID namespace, None if it has ended."""
    try:
        return parse_stat(_read_path(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None


def read_program(pid: int) -> str:
    """The path of the file that a process runs, as its own mounts name it; empty if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def read_children(pid: int) -> list[int]:
    """The children of a process of our own PID namespace, as far as the kernel lists them."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def read_innermost_pid(pid: int) -> int | None:
    """The id that a process of our own PID namespace has in its innermost one (proc_pid_status(5), NSpid)."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return None


class ProcessFolder:
    """A process, or one thread of it, as an open folder of a procfs; close it after use.

    Args:
        root: An open folder of a procfs.
        path: ``N``, or ``N/task/T`` for what only a thread sees.
        sockets: The mount that all sockets are on, as ``fdinfo`` numbers it.

    Raises:
        OSError: It has ended, as in every call below.
    """

    def __init__(self, root: int, path: str, sockets: int) -> None:
        self.path = path
        self.pid = int(path.partition("/")[0])
        self.is_thread = "/" in path
        self._sockets = sockets
        self._fd = os.open(path, _HANDLE, dir_fd=root)

    def __enter__(self) -> ProcessFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    def stat(self) -> ProcessStat:
        """Read ``stat``. Raises ValueError as well, if it is not what it should be."""
        return parse_stat(_read(self._fd, "stat", _STAT_BYTES))

    def program(self) -> str:
        """The path of the program as the process's own mounts name it: the kernel's word."""
        return os.readlink("exe", dir_fd=self._fd)

    def argv(self) -> tuple[bytes, ...]:
        """What the process shows as its arguments; it can overwrite them."""
        return parse_argv(_read(self._fd, "cmdline", ARGV_BYTES))

    def threads(self) -> list[str]:
        """The ids of its threads."""
        folder = os.open("task", _FOLDER, dir_fd=self._fd)
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def find_socket(self, inode: int, effort: Effort) -> str | None:
        """The number of a descriptor that is this socket; None if it has none, or the effort is spent."""
        folder, is_socket = self._open_descriptors()
        try:
            for number in reversed(os.listdir(folder)):  # the newest have mostly the highest numbers
                if not effort.spend():
                    return None
                if is_socket(folder, number, inode):
                    return number
        finally:
            os.close(folder)
        return None

    def has_socket(self, number: str, inode: int) -> bool:
        """Whether that descriptor is still this socket."""
        folder, is_socket = self._open_descriptors()
        try:
            return is_socket(folder, number, inode)
        finally:
            os.close(folder)

    def _open_descriptors(self) -> tuple[int, Callable[[int, str, int], bool]]:
        """The folder that tells of its descriptors, and how to read it."""
        try:
            return os.open("fd", _FOLDER, dir_fd=self._fd), _is_linked
        except PermissionError:
            return os.open("fdinfo", _FOLDER, dir_fd=self._fd), self._is_described

    def _is_described(self, folder: int, number: str, inode: int) -> bool:
        """Compared with the mount too: files of other file systems have inodes of the same number."""
        try:
            return parse_info(_read(folder, number, _INFO_BYTES)) == (self._sockets, inode)
        except FileNotFoundError:
            return False


def _is_linked(folder: int, number: str, inode: int) -> bool:
    try:
        return os.readlink(number, dir_fd=folder) == f"socket:[{inode}]"
    except FileNotFoundError:  # closed since the folder was listed
        return False


def probe_socket_mount() -> int:
    """The mount that all sockets of this kernel are on, as ``fdinfo`` numbers it."""
    with socket.socket(socket.AF_UNIX) as sample, open(f"/proc/self/fdinfo/{sample.fileno()}", "rb") as file:
        found = parse_info(file.read(_INFO_BYTES))
    return -1 if found is None else found[0]


def _read_path(path: str) -> bytes:
    """A small file of procfs, in one read: a buffered file costs three times as much."""
    return _read(None, path, _STAT_BYTES)


def _read(folder: int | None, name: str, limit: int) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(file, limit)
    finally:
        os.close(file)
