"""What lies in an evidence folder: every file with its size and SHA-256, in order.

Two files stay outside: `evidence.json` holds the signed list itself, and `review.json` is written
later, by somebody else, and is bound to the statement instead. Everything else is either on the
list, as it was, or the folder does not verify.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from stockade.errors import InternalError, UserError

ENVELOPE_NAME = "evidence.json"
REVIEW_NAME = "review.json"
OUTSIDE = frozenset((ENVELOPE_NAME, REVIEW_NAME))
_PIECE_BYTES = 1 << 20


class FileEntry(Struct, frozen=True):
    """One file: its path below the folder with `/`, its length, its digest in hex."""

    path: str
    size_bytes: int
    sha256: str


class Fault(Struct, frozen=True):
    """Something that is not as it was signed, and which file it is about."""

    file: str
    problem: str


def list_files(folder: Path) -> tuple[FileEntry, ...]:
    """Every file below the folder, sorted by path.

    Raises:
        UserError: A folder may not be read.
        InternalError: A link or a special file lies there, or a name that is not text: it could not be
            verified on another machine, so nothing may be signed.
    """
    entries = []
    for path, is_regular in _walk(folder):
        if path in OUTSIDE:
            continue
        if not is_regular or not _is_text(path) or find_path_fault(path):
            raise InternalError("odd-evidence-file", f"{folder}: {path!r} cannot stand in an evidence record")
        entries.append(read_entry(folder, path))
    return tuple(sorted(entries, key=lambda entry: entry.path))


def read_entry(folder: Path, path: str, size_bytes: int | None = None) -> FileEntry:
    """Measure one file, following no link in its last part.

    Args:
        size_bytes: What is expected: a file of another size is not read, it may be endless.

    Raises:
        OSError: It cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    with open(
        os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0
    ) as file:
        present_bytes = os.fstat(file.fileno()).st_size
        if size_bytes not in (None, present_bytes):
            return FileEntry(path, present_bytes, "")
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
    return FileEntry(path, size, digest.hexdigest())


def compare_files(folder: Path, wanted: Iterable[FileEntry]) -> list[Fault]:
    """What differs between the folder and the signed list; nothing outside the folder is opened."""
    listed: dict[str, FileEntry] = {}
    faults = []
    for entry in wanted:
        if fault := find_path_fault(entry.path):
            faults.append(Fault(show(entry.path), f"its path is refused: {fault}"))
        elif entry.path in listed:
            faults.append(Fault(show(entry.path), "it is listed twice"))
        else:
            listed[entry.path] = entry
    present = dict(_walk(folder))
    for path in sorted((present.keys() | listed.keys()) - OUTSIDE):
        if problem := _compare_one(folder, path, present.get(path), listed.get(path)):
            faults.append(Fault(show(path), problem))
    return faults


def _compare_one(folder: Path, path: str, is_regular: bool | None, entry: FileEntry | None) -> str:
    if is_regular is None:
        return "it is missing"
    if entry is None:
        return "it is not on the signed list"
    if not is_regular:
        return "it is a link or a special file"
    try:
        found = read_entry(folder, path, entry.size_bytes)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if found.size_bytes != entry.size_bytes:
        return f"it has {found.size_bytes} bytes instead of {entry.size_bytes}"
    return "" if found.sha256 == entry.sha256 else "its content is not what was signed"


def find_path_fault(path: str) -> str:
    """Why a path may not stand on a list; empty if it may.

    A list that comes with the evidence is foreign: a path in it must not lead out of the folder.
    """
    if path in OUTSIDE:
        return "this file is outside the list by its nature"
    if "\0" in path:
        return "it holds a NUL"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "it is absolute, or has a part that is empty, . or .."
    return ""


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every entry that is no folder, with whether it is a regular file; links are not followed.

    A folder that cannot be opened, its path being too long say, stands for what is in it: no record has
    such a one.
    """
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            entries = _list_folder(folder / below)
        except OSError:
            yield below, False
            continue
        for name, mode in entries:
            if stat.S_ISDIR(mode):
                waiting.append(f"{below}{name}/")
            else:
                yield f"{below}{name}", stat.S_ISREG(mode)


def _list_folder(folder: Path) -> list[tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in entries]
    except PermissionError as error:
        raise UserError(
            "evidence-unreadable",
            f"{folder} may not be read",
            "verify as the user who made it, or from a copy",
        ) from error


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def show(text: str) -> str:
    """Foreign text for a terminal: if not all of it can be shown, all that is not ASCII is escaped."""
    return text if text.isprintable() else ascii(text)[1:-1]
