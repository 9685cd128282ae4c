"""What the end of a failed run adds where something was refused and no record can say so.

Records hold what was asked. A program that looks before it starts another one (``access`` with X_OK,
which a noexec mount answers with EACCES) never asks; the mapping of a library that may not be loaded is
refused inside the kernel; and a refusal that ordinary programs go on without is left out of the summary,
although now and then a program does not. All three end with a message of the command that names no policy
("cannot execute 'cc1'", "failed to map segment"). So this is guessed, from what ran and what lies in the
workspace, and said only when the command failed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from stockade.decision.script import HEAD_BYTES

FILES_LOOKED_AT = 4000  # of one library folder: a large one takes some 10 ms
_SIGNALLED = 128  # exit codes above: the command, or a shell for it, was ended by a signal

_COMPILER = re.compile(r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|c[89]9|gfortran)(?:-[\d.]+)?", re.ASCII)
_PASS = re.compile(r"cc1\w*|f951|lto1|collect2", re.ASCII)
_MAKE = re.compile(r"g?make", re.ASCII)


class _NativeModules(Struct, frozen=True):
    """A folder of a workspace that often holds code for a program."""

    folder: str
    suffix: str
    loaded_by: re.Pattern[str]


_NATIVE_MODULES = (
    _NativeModules(".venv", ".so", re.compile(r"python[\d.]*")),
    _NativeModules("venv", ".so", re.compile(r"python[\d.]*")),
    _NativeModules("node_modules", ".node", re.compile(r"node(?:js)?")),
)


class Ending(Struct, frozen=True, kw_only=True):
    """What the advice depends on.

    Attributes:
        code: Exit code of the command, as a shell gives it.
        mode: How far `exec:` goes; with ``any`` everything may run.
        started: File names of the programs that were let run.
        permitted: Paths of the programs that may run.
        missing: Entries of the operator's own that name nothing on this machine.
        has_preset: The list is, at least in part, a preset's, which names what its programs start.
        libraries: Folders of `exec: libraries` and the command's own; None if code is loaded from everywhere.
        workspace: Where the command ran.
        denied_any: Something was refused, and said.
        denied_programs: The same, of a program.
        unix_sockets_refused: How often a Unix socket was.
    """

    code: int
    mode: Literal["closed", "jit", "any"]
    started: frozenset[str] = frozenset()
    permitted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    has_preset: bool = False
    libraries: tuple[str, ...] | None = None
    workspace: str = ""
    denied_any: bool = False
    denied_programs: bool = False
    unix_sockets_refused: int = 0


def advise(ending: Ending) -> list[str]:
    """The lines; none if the command succeeded and nothing was refused."""
    lines: list[str] = []
    if ending.missing and (ending.code or ending.denied_any):
        lines.append(_about_missing(ending.missing))
    if not ending.code:
        return lines
    if ending.code > _SIGNALLED and ending.unix_sockets_refused:
        lines.append(
            "the command died, and Unix sockets were refused to it; a browser and a server of its own need"
            " them: `exec: {unix-sockets: true}`"
        )
    if ending.mode != "any":
        lines += _about_lookers(ending)
        lines += _about_modules(ending)
    return lines


def _about_missing(missing: Sequence[str]) -> str:
    line = f"listed under exec and not here, or not in the view: {', '.join(missing)}"
    if all("/" in entry for entry in missing):
        return line
    return f"{line} (a name without / is looked for in /usr/bin and its like only; list others by their path)"


def _about_lookers(ending: Ending) -> Iterator[str]:
    """Programs that take what may not run for missing, without a try that could be seen."""
    compilers = sorted(filter(_COMPILER.fullmatch, ending.started))
    if compilers and not any(_PASS.fullmatch(os.path.basename(path)) for path in ending.permitted):
        yield (
            f"{compilers[0]} does not try to start its passes (cc1, as, collect2, ld), since it sees that"
            " they may not run: list them by their paths, or `include: [exec/coding]`"
        )
    if not ending.has_preset and not ending.denied_programs and any(map(_MAKE.fullmatch, ending.started)):
        yield (
            "make does not try to start a program that it sees may not run, so there is no record of it;"
            " `stockade decide exec NAME` gives the line that permits it"
        )


def _about_modules(ending: Ending) -> Iterator[str]:
    if ending.libraries is None or ending.denied_programs:
        return
    for modules in _NATIVE_MODULES:
        folder = os.path.join(ending.workspace, modules.folder)
        is_open = any(folder == path or folder.startswith(f"{path}/") for path in ending.libraries)
        if is_open or not any(map(modules.loaded_by.fullmatch, ending.started)):
            continue
        if not os.path.islink(folder) and _holds(folder, modules.suffix):
            yield (
                f"{modules.folder} holds compiled modules ({modules.suffix}), which cannot be loaded"
                f' ("failed to map segment"): to permit it, add `exec: {{libraries: [{modules.folder}]}}`'
            )


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


def explain_start_failure(path: str, number: int) -> str | None:
    """What helps when the command itself did not start, if a look at the file says so."""
    import errno

    from stockade.sandbox.programs import interpreters_in

    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb", buffering=0) as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return None
    if number == errno.EACCES and not os.access(path, os.X_OK):
        by_hand = _by_hand(path, interpreters_in(head, lambda name: name))
        return f"it is not marked as executable: chmod +x {path}{by_hand}"
    if number == errno.ENOENT and head.startswith(b"#!"):
        return (
            f"its first line names an interpreter that is not here: {os.fsdecode(head.splitlines()[0][:80])}"
        )
    if number == errno.ENOENT:
        return f"it is here, and the command's view does not show it: --read {path}"
    return None


def _by_hand(path: str, interpreters: Iterable[str]) -> str:
    names = list(interpreters)
    return f", or start it by its interpreter: {os.path.basename(names[-1])} {path}" if names else ""
