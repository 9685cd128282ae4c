"""Other names of files that may run or be loaded: by a hard link a worker could write what it may execute.

"Writable xor executable" is kept by a read-only mount over the file or folder, and so are settings
that other programs obey (finish_view.py); a mount covers one name. An earlier worker, or a build
(cargo, uv and pnpm link files instead of copying them), can have left a second name in a folder
that is writable now.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from stockade.errors import HostError
from stockade.sandbox.library_reading import LIMIT_ENTRIES

LIMIT_NAMES = 1000
"""Each takes a mount, some 15 µs; beyond this a folder of links is meant, and is better named itself."""


def find_other_names(
    files: Iterable[str], *, writable: Sequence[str], read_only: Sequence[str] = ()
) -> list[str]:
    """Look in writable folders for further names of these files; nothing is searched if they have none.

    Args:
        files: Real paths of what may run or be loaded, or must not change; folders among them do not count.
        writable: What a worker may write: real paths of folders and files.
        read_only: What of it will be read-only anyway; it is passed over.

    Raises:
        HostError: There are too many of them, or too many names to look at.
    """
    wanted = {}
    for path in files:
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            wanted[status.st_dev, status.st_ino] = path
    if not wanted:
        return []
    numbers = {number for _device, number in wanted}
    found = []
    for seen, (path, number) in enumerate(_names(writable, frozenset(read_only))):
        if number in numbers and _identity(path) in wanted:
            found.append(path)
        if seen > LIMIT_ENTRIES or len(found) > LIMIT_NAMES:
            first = next(iter(wanted.values()))
            raise HostError(
                "too-many-links",
                f"{first} and others that the worker must not write have hard links, too many to look for"
                f" or to close ({len(found)} found) in what the worker may write",
                "copy those files instead of linking them, or open a smaller folder for writing",
            )
    return found


def files_in(places: Iterable[str]) -> Iterator[str]:
    """Some paths, and those of all files below them."""
    for place in places:
        yield place
        for folder, _folders, names in os.walk(place):
            yield from (os.path.join(folder, name) for name in names)


def _names(roots: Iterable[str], passed_over: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Files below some folders, each with its inode's number as the folder says it. No link is followed."""
    pending = [root for root in roots if root not in passed_over]
    while pending:
        folder = pending.pop()
        try:
            entries = os.scandir(folder)
        except NotADirectoryError:
            yield folder, os.lstat(folder).st_ino
            continue
        except OSError:  # gone meanwhile, or closed to us and so to the worker
            continue
        with entries:
            for entry in entries:
                if entry.path in passed_over:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.inode()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
