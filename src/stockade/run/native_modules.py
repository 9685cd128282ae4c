"""Folders of a program's packages that hold compiled modules which this run may not load.

The kernel refuses to map them and tells nobody, so they are looked for: when a command failed that could
have loaded them, and when a plan is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from stockade.decision.explain import quote_program
from stockade.sandbox.view import is_below

_HIDDEN = re.compile(r"\.[a-z_][\w-]*", re.ASCII)
FILES_LOOKED_AT = 4000  # of one folder: a large one takes some 10 ms


class _Kind(Struct, frozen=True):
    """Compiled modules of one language."""

    folders: tuple[str, ...]
    suffix: str
    loaded_by: re.Pattern[str]


_KINDS = (
    _Kind((".venv", "venv"), ".so", re.compile(r"python[\d.]*")),
    _Kind(("node_modules",), ".node", re.compile(r"node(?:js)?")),
)


class Places(Struct, frozen=True, kw_only=True):
    """Where packages are looked for, and from where code may be loaded.

    Attributes:
        workspace: Where the command runs.
        environments: Virtual environments of the command, besides those that lie in the workspace.
        opened: Folders from which code was loaded, besides the system's.
        written: `exec: libraries` in full, whether it was there at the start or not.
    """

    workspace: str
    environments: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


def find_environments(workspace: str, program: str, variables: dict[str, str]) -> tuple[str, ...]:
    """The environment whose Python was launched by its path, and the one of the worker's variables."""
    found = [variables.get("VIRTUAL_ENV", "")]
    if "/" in program:
        prefix = os.path.dirname(os.path.dirname(os.path.join(workspace, program)))
        found.append(prefix if os.path.isfile(f"{prefix}/pyvenv.cfg") else "")
    return tuple(dict.fromkeys(os.path.normpath(path) for path in found if path))


def describe_modules(places: Places, started: Collection[str]) -> Iterator[str]:
    """A sentence for each folder that one of the started programs loads from and that is not opened.

    Args:
        started: File names of programs.
    """
    for kind in _KINDS:
        if not any(map(kind.loaded_by.fullmatch, started)):
            continue
        folders = [os.path.join(places.workspace, name) for name in kind.folders]
        if kind.suffix == ".so":
            folders += places.environments
        for folder in dict.fromkeys(folders):
            # A link in the place of a folder may lead anywhere.
            is_shut = not _is_among(folder, places.opened) and not os.path.islink(folder)
            if is_shut and _holds(folder, kind.suffix):
                yield _describe(folder, kind.suffix, places)


def _describe(folder: str, suffix: str, places: Places) -> str:
    is_inner = is_below(folder, places.workspace)
    name = os.path.relpath(folder, places.workspace) if is_inner else folder
    what = f'{name} holds compiled modules ({suffix}), which cannot be loaded ("failed to map segment")'
    if _is_among(folder, places.written):
        return f"{what}: it was made in this run, and from the next one on they can be"
    return f"{what}: to permit it, add `exec: {{libraries: [{_quote(name)}]}}`"


def _quote(name: str) -> str:
    """A folder as it can stand in a list of YAML; a hidden one is plain text, but for two numbers."""
    is_plain = _HIDDEN.fullmatch(name) and name not in (".inf", ".nan")
    return name if is_plain else quote_program(name)


def _is_among(folder: str, places: Sequence[str]) -> bool:
    """One of the places is it, holds it, or is a part of it."""
    return any(is_below(folder, place) or is_below(place, folder) for place in places)


def _holds(folder: str, suffix: str) -> bool:
    """True if a file below a folder ends so; of a large folder only the first files are looked at."""
    seen = 0
    for _, _, names in os.walk(folder):
        if any(name.endswith(suffix) for name in names):
            return True
        seen += len(names)
        if seen > FILES_LOOKED_AT:
            return False
    return False
