"""Other names of what a worker must not write, where it can write: hard links made before the run.

"Writable or executable, not both" and "settings stay as they are" are words about files, and mounts
keep them by name. A worker of an earlier run can have linked a program, a library or a setting to a
second name in a writable folder; by that name this one would rewrite it. Package managers link
too (uv, pnpm, conda), mostly to a cache outside of the view, so a second name is no reason to
refuse: it becomes read-only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from stockade.errors import HostError
from stockade.sandbox.view import is_below

OTHER_NAMES_LIMIT = 1000


def find_other_names(
    files: Sequence[str], writable: Sequence[str], read_only: Sequence[str]
) -> tuple[str, ...]:
    """Names in writable folders of files that also have a name of their own.

    Args:
        files: What may be executed or loaded, or is protected. Those of ``/usr`` are root's and are left out, but where
            the worker may write there.
        writable: Where to look: folders and files. They are walked only if a file has a second name.
        read_only: Files and folders that the worker cannot write in any case.

    Raises:
        HostError: There are too many to be covered.
    """
    wanted = {
        (status.st_dev, status.st_ino): path
        for path in files
        if _is_in(path, writable) or not is_below(path, "/usr")
        for status in _status(path)
        if status.st_nlink > 1
    }
    if not wanted:
        return ()
    inodes = {inode for _device, inode in wanted}
    found: dict[str, None] = {}
    for root in writable:
        for path in _names(root, inodes, frozenset(read_only)):
            for status in _status(path):
                if (status.st_dev, status.st_ino) in wanted and not _is_in(path, read_only):
                    found[path] = None
        if len(found) > OTHER_NAMES_LIMIT:
            raise HostError(
                "library-other-names",
                f"{len(found)} files in {root} are second names of what the worker must not write,"
                f" {next(iter(found))} for one",
                "make copies instead of hard links, or do not let the worker write there",
            )
    return tuple(found)


def files_in(places: Sequence[str]) -> Iterator[str]:
    """The files among some paths, and those in folders among them."""
    for place in places:
        yield place
        for folder, _folders, names in os.walk(place):
            yield from (os.path.join(folder, name) for name in names)


def _is_in(path: str, places: Sequence[str]) -> bool:
    return any(is_below(path, place) for place in places)


def _status(path: str) -> Iterator[os.stat_result]:
    """What is there, if it is a regular file."""
    try:
        status = os.lstat(path)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode):
        yield status


def _names(root: str, inodes: set[int], left_out: frozenset[str]) -> Iterator[str]:
    """Paths below a folder whose inode may be one of these; links are not followed."""
    if not os.path.isdir(root):
        yield root
        return
    pending = [root]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path not in left_out:
                            pending.append(entry.path)
                    elif entry.inode() in inodes:
                        yield entry.path
        except OSError:
            continue  # closed to the worker as well
