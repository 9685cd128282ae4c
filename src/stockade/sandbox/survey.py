"""One walk through a folder that is to be shown, or was written: what lies in it that matters to the host.

The walk follows no link: each folder is opened by a path in which none may be one, since a
worker of another run may swap a folder for a link at any moment (R134).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from msgspec import Struct

from stockade.errors import HostError
from stockade.ledger.record import is_run_id
from stockade.sandbox import kernel
from stockade.sandbox.detour import NAME as DETOUR_NAME
from stockade.sandbox.view import is_below

# Enough for a monorepo with its node_modules (a second or so of walking); beyond it we refuse
# rather than guess, unless nothing there can be reached (see `Survey.is_complete`).
SURVEY_LIMIT_ENTRIES = 1_000_000


class Survey(Struct):
    """What a walk through a folder found.

    Attributes:
        doors: Unix sockets and FIFOs: something on the host answers there.
        git_folders: Folders that git would run hooks of, or obey settings in.
        linked_folders: Folders that are git's for a linked work tree, or look like it: they
            have a ``HEAD`` and take all else from another git folder.
        git_files: Files named ``.git`` (work trees and submodules).
        git_links: Links of that name.
        shelves: Folders of ledgers: records of other runs.
        closed: Folders that could not be listed and yet be passed through, or opened by their owner.
        privileged: Device nodes, and files that give rights to whoever starts them (only if asked for).
        entries: How many names were seen.
        is_complete: False if the walk stopped at its limit.
    """

    doors: list[str]
    git_folders: list[str]
    linked_folders: list[str]
    git_files: list[str]
    git_links: list[str]
    shelves: list[str]
    closed: list[str]
    privileged: list[str]
    entries: int = 0
    is_complete: bool = True


def survey(
    root: str, *, privileged_since_s: float | None = None, limit: int = SURVEY_LIMIT_ENTRIES
) -> Survey:
    """Walk a folder without following links.

    Args:
        root: An absolute path without links.
        privileged_since_s: Also look for files with rights: any set-user-id or set-group-id
            bit, and capabilities on files that have changed since this time.
        limit: Stop after so many names.
    """
    found = Survey([], [], [], [], [], [], [], [])
    pending = [root]
    while pending:
        folder = pending.pop()
        names = set()
        for entry, path in _entries(folder, found):
            found.entries += 1
            name = entry.name.lower()  # some file systems find a name in any spelling
            names.add(name)
            if entry.is_dir(follow_symlinks=False):
                pending.append(path)
            elif entry.is_symlink():
                if name == ".git":
                    found.git_links.append(path)
            elif entry.is_file(follow_symlinks=False):
                if name == ".git":
                    found.git_files.append(path)
                if privileged_since_s is not None and _is_privileged(entry, path, privileged_since_s):
                    found.privileged.append(path)
            else:
                _note_special(found, entry, path)
        if _RECORDS in names and is_run_id(os.path.basename(folder)):
            shelf = os.path.dirname(folder)
            if shelf not in found.shelves:
                found.shelves.append(shelf)
        if "head" in names:  # beside it these make a folder one that git accepts, whatever they are
            _note_git(found, folder, names)
        if found.entries > limit:
            found.is_complete = False
            break
    return found


def _note_git(found: Survey, folder: str, names: set[str]) -> None:
    if not os.path.lexists(f"{folder}/HEAD"):
        return  # a file called `head` where names are told apart by their spelling
    if "objects" in names:
        found.git_folders.append(folder)
    elif DETOUR_NAME in names:
        found.linked_folders.append(folder)


def _entries(folder: str, found: Survey) -> Iterator[tuple[os.DirEntry[str], str]]:
    try:
        fd = kernel.open_without_links(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        if _could_be_used(folder):
            found.closed.append(folder)
        return
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # too deep for a path, and still there step by step
            found.closed.append(folder)
        return  # gone, or a link by now
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                yield entry, f"{folder}/{entry.name}" if folder != "/" else f"/{entry.name}"
    except OSError:
        return
    finally:
        os.close(fd)


def _could_be_used(folder: str) -> bool:
    """We may not list it. The worker can do no more than we, but for a folder of its own that is enough."""
    with contextlib.suppress(OSError):
        return os.lstat(folder).st_uid == os.geteuid() or os.access(folder, os.X_OK)
    return False


def _note_special(found: Survey, entry: os.DirEntry[str], path: str) -> None:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
        found.doors.append(path)
    elif stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        found.privileged.append(path)


def _is_privileged(entry: os.DirEntry[str], path: str, since_s: float) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            return True
        # The change time is the kernel's own and cannot be set back.
        return status.st_ctime >= since_s and bool(os.getxattr(path, _CAPABILITY, follow_symlinks=False))
    except OSError:
        return False


_CAPABILITY = "security.capability"
_RECORDS = "records.jsonl"  # ledger/store.py


def refuse_doors(root: str, found: Survey, hidden: tuple[str, ...]) -> None:
    """Refuse to show a folder in which something on the host answers.

    Raises:
        HostError: Names the first such path, or says that the folder cannot be searched.
    """

    def seen(paths: list[str]) -> list[str]:
        return [path for path in paths if not any(is_below(path, hide) for hide in hidden)]

    if open_doors := seen(found.doors):
        more = f" (and {len(open_doors) - 1} more)" if len(open_doors) > 1 else ""
        raise HostError(
            "socket-in-view",
            f"{open_doors[0]} is a socket or FIFO{more}: a process of this host would answer there",
            f"stop what made it and delete it, or hide it: files: {{hide: [{open_doors[0]}]}}",
        )
    if closed := seen(found.closed):
        raise HostError(
            "view-not-searchable",
            f"{closed[0]} cannot be listed by you, and the command could still reach into it: nobody can say"
            " whether a process of this host answers there",
            f"make it readable (chmod u+r), or hide it: files: {{hide: [{closed[0]}]}}",
        )
    if not found.is_complete:
        raise HostError(
            "view-too-large",
            f"{root} holds more than {found.entries} names: it cannot be searched for sockets in time",
            "use a smaller folder as workspace",
        )


def bound_sockets(places: tuple[str, ...], listing: str = "/proc/net/unix") -> tuple[str, ...]:
    """Unix sockets of the host that processes have bound in places which are too large to walk.

    The kernel lists them with the path that the process gave (proc_pid_net(5)); what belongs to another
    network namespace, or was named by a relative path, is not among them.
    """
    found = []
    with contextlib.suppress(OSError), open(listing, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            path = line[line.find(" /") + 1 :].rstrip("\n") if " /" in line else ""
            if path and any(is_below(path, place) for place in places):
                found.append(path)
    return tuple(sorted({path for path in map(os.path.realpath, found) if _is_socket(path)}))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
