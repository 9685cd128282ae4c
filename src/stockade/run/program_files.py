"""Which files of this machine a program's name and the entries of `exec:` mean, for `stockade decide`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from glob import glob

from stockade.decision.script import HEAD_BYTES, Script, parse_script
from stockade.policy.model import ExecPolicy
from stockade.policy.programs import PROGRAM_FOLDERS, is_pattern
from stockade.sandbox.programs import listed_pythons

_SCRIPTS_DEEP = 5  # as the kernel (fs/exec.c); beyond it execve gives ELOOP


def probe_file(program: str) -> str | None:
    """The real path of the file that a name or path starts here, relative to the working folder; or None."""
    return next(map(os.path.realpath, filter(_is_program, _places(program))), None)


def probe_script(file: str) -> Script | None:
    """What a file's first line starts, None if it is no script or cannot be read."""
    try:
        with open(file, "rb", buffering=0) as opened:
            return parse_script(opened.read(HEAD_BYTES))
    except OSError:
        return None


def probe_listed(policy: ExecPolicy | None, writable: Sequence[str] = ()) -> dict[str, str]:
    """Real paths of all that `exec: allow` lists here, each with its entry, and of what comes with them.

    Args:
        writable: Folders that a worker may write.
    """
    found: dict[str, str] = {}
    if policy is None:
        return found
    for entry in policy.allow:
        for place in _places(entry):
            if _is_program(place):
                _add(found, os.path.realpath(place), entry)
    for real, reason in listed_pythons(policy, os.getcwd(), writable):
        _add(found, real, reason)
    return found


def _add(found: dict[str, str], file: str, reason: str, depth: int = 0) -> None:
    found.setdefault(file, reason)
    script = probe_script(file)
    if script is not None and depth < _SCRIPTS_DEEP:
        for program in (script.interpreter, *script.command[:1]):
            interpreter = probe_file(program)
            if interpreter is not None:
                _add(found, interpreter, f"interpreter of {file}", depth + 1)


def _places(entry: str) -> Iterator[str]:
    if "/" not in entry:
        yield from (f"{folder}/{entry}" for folder in PROGRAM_FOLDERS)
    elif is_pattern(entry):
        yield from sorted(glob(entry))
    else:
        yield os.path.expanduser(entry) if entry.startswith("~/") else entry


def _is_program(path: str) -> bool:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in it
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)
