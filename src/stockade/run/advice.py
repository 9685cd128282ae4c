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
from stockade.run.native_modules import Places, describe_modules
from stockade.sandbox.view import is_below

_SIGNALLED = 128  # exit codes above: the command, or a shell for it, was ended by a signal

_COMPILER = re.compile(r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|c[89]9|gfortran)(?:-[\d.]+)?", re.ASCII)
_PASS = re.compile(r"cc1\w*|f951|lto1|collect2", re.ASCII)
_PYTHON = re.compile(r"python[\d.]*")
_LOOKS_FIRST = re.compile(r"g?make|collect2", re.ASCII)


class Ending(Struct, frozen=True, kw_only=True):
    """What the advice depends on.

    Attributes:
        code: Exit code of the command, as a shell gives it.
        mode: How far `exec:` goes; with ``any`` everything may run.
        started: File names of the programs that were let run.
        permitted: Paths of the programs that may run.
        missing: Entries of the operator's own that name nothing on this machine.
        has_preset: The list is, at least in part, a preset's, which names what its programs start.
        places: Where compiled modules are looked for; None if code is loaded from everywhere.
        launched_script: Path of the launched command if it is a script, else empty.
        refused: Files that were refused as programs, but for scripts.
        writable: Folders that the command could write.
        denied_any: Something was refused, and said.
        denied_programs: The same, of a program.
        unix_sockets_refused: How often a Unix socket was.
        unix_sockets_wanted_by: File names of the programs that asked for one.
    """

    code: int
    mode: Literal["closed", "jit", "any"]
    started: frozenset[str] = frozenset()
    permitted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    has_preset: bool = False
    places: Places | None = None
    launched_script: str = ""
    refused: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    denied_any: bool = False
    denied_programs: bool = False
    unix_sockets_refused: int = 0
    unix_sockets_wanted_by: tuple[str, ...] = ()


def advise(ending: Ending) -> list[str]:
    """The lines; none if the command succeeded and nothing was refused."""
    lines = [*_about_launcher(ending), *_about_own_programs(ending)]
    if ending.code and ending.mode != "any":
        lines += _about_lookers(ending)
        lines += _about_modules(ending)
    if ending.code:
        lines += _about_unix_sockets(ending)
    if ending.missing and (ending.code or ending.denied_any):
        lines.append(_about_missing(ending.missing))
    return lines


def _about_missing(missing: Sequence[str]) -> str:
    line = f"listed under exec and not here, or not in the view: {', '.join(missing)}"
    if all("/" in entry for entry in missing):
        return line
    return f"{line} (a name without / is looked for in /usr/bin and its like only; list others by their path)"


def _about_launcher(ending: Ending) -> Iterator[str]:
    """The launched script stands in front of the program of its name, as Chromium's does."""
    script = ending.launched_script
    if not script or not ending.refused:
        return
    for path in (*ending.permitted, *ending.refused):
        if path != script and os.path.basename(path) == os.path.basename(script):
            yield f"{script} is a script that starts other programs; launch {path} itself"
            return


def _about_own_programs(ending: Ending) -> Iterator[str]:
    own = sorted(path for path in ending.refused if any(is_below(path, root) for root in ending.writable))
    if own:
        names = ", ".join(map(os.path.basename, own[:3])) + (", …" if len(own) > 3 else "")
        yield (
            f"what lies where the command may write does not run ({names}); a file that is listed is"
            " read-only in the next run, and `exec: {mode: any}` permits to make programs and run them"
        )


def _about_unix_sockets(ending: Ending) -> Iterator[str]:
    """The C library asks for one at each look-up of a user and goes on without; few programs do not."""
    if not ending.unix_sockets_refused:
        return
    key = "`exec: {unix-sockets: true}`"
    if ending.code > _SIGNALLED:
        yield (
            "the command died, and Unix sockets were refused to it; a browser and a server of its own need"
            f" them: {key}"
        )
    elif any(map(_PYTHON.fullmatch, ending.unix_sockets_wanted_by)):
        yield (
            "Unix sockets were refused to Python; multiprocessing's Manager and forkserver, and a server of"
            f" its own, need them: {key}"
        )


def _about_lookers(ending: Ending) -> Iterator[str]:
    """Programs that take what may not run for missing, without a try that could be seen."""
    compilers = sorted(filter(_COMPILER.fullmatch, ending.started))
    if compilers and not any(_PASS.fullmatch(os.path.basename(path)) for path in ending.permitted):
        yield (
            f"{compilers[0]} does not try to start its passes (cc1, as, collect2, ld), since it sees that"
            " they may not run: list them by their paths, or `include: [exec/coding]`"
        )
    if ending.has_preset or ending.denied_programs:
        return
    for name in sorted(filter(_LOOKS_FIRST.fullmatch, ending.started)):
        yield (
            f"{name} does not try to start a program that it sees may not run, so there is no record of it;"
            " `stockade decide exec NAME` gives the line that permits it"
        )


def _about_modules(ending: Ending) -> Iterator[str]:
    if ending.places is not None and not ending.denied_programs:
        yield from describe_modules(ending.places, ending.started)


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
