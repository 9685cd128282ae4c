"""Which files may be executed: the launched command, what `exec:` lists, and what those are interpreted by.

Names are resolved here, once, before anything starts, to files by device and inode. From
then on a program is that file: another name for it is the same program, and another
file under its name is not.

A script needs its interpreter, and the kernel makes no difference between a program that
was called and one that interprets: so the interpreter of a permitted script is a permitted
program, and the plan says so by name. What a worker can have put somewhere in an earlier run
permits nothing by itself: no link in a folder that it may write is followed to another
program, no file there is found by a pattern or by ``env``. The ELF loader is different. The kernel must
be able to execute it for every dynamic program, but a call of it as a command is refused
by the eye, and whatever it then loads lies on a noexec mount.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Sequence

from msgspec import Struct

from stockade.decision.script import HEAD_BYTES, is_env, parse_script, words_of_env
from stockade.errors import UserError
from stockade.policy.model import PRESET_ORIGIN, ExecPolicy
from stockade.policy.programs import PROGRAM_FOLDERS, is_pattern
from stockade.sandbox.elf import read_elf_at
from stockade.sandbox.paths import probe_path
from stockade.sandbox.program import environment_pythons, link_hops
from stockade.sandbox.view import is_below

# Entries that mean the Python of the workspace's virtual environment too, wherever that is installed.
_PYTHONS = ("python3", "python")
INTERPRETERS_DEEP = 5  # as the kernel (fs/exec.c); beyond it execve gives ELOOP
_LINKS_DEEP = 40  # as the kernel (linux/namei.h: MAXSYMLINKS)
MATCHES_LIMIT = 2000
# From so many entries on, listing the folders costs less than asking each of them for each name.
_MANY_ENTRIES = 16
_VERSION = re.compile(r"[\d.]*$")


class Program(Struct, frozen=True, kw_only=True):
    """One file that may be executed.

    Attributes:
        path: Its real path, outside and inside.
        identity: Device and inode.
        why: ``launched``, ``exec: git``, ``interpreter of …``, ``Python of …``.
        origin: The line of the policy or preset that lists it, empty if none does.
        is_script: It begins with ``#!``.
        loader: Real path of its ELF loader, empty for a script or a static program.
    """

    path: str
    identity: tuple[int, int]
    why: str
    origin: str = ""
    is_script: bool = False
    loader: str = ""


class ProgramSet(Struct, frozen=True):
    """All of them, and what was written in the policy and is not there."""

    programs: tuple[Program, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def loaders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(program.loader for program in self.programs if program.loader))


def probe_programs(
    policy: ExecPolicy,
    *,
    launched: str,
    workspace: str,
    writable: Sequence[str],
    search_path: Sequence[str],
    is_shown: Callable[[str], bool] = lambda _path: True,
) -> ProgramSet:
    """Resolve everything that may run.

    Args:
        policy: The policy's `exec:`.
        launched: Path of the launched command, empty if it was not found.
        workspace: What relative entries are below.
        writable: Folders that the worker may write, and may have written in earlier runs.
        search_path: The worker's PATH, by which ``env`` will look.
        is_shown: Whether the view will show a real path; what it does not show is not there.

    Raises:
        UserError: An entry leads through a link, or matches a file, that a worker may have planted; or it
            matches too much.
    """
    search = _Search(workspace, search_path, writable, is_shown)
    places_of = _Places(workspace, lists_folders=len(policy.allow) >= _MANY_ENTRIES)
    origins = dict(zip(policy.allow, policy.origins, strict=False))
    missing = []
    if launched:
        search.add(launched, "launched", is_launched=True)
    for entry in policy.allow:
        places = places_of.name(entry)
        for place in places:
            if search.is_writable(place) and os.path.lexists(place):
                if is_pattern(entry):
                    raise _matches_planted(entry, place)
                probe_path(place, f"exec: {entry}")  # refuses links
        origin = origins.get(entry, policy.origin)
        is_here = [search.add(place, f"exec: {entry}", origin=origin) for place in places]
        if not any(is_here) and not origin.startswith(PRESET_ORIGIN):  # presets name what need not be there
            missing.append(entry)
    for real, why in listed_pythons(policy, workspace, writable):
        search.add(real, why)
    return ProgramSet(tuple(search.found.values()), tuple(missing))


def _matches_planted(entry: str, place: str) -> UserError:
    return UserError(
        "exec-too-wide",
        f"exec: {entry} matches {place}, which the worker may write: an earlier run could have left it there",
        "name the files of a writable folder one by one",
    )


def listed_pythons(policy: ExecPolicy, workspace: str, writable: Sequence[str]) -> list[tuple[str, str]]:
    """Pythons of the workspace's virtual environments, if Python is listed: (real path, why)."""
    entry = next((entry for entry in policy.allow if entry in _PYTHONS), None)
    found = environment_pythons(workspace, writable) if entry else ()
    return [(real, f"Python of {os.path.relpath(path, workspace)} (exec: {entry})") for path, real in found]


