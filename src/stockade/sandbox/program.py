"""Which file the command is, and what outside /usr it needs to be seen for it to run.

A program in a version manager's folder, or a virtual environment whose Python lives
there, must work; but links in the workspace are the worker's to plant, so a link is
never taken as a reason to show more than a Python installation (recognised by what is
in it) or the single file at its end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from msgspec import Struct

from stockade.sandbox.paths import PathFact, read_regular
from stockade.sandbox.view import is_below

_PYTHON = re.compile(r"python3?(\.\d+)?$")
_INTERPRETERS_DEEP = 3
_LINKS_DEEP = 40  # as the kernel
_VENVS = (".venv", "venv")
_ENVIRONMENT = "virtual environment of the command"
# Never shown as somebody's library folder, whatever lies in them.
_TOO_WIDE = frozenset(
    [
        "/",
        "/home",
        "/root",
        "/tmp",
        "/var",
        "/var/tmp",
        "/opt",
        "/etc",
        "/run",
        "/srv",
        "/mnt",
        "/media",
        "/usr",
        "/dev",
        "/proc",
        "/sys",
    ]
)

Library = tuple[PathFact, str]
Link = tuple[str, str]


class ProgramFacts(Struct, frozen=True):
    """The command's file and what it needs besides the view.

    Attributes:
        path: The file to execute; empty lets the search path decide inside, which also
            gives the right answer for a command that does not exist.
        launched: The file that was found, with its links; empty if there is none.
        libraries: What is shown read-only for it.
        links: Links outside the view (path, target) that lead from a visible path to it.
    """

    path: str
    launched: str
    libraries: tuple[Library, ...]
    links: tuple[Link, ...]


def resolve_program(
    name: str, *, workspace: str, visible: Sequence[str], inside_path: Sequence[str], caller_path: str
) -> ProgramFacts:
    """Find the command, and what must be shown for it and for the workspace's virtual environment."""
    typed = _find(name, workspace, inside_path, caller_path)
    starts = [typed] if typed else []
    starts += [path for path in (f"{workspace}/{venv}/bin/python" for venv in _VENVS) if _is_program(path)]
    libraries: dict[str, Library] = {}
    links: dict[str, str] = {}
    for start in starts:
        is_given = start == typed and not _is_planted(start, workspace)
        for path in _chain(start):
            environment = _environment_of(path, workspace) if is_given else []
            for fact, why in (*environment, *_needs_of(path, workspace, visible)):
                libraries.setdefault(fact.path, (fact, why))
            links |= link_hops(path)
    shown = (*visible, *libraries)
    outside = tuple((path, target) for path, target in links.items() if not _is_visible(path, shown))
    folder = os.path.realpath(os.path.dirname(typed)) if typed else ""
    in_sight = (*visible, *(fact.path for fact, why in libraries.values() if why == _ENVIRONMENT))
    is_reachable = not typed or (
        _is_visible(folder, in_sight) if "/" in name else os.path.dirname(typed) in inside_path
    )
    return ProgramFacts(
        "" if is_reachable else os.path.realpath(typed), typed, tuple(libraries.values()), outside
    )


def _find(name: str, workspace: str, inside_path: Sequence[str], caller_path: str) -> str:
    if "/" in name:
        path = os.path.join(workspace, name)
        return path if _is_program(path) else ""
    outside = [entry for entry in caller_path.split(":") if entry.startswith("/")]
    for folder in [*inside_path, *outside]:
        path = os.path.join(folder, name)
        if _is_program(path):
            return path
    return ""


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_visible(path: str, visible: Sequence[str]) -> bool:
    return any(is_below(path, place) for place in visible)


def _chain(start: str) -> list[str]:
    """A program, and if it is a script its interpreter, and so on."""
    found = [start]
    while len(found) < _INTERPRETERS_DEEP and (following := _interpreter_of(os.path.realpath(found[-1]))):
        found.append(following)
    return found


def _environment_of(path: str, workspace: str) -> list[Library]:
    """The virtual environment of a Python outside the workspace; its link alone would lose its packages."""
    folder = os.path.realpath(os.path.dirname(path))
    prefix = os.path.dirname(folder)
    is_one = _PYTHON.match(os.path.basename(path)) and os.path.isfile(f"{prefix}/pyvenv.cfg")
    if not is_one or _is_planted(path, workspace) or not _may_be_shown(prefix):
        return []
    return [_library(prefix, _ENVIRONMENT)]


