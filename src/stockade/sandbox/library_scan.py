"""Which folders of a host stay executable for their libraries, and what in them is covered again.

Everything in a sandbox is noexec but the permitted programs and what this names (recipe
R6). Opening too little breaks programs (a library cannot be loaded); opening too much
costs time, since what is opened is searched and its programs are covered. So of the
system's library folders all is opened, except for self-contained applications that keep
a tree of their own there: a cloud SDK of 57,000 files, Java, LLVM. Such a tree

- has a ``bin`` (or ``sbin``) and a ``lib`` (or ``lib64``) side by side, one or two levels
  down (``google-cloud-sdk``, ``jvm/java-17``, ``llvm-14``, ``postgresql/15``). A ``bin``
  alone is not enough: Qt keeps its tools beside the plug-ins that every Qt program loads;
- is not where a language or the linker looks for what others use (``python3.11``,
  ``node_modules``, ``x86_64-linux-gnu``), whatever folders lie in those.

It is opened all the same when something that is permitted lies in it. And of what stays
closed, a folder is opened if a link in an opened one leads to a library in it
(``x86_64-linux-gnu/libclang-cpp.so.14``) or the linker's cache names it. A program that
finds libraries in a foreign application by a path of its own (LibreOffice, Java) needs
``exec.libraries``.
"""

from __future__ import annotations

import functools
import os
import re
import struct
from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct

from stockade.sandbox.elf import read_elf
from stockade.sandbox.library_reading import EndsAt, Rules
from stockade.sandbox.library_tree import Tree, scan_tree
from stockade.sandbox.view import is_below

# Where distributions and administrators put libraries; links among them are resolved. /usr/libexec is
# meant for programs, and holds what they load by path: stdbuf's library, elsewhere the linker's plug-in.
SYSTEM_FOLDERS = (
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/libx32",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/libexec",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
)
# Loaders as the platforms' ABIs name them. The kernel needs them executable for every other program.
LOADERS = (
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux.so.2",
    "/libx32/ld-linux-x32.so.2",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
)
LINKER_CACHE = "/etc/ld.so.cache"
ALTERNATIVES = "/etc/alternatives"

# A text, compiled when first used: where all is remembered nothing asks for it.
_SHARED_BY_MANY = r"[^/]*-linux-[^/]*|python.*|node_modules|perl.*|ruby.*|php.*|gems"
_DEEPEST_APPLICATION = 2
_LINKER_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_LINKER_CACHE_LIMIT_BYTES = 16 * 1024 * 1024


class LibraryScan(Struct, frozen=True):
    """What to do with library folders; a path belongs to the longest entry that contains it.

    Attributes:
        opened: Folders that stay executable, real and as few as possible.
        closed: Folders inside opened ones that are noexec again.
        programs: Program files in what is opened, to be covered one by one; and folders that
            cannot be listed although they can be entered. Permitted programs are among them.
        linked: Files in what is opened besides the system's that have other names too.
    """

    opened: tuple[str, ...]
    closed: tuple[str, ...]
    programs: tuple[str, ...]
    linked: tuple[str, ...] = ()


def scan_libraries(
    own: Iterable[str] = (),
    *,
    system: Iterable[str] = SYSTEM_FOLDERS,
    wanted: Iterable[str] = (),
    writable: Sequence[str] = (),
    worker_uid: int,
    cache_folder: str = "",
    on_progress: Callable[[int], None] | None = None,
) -> LibraryScan:
    """Find what of the library folders is opened, and the programs in it.

    Args:
        own: Folders that the policy names (``exec.libraries``), by real path: opened whole. One
            that does not exist is left out.
        system: The system's library folders; what is missing is left out. With some come those
            that the linker's cache names, wherever they are; with none nothing but `own` is opened.
        wanted: Real paths of permitted programs (or of anything that is needed): the
            application in which one lies is opened.
        writable: What the worker may write: nothing of it is opened but `own`.
        worker_uid: The worker's uid on this host; with 0 (root of a user namespace that maps
            nobody else) every file is compared at each start, root's too.
        cache_folder: Where findings are kept (made with mode 0700); empty: nowhere. The worker
            must not see it.
        on_progress: Called with the number of names seen, after each second of looking.

    Raises:
        HostError: A tree is too large, is named through a link, or no descriptors are left.
    """
    roots = [folder for folder in _real(system) if os.path.isdir(folder) and not _is_in(folder, writable)]
    scan = _Scan(roots, writable, worker_uid, cache_folder, on_progress)
    scan.open_own(own)
    scan.open_system()
    scan.open_wanted(wanted)
    scan.follow(_linker_folders() if roots else ())
    return scan.result()


