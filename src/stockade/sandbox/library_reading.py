"""Reading a folder tree for its programs, folder by folder. The tree may have been filled by a worker.

So no link is followed, folders are opened by a path without links and their files by name
from there, only regular files are opened, and without waiting. What cannot be read is taken
for a program where it could be one. What another process changes *while* the tree is in use
is out of reach of any scan: library folders are read-only for the worker, and another run
that may write them can put native code there anyhow.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable

from msgspec import Struct

from stockade.errors import HostError
from stockade.sandbox import kernel
from stockade.sandbox.elf import read_elf_at

UNKNOWN = -1
_UNSETTLED_NS = 2_000_000_000
_PROGRESS_EVERY_S = 1.0
LIMIT_ENTRIES = 1_000_000
_FILES_AT_ONCE = 64
_ASKED_FOR_BYTES = 4096
# PATH_MAX (4096 with its NUL) less a name: what is deeper cannot be named whole, and so not be covered,
# but the worker could go there step by step.
_LONGEST_FOLDER_BYTES = 4096 - 256 - 1

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
# Not there any more, or become a link, a folder, a socket or a device without a driver meanwhile.
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV})
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Rules(Struct, frozen=True, kw_only=True):
    """How trees are read.

    Attributes:
        is_root_trusted: Files that only root may write are taken to stay what they are. Wrong
            where the worker can have written as root: root's own folders, bound with an id map.
        cache_folder: Where findings are kept; empty: nowhere.
        on_progress: Told the number of entries seen so far, after each second of looking.
    """

    is_root_trusted: bool
    cache_folder: str = ""
    on_progress: Callable[[int], None] | None = None


# Whether the tree ends at a folder: its path and the names of the folders in it.
EndsAt = Callable[[str, list[str]], bool]
# Where a link (its path) leads if that matters, else an empty text.
LeadsTo = Callable[[str], str]


class Folder(Struct):
    """What one folder held, and under which stamps that holds.

    Attributes:
        path: Where it is, real.
        stamp: Its device, inode, and ctime in ns; a ctime of -1 never holds.
        folders: Names of the folders in it.
        programs: Names of the program files in it.
        watched: Names of those of its files that a worker may have written.
        watched_stamps: Device, inode and ctime of each, one after the other.
        linked: Names of those that have other names too (hard links); a new one changes the ctime.
        leads: Where links lead, for those of which that was asked.
        is_opaque: It cannot be listed and can be entered by whoever knows a name.
        is_last: The tree ends here.
    """

    path: str
    stamp: list[int]
    folders: list[str] = []
    programs: list[str] = []
    watched: list[str] = []
    watched_stamps: list[int] = []
    linked: list[str] = []
    leads: list[str] = []
    is_opaque: bool = False
    is_last: bool = False


class Reading:
    """One walk through a tree, with what was remembered of it."""

    def __init__(self, rules: Rules, ends_at: EndsAt | None, leads_to: LeadsTo | None) -> None:
        self._rules = rules
        self._ends_at = ends_at
        self._leads_to = leads_to
        self._entries = 0
        self._told_at_s = time.monotonic()

    def walk(self, root: str, remembered: dict[str, Folder]) -> list[Folder]:
        tree: dict[str, Folder] = {}
        pending = [root]
        while pending:
            path = pending.pop()
            if len(os.fsencode(path)) > _LONGEST_FOLDER_BYTES and path != root:
                above = tree[os.path.dirname(path)]
                above.is_opaque, above.stamp[2] = True, UNKNOWN
                continue
            folder = remembered.get(path)
            if folder is None or not is_unchanged(folder):
                folder = self._read_folder(path, folder)
            if folder is None:
                if path == root and os.path.lexists(root):
                    raise _unread(root, "the path goes through a link, or is no folder")
                continue
            tree[path] = folder
            if not folder.is_last:
                pending += [f"{path}/{name}" for name in folder.folders]
            self._tell(root)
        return list(tree.values())

    def _tell(self, root: str) -> None:
        if self._entries > LIMIT_ENTRIES:
            raise HostError(
                "library-too-large",
                f"{root} holds more than {LIMIT_ENTRIES} names: it cannot be searched for programs in time",
                "name the folders in exec.libraries that hold the shared objects, not those above them",
            )
        now_s = time.monotonic()
        if self._rules.on_progress is not None and now_s - self._told_at_s >= _PROGRESS_EVERY_S:
            self._told_at_s = now_s
            self._rules.on_progress(self._entries)

    def _read_folder(self, path: str, before: Folder | None) -> Folder | None:
        """What the folder holds now; None if nothing is there."""
        try:
            fd = kernel.open_without_links(path, _FOLDER_FLAGS)
            try:
                # Before the names are read: what changes meanwhile changes the stamp.
                folder = Folder(path, _stamp(os.fstat(fd)))
                self._read_entries(fd, folder, _judged(before))
            finally:
                os.close(fd)
        except OSError as error:
            return _unlisted(path, error)
        folder.is_last = self._ends_at is not None and self._ends_at(path, folder.folders)
        return folder

    def _read_entries(
        self, folder_fd: int, folder: Folder, judged: dict[str, tuple[list[int], bool, bool]]
    ) -> None:
        unread = []
        with os.scandir(folder_fd) as entries:
            for entry in entries:
                self._entries += 1
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    folder.folders.append(name)
                elif entry.is_file(follow_symlinks=False):
                    stamp, is_program, is_linked = judged.get(name, (None, False, False))
                    if stamp is None or stamp != _stamp_at(folder_fd, name):
                        unread.append(name)
                        continue
                    _watch(folder, name, stamp, is_linked=is_linked)
                    if is_program:
                        folder.programs.append(name)
                elif self._leads_to is not None and entry.is_symlink():
                    lead = self._leads_to(f"{folder.path}/{name}")
                    if lead:
                        folder.leads.append(lead)
        for start in range(0, len(unread), _FILES_AT_ONCE):
            self._read_files(folder_fd, unread[start : start + _FILES_AT_ONCE], folder)

    def _read_files(self, folder_fd: int, names: list[str], folder: Folder) -> None:
        """Judge some files: all are asked for before the first is read, so that a disk works on all."""
        opened: list[tuple[str, int]] = []
        try:
            for name in names:
                try:
                    fd = os.open(name, _FILE_FLAGS, dir_fd=folder_fd)
                except OSError as error:
                    if error.errno not in _GONE:
                        _note_unread(folder_fd, name, folder, error)
                    continue
                opened.append((name, fd))
                with contextlib.suppress(OSError):  # not on a FIFO
                    os.posix_fadvise(fd, 0, _ASKED_FOR_BYTES, os.POSIX_FADV_WILLNEED)
            for name, fd in opened:
                try:
                    self._read_file(fd, name, folder)
                except OSError as error:
                    _note_unread(folder_fd, name, folder, error)
        finally:
            for _name, fd in opened:
                os.close(fd)

    def _read_file(self, fd: int, name: str, folder: Folder) -> None:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return
        stamp = _stamp(status)  # before the content is read, as with a folder
        facts = read_elf_at(fd)
        is_root_s = status.st_uid == 0 and not status.st_mode & 0o022
        if not (is_root_s and self._rules.is_root_trusted):
            _watch(folder, name, stamp, is_linked=status.st_nlink > 1)
        if facts is not None and facts.kind == "program":
            folder.programs.append(name)


def is_unchanged(folder: Folder) -> bool:
    return are_unchanged("", [folder.path], folder.stamp) and are_unchanged(
        f"{folder.path}/", folder.watched, folder.watched_stamps
    )


def are_unchanged(prefix: str, names: list[str], stamps: list[int]) -> bool:
    """Whether all these stand as they were. Nearly all of a warm start is spent here."""
    lstat = os.lstat
    numbers = iter(stamps)
    for name, device, inode, ctime_ns in zip(names, numbers, numbers, numbers, strict=True):
        try:
            status = lstat(prefix + name)
        except OSError:
            return False
        if status.st_ctime_ns != ctime_ns or status.st_ino != inode or status.st_dev != device:
            return False
    return True


def _judged(before: Folder | None) -> dict[str, tuple[list[int], bool, bool]]:
    """Of the watched files, the stamp, whether it is a program and has other names, where that can hold."""
    if before is None:
        return {}
    numbers = iter(before.watched_stamps)
    stamps = zip(numbers, numbers, numbers, strict=True)
    programs, linked = set(before.programs), set(before.linked)
    return {
        name: (list(stamp), name in programs, name in linked)
        for name, stamp in zip(before.watched, stamps, strict=True)
        if stamp[2] != UNKNOWN
    }


def _watch(folder: Folder, name: str, stamp: list[int], *, is_linked: bool = False) -> None:
    folder.watched.append(name)
    folder.watched_stamps += stamp
    if is_linked:
        folder.linked.append(name)


def _stamp(status: os.stat_result) -> list[int]:
    """Device, inode, ctime; a ctime so young that a later change may leave it as it is never holds."""
    is_settled = status.st_ctime_ns < time.time_ns() - _UNSETTLED_NS
    return [status.st_dev, status.st_ino, status.st_ctime_ns if is_settled else UNKNOWN]


def _stamp_at(folder_fd: int, name: str) -> list[int] | None:
    try:
        return _stamp(os.stat(name, dir_fd=folder_fd, follow_symlinks=False))
    except OSError:
        return None


def _note_unread(folder_fd: int, name: str, folder: Folder, error: OSError) -> None:
    """Judge a file that cannot be read: it may be a program, unless it is gone.

    Its mode may still permit to start it. And nothing that cannot be read can be loaded as a
    library, so to cover it takes nothing away.
    """
    _stop_if_exhausted(folder.path, error)
    stamp = _stamp_at(folder_fd, name)
    if stamp is not None:
        # Only for want of rights does this hold until the stamp changes; a failing disk may recover.
        _watch(folder, name, stamp if error.errno == errno.EACCES else [*stamp[:2], UNKNOWN])
        folder.programs.append(name)


def _unlisted(path: str, error: OSError) -> Folder | None:
    """Judge a folder that cannot be listed: the worker, who has no more rights, may know names in it."""
    _stop_if_exhausted(path, error)
    if error.errno in _GONE:
        return None
    try:
        stamp = _stamp(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # gone, or in a folder that cannot be entered
    if error.errno == errno.EACCES:
        return Folder(path, stamp, is_opaque=os.access(path, os.X_OK))
    return Folder(path, [*stamp[:2], UNKNOWN], is_opaque=True)  # a failing disk; it may recover


def _stop_if_exhausted(path: str, error: OSError) -> None:
    if error.errno in _EXHAUSTED:
        raise _unread(
            path, os.strerror(error.errno or 0), "raise the limit on open files (ulimit -n)"
        ) from error


def _unread(path: str, why: str, hint: str | None = None) -> HostError:
    return HostError("library-unread", f"{path} cannot be searched for programs: {why}", hint)