class _Places:
    """Where the file of an entry may be. A preset has hundreds, so each folder is listed once."""

    def __init__(self, workspace: str, *, lists_folders: bool) -> None:
        self._workspace = workspace
        self._lists_folders = lists_folders
        self._folders = list(dict.fromkeys(os.path.realpath(folder) for folder in PROGRAM_FOLDERS))
        self._names: dict[str, frozenset[str] | None] = {}

    def name(self, entry: str) -> list[str]:
        if "/" not in entry:
            return [f"{folder}/{entry}" for folder in self._folders if self._may_hold(folder, entry)]
        if is_pattern(entry):
            return self._match(entry)
        return [os.path.normpath(os.path.join(self._workspace, os.path.expanduser(entry)))]

    def _may_hold(self, folder: str, name: str) -> bool:
        if not self._lists_folders:
            return True
        names = self._list(folder)
        return names is None or name in names  # what cannot be listed can still hold it

    def _match(self, pattern: str) -> list[str]:
        """The files of a family, one segment after the other; ``*`` stands for no leading dot."""
        paths = [""]
        for segment in pattern.split("/")[1:]:
            if "*" in segment:
                paths = [
                    f"{path}/{name}"
                    for path in paths
                    for name in fnmatch.filter(self._list(path) or (), segment)
                    if not name.startswith(".") or segment.startswith(".")
                ]
            else:
                paths = [f"{path}/{segment}" for path in paths]
        if len(paths) > MATCHES_LIMIT:
            raise UserError(
                "exec-too-wide",
                f"exec: {pattern} matches {len(paths)} files, more than {MATCHES_LIMIT}",
                "name the programs, or open all of them on record: exec: {mode: any}",
            )
        return sorted(paths)

    def _list(self, folder: str) -> frozenset[str] | None:
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder or "/"))
            except OSError:
                self._names[folder] = None
        return self._names[folder]