class _Scan:
    """What is opened and closed so far, and the programs in what is opened."""

    def __init__(
        self,
        system: list[str],
        writable: Sequence[str],
        worker_uid: int,
        cache_folder: str,
        on_progress: Callable[[int], None] | None,
    ) -> None:
        self._system = system
        self._writable = writable
        # No worker may write in the system's folders (paths.py). In others root's files may be its own.
        self._rules_of_system, self._rules = (
            Rules(is_root_trusted=is_trusted, cache_folder=cache_folder, on_progress=on_progress)
            for is_trusted in (worker_uid != 0, worker_uid != 0 and os.geteuid() != 0)
        )
        self._opened: set[str] = set()
        self._closed: set[str] = set()
        self._programs: set[str] = set()
        self._leads: set[str] = set()
        self._linked: set[str] = set()
        # A chain of links leaves the library folders for this one alone, which has links that change.
        self._valid_with = f"{system} {_ctime_of(ALTERNATIVES)}"

    def open_own(self, folders: Iterable[str]) -> None:
        """Open folders whole; their links open nothing else, since a worker may have made them."""
        for folder in sorted(map(os.path.normpath, folders)):  # the outer before the inner
            if not self._is_open(folder) and os.path.isdir(folder):
                self._opened.add(folder)
                tree = scan_tree(folder, self._rules)
                self._programs.update(tree.programs)
                self._linked.update(tree.linked)

    def open_system(self) -> None:
        own = set(self._opened)
        for root in self._system:
            if self._is_open(root):
                continue
            self._opened.add(root)
            tree = self._scan_system(root, functools.partial(_is_application, root))
            self._closed.update(path for path in tree.ends if _nearest(path, own) is None)

    def open_wanted(self, paths: Iterable[str]) -> None:
        """Open the applications that hold one of these."""
        for path in paths:
            application = self._nearest_closed(path)
            if application is not None:
                self._open_application(application)

    def follow(self, folders: Iterable[str]) -> None:
        """Open these folders, and those to which links in opened ones lead."""
        done: set[str] = set()
        self._leads.update(folders)
        while pending := self._leads - done:
            done |= pending
            for folder in sorted(pending):
                if folder in self._closed:
                    self._open_application(folder)
                elif not self._is_open(folder) and not _is_in(folder, self._writable):
                    self._opened.add(folder)
                    self._scan_system(folder)

    def result(self) -> LibraryScan:
        entries = self._opened | self._closed
        above = {path: _nearest(os.path.dirname(path), entries) for path in self._opened}
        loaders = set(_real(LOADERS))
        return LibraryScan(
            opened=tuple(sorted(path for path, nearest in above.items() if nearest not in self._opened)),
            closed=tuple(sorted(self._closed)),
            programs=tuple(sorted(self._programs - loaders)),
            linked=tuple(sorted(self._linked)),
        )

    def _open_application(self, folder: str) -> None:
        self._closed.remove(folder)
        self._scan_system(folder)

    def _scan_system(self, root: str, ends_at: EndsAt | None = None) -> Tree:
        is_of_system = any(is_below(root, folder) for folder in self._system)
        rules = self._rules_of_system if is_of_system else self._rules
        tree = scan_tree(root, rules, ends_at=ends_at, leads_to=self._leads_to, valid_with=self._valid_with)
        self._programs.update(tree.programs)
        if not is_of_system:
            self._linked.update(tree.linked)
        self._leads.update(tree.leads)
        return tree

    def _is_open(self, path: str) -> bool:
        return _nearest(path, self._opened | self._closed) in self._opened

    def _nearest_closed(self, path: str) -> str | None:
        nearest = _nearest(path, self._opened | self._closed)
        return nearest if nearest in self._closed else None

    def _leads_to(self, link: str) -> str:
        """The folder that a link makes part of the opened ones: of a library, or of nothing but libraries."""
        try:
            if "/" not in os.readlink(link):  # to its own folder
                return ""
        except OSError:
            return ""
        real = os.path.realpath(link)
        if not any(_may_be_in_application(root, real) for root in self._system):
            return ""
        if os.path.isdir(real):  # with its own programs it is another name of the whole application
            return "" if os.path.isdir(f"{real}/bin") else real
        facts = read_elf(real)
        return os.path.dirname(real) if facts is not None and facts.kind == "library" else ""


def _is_application(root: str, path: str, folders: Iterable[str]) -> bool:
    names = set(folders)
    has_both = not names.isdisjoint(("bin", "sbin")) and not names.isdisjoint(("lib", "lib64"))
    depth = len(_parts_below(root, path))
    return has_both and 0 < depth <= _DEEPEST_APPLICATION and _may_be_in_application(root, path)


def _may_be_in_application(root: str, path: str) -> bool:
    parts = _parts_below(root, path)[:_DEEPEST_APPLICATION]
    return bool(parts) and not any(re.fullmatch(_SHARED_BY_MANY, part) for part in parts)


def _parts_below(root: str, path: str) -> list[str]:
    return path[len(root) + 1 :].split("/") if path.startswith(root + "/") else []


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(is_below(path, folder) for folder in folders)


def _nearest(path: str, entries: Container[str]) -> str | None:
    """The path itself or the folder nearest above it that is among the entries."""
    while path not in entries:
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def _real(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.lexists(path)))


def _ctime_of(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0


def _linker_folders() -> list[str]:
    """The folders in which the linker's cache finds libraries (ldconfig(8), dl-cache.h of glibc)."""
    try:
        with open(LINKER_CACHE, "rb") as file:
            content = file.read(_LINKER_CACHE_LIMIT_BYTES)
    except OSError:
        return []  # there is none, as with musl
    start = content.find(_LINKER_CACHE_MAGIC)
    counts_at = start + len(_LINKER_CACHE_MAGIC)
    if start < 0 or len(content) < start + 48:
        return []
    count, texts_bytes = struct.unpack_from("II", content, counts_at)
    texts_at = start + 48 + 24 * count  # header, then entries of 24 bytes, then the texts
    texts = content[texts_at : texts_at + texts_bytes].split(b"\0")
    folders = {text.rpartition(b"/")[0] for text in texts if text.startswith(b"/")}
    return [folder for folder in _real(map(os.fsdecode, folders)) if os.path.isdir(folder)]