def _is_planted(path: str, workspace: str) -> bool:
    """True if the file, or a link on the way to it, lies in the workspace: a worker may have put it there."""
    folder = os.path.dirname(path)
    return any(is_below(place, workspace) for place in (os.path.realpath(folder), *link_hops(folder)))


def _needs_of(path: str, workspace: str, visible: Sequence[str]) -> list[Library]:
    real = os.path.realpath(path)
    if _is_visible(real, visible):
        return []
    is_planted = is_below(os.path.realpath(os.path.dirname(path)), workspace)
    return _libraries_of(real, is_planted)


def link_hops(path: str) -> dict[str, str]:
    """Every link that is followed on the way to a file, with its text."""
    hops: dict[str, str] = {}
    here, pending = "", path.split("/")[1:]
    while pending and len(hops) < _LINKS_DEEP:
        part = pending.pop(0)
        step = os.path.normpath(f"{here}/{part}")
        if not os.path.islink(step):
            here = "" if step == "/" else step
            continue
        target = hops[step] = os.readlink(step)
        pending = [*(part for part in target.split("/") if part), *pending]
        here = "" if target.startswith("/") else here
    return hops


def _interpreter_of(path: str) -> str:
    """The program that a ``#!`` line names, `env` looked through; empty for anything else."""
    try:
        first = read_regular(os.path.realpath(path), 256).split(b"\n", 1)[0]
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = os.fsdecode(first[2:]).split()
    return words[0] if words and _is_program(words[0]) else ""


def _libraries_of(real: str, is_planted: bool) -> list[Library]:
    """What to show for a program outside the view, at its real path."""
    python = python_libraries(real, "Python of the command")
    if python:
        return python
    folder = os.path.dirname(real)
    prefix = os.path.dirname(folder)
    has_prefix = os.path.basename(folder) == "bin" and os.path.isdir(f"{prefix}/lib")
    if not is_planted and has_prefix and _may_be_shown(prefix):
        return [_library(prefix, "program and its libraries")]
    if not is_planted and _may_be_shown(folder):
        return [_library(folder, "folder of the program")]
    return [_library(real, "the program")]


def environment_pythons(workspace: str, writable: Sequence[str]) -> list[tuple[str, str]]:
    """The Pythons that the workspace's virtual environments were made from: (path in it, real path).

    The path is a link that an earlier worker may have planted, so it is believed only where it leads to a
    Python installation that no worker can write.
    """
    found = []
    for venv in _VENVS:
        path = f"{workspace}/{venv}/bin/python"
        real = os.path.realpath(path)
        is_ours = any(is_below(real, folder) for folder in (workspace, *writable))
        if not is_ours and _is_program(path) and python_libraries(real, ""):
            found.append((path, real))
    return found


def python_libraries(executable: str, why: str) -> list[Library]:
    """The ``bin`` and ``lib`` of a Python installation, if this is the Python of one."""
    if not _PYTHON.match(os.path.basename(executable)):
        return []
    prefix = os.path.dirname(os.path.dirname(executable))
    if prefix in _TOO_WIDE or not _holds_python(prefix):
        return []
    return [_library(f"{prefix}/{name}", why) for name in ("bin", "lib")]


def _holds_python(prefix: str) -> bool:
    """A standard library is there: nothing that a worker could make outside its workspace."""
    try:
        names = os.listdir(f"{prefix}/lib")
    except OSError:
        return False
    return any(_PYTHON.match(name) and os.path.isfile(f"{prefix}/lib/{name}/os.py") for name in names)


def _may_be_shown(folder: str) -> bool:
    home = os.path.realpath(os.path.expanduser("~"))
    return folder not in _TOO_WIDE and not is_below(home, folder) and folder.count("/") >= 2


def _library(path: str, why: str) -> Library:
    status = os.stat(path)
    is_folder = os.path.isdir(path)
    return PathFact(path, is_folder, status.st_uid, status.st_gid, status.st_dev, status.st_ino), why