class _Search:
    """The programs found so far. A file is read once, however many names and scripts lead to it."""

    def __init__(
        self,
        workspace: str,
        search_path: Sequence[str],
        writable: Sequence[str],
        is_shown: Callable[[str], bool],
    ) -> None:
        self.found: dict[tuple[int, int], Program] = {}
        self._workspace = workspace
        self._search_path = search_path
        self._writable = writable
        self._is_shown = is_shown
        self._followed: dict[tuple[int, int], int] = {}  # at which depth a file's interpreters were added
        self._real_folders: dict[str, tuple[str, str]] = {}
        self._real_loaders: dict[str, str] = {}

    def add(
        self, place: str, why: str, depth: int = 0, *, origin: str = "", is_launched: bool = False
    ) -> bool:
        """Add a program, what interprets it, what interprets that, and so on; False if it is none."""
        try:
            # A script may name its interpreter relative to the worker's folder.
            real, status, link = self._resolve(os.path.join(self._workspace, place))
        except (OSError, ValueError):  # ValueError: a NUL in it
            return False
        if not _is_executable(status) or not (is_launched or self._is_shown(real)):
            return False
        if link and not is_launched:
            if depth == 0:
                raise UserError(
                    "path-through-link",
                    f"{why}: {place} goes through {link}, a link in a folder that the worker may write",
                    f"write the path that it leads to, if that is what you mean: {real}",
                )
            if not _is_version_of(place, real):
                return False
        identity = (status.st_dev, status.st_ino)
        if self._followed.get(identity, INTERPRETERS_DEEP + 1) > depth:
            self._followed[identity] = depth
            head = self._read(real, identity, why, origin)
            following = interpreters_in(head, self._find_by_name)
            if is_launched and not head.startswith((b"#!", b"\x7fELF")):
                following = ["/bin/sh"]  # as every shell does with a text that has no #! line (stage.execute)
            for name in following:
                self.add(name, f"interpreter of {os.path.basename(place)}", depth + 1)
        return True

    def is_writable(self, path: str) -> bool:
        return any(is_below(path, folder) for folder in self._writable)

    def _resolve(self, place: str) -> tuple[str, os.stat_result, str]:
        """The real path, as `os.path.realpath` has it, for many files in few folders.

        Returns:
            It, what is there, and a link on the way that a worker can have made, empty if there is none.
        """
        planted = ""
        for _ in range(_LINKS_DEEP):
            folder, _, name = place.rpartition("/")
            if folder not in self._real_folders:
                self._real_folders[folder] = self._resolve_folder(folder)
            above, link = self._real_folders[folder]
            place = f"{above}/{name}"
            status = os.lstat(place)
            planted = planted or link
            if not stat.S_ISLNK(status.st_mode):
                return place, status, planted
            planted = planted or (place if self.is_writable(place) else "")
            place = os.path.join(above, os.readlink(place))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _resolve_folder(self, folder: str) -> tuple[str, str]:
        real = os.path.realpath(folder or "/").rstrip("/")
        links = () if real == folder else link_hops(folder)
        return real, next(filter(self.is_writable, links), "")

    def _find_by_name(self, name: str) -> str:
        """What ``env`` starts: the first of that name that no worker can have put there, empty if none."""
        for path in [name] if "/" in name else [f"{folder}/{name}" for folder in self._search_path]:
            try:
                real, status, link = self._resolve(path)
            except (OSError, ValueError):
                continue
            is_planted = self.is_writable(real) or (link and not _is_version_of(path, real))
            if "/" in name or (_is_executable(status) and self._is_shown(real) and not is_planted):
                return path
        return ""

    def _read(self, real: str, identity: tuple[int, int], why: str, origin: str) -> bytes:
        head, loader = _read_file(real)
        if identity not in self.found:
            self.found[identity] = Program(
                path=real,
                identity=identity,
                why=why,
                origin=origin,
                is_script=head.startswith(b"#!"),
                loader=self._real_loader(loader),
            )
        return head

    def _real_loader(self, loader: str) -> str:
        if loader and loader not in self._real_loaders:
            self._real_loaders[loader] = os.path.realpath(loader)
        return self._real_loaders.get(loader, "")


def _is_executable(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _is_version_of(name: str, real: str) -> bool:
    """``python3`` may be a link to ``python3.11`` in anybody's folder, and not one to ``bash``."""
    return _VERSION.sub("", os.path.basename(name)) == _VERSION.sub("", os.path.basename(real))


def _read_file(path: str) -> tuple[bytes, str]:
    """The first bytes of a program and the loader that it names, both empty if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return b"", ""
    try:
        head = os.pread(fd, HEAD_BYTES, 0)
        facts = read_elf_at(fd) if head.startswith(b"\x7fELF") else None
        return head, "" if facts is None else facts.loader
    except OSError:
        return b"", ""
    finally:
        os.close(fd)


def interpreters_in(head: bytes, find_by_name: Callable[[str], str]) -> list[str]:
    """What a ``#!`` line starts: the program that it names, and if that is `env`, the one that env starts."""
    script = parse_script(head)
    if script is None:
        return []
    behind_env = words_of_env(script.argument or "")[:1] if is_env(script.interpreter) else ()
    return [script.interpreter, *filter(None, map(find_by_name, behind_env))]
