"""Which files may be executed: the launched command, what `exec:` lists, and what those are interpreted by.

Names are resolved here, once, before anything starts, to files by device and inode. From
then on a program is that file: another name for it is the same program, and another
file under its name is not.

A script needs its interpreter, and the kernel makes no difference between a program that
was called and one that interprets: so the interpreter of a permitted script is a permitted
program, and the plan says so by name. The ELF loader is different. The kernel must
be able to execute it for every dynamic program, but a call of it as a command is refused
by the eye, and whatever it then loads lies on a noexec mount.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from msgspec import Struct

from stockade.decision.script import HEAD_BYTES, is_env, parse_script, words_of_env
from stockade.errors import UserError
from stockade.policy.model import ExecPolicy
from stockade.policy.programs import PROGRAM_FOLDERS, is_pattern
from stockade.sandbox.elf import read_elf
from stockade.sandbox.paths import probe_path
from stockade.sandbox.view import is_below

INTERPRETERS_DEEP = 5  # as the kernel (fs/exec.c); beyond it execve gives ELOOP
MATCHES_LIMIT = 2000


class Program(Struct, frozen=True, kw_only=True):
    """One file that may be executed.

    Attributes:
        path: Its real path, outside and inside.
        identity: Device and inode.
        why: ``launched``, ``exec: git``, ``interpreter of …``.
        is_script: It begins with ``#!``.
        loader: Real path of its ELF loader, empty for a script or a static program.
    """

    path: str
    identity: tuple[int, int]
    why: str
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
    policy: ExecPolicy, *, launched: str, workspace: str, writable: Sequence[str], search_path: Sequence[str]
) -> ProgramSet:
    """Resolve everything that may run.

    Args:
        policy: The policy's `exec:`.
        launched: Path of the launched command, empty if it was not found.
        workspace: What relative entries are below.
        writable: Folders that the worker may write; a link in them is never followed.
        search_path: The worker's PATH, by which ``env`` will look.

    Raises:
        UserError: An entry leads through a link that a worker may have planted, or matches too much.
    """
    found: dict[tuple[int, int], Program] = {}
    missing = []
    if launched:
        _add(found, launched, "launched", search_path, is_launched=True)
    for entry in policy.allow:
        paths = _matches(entry, workspace, writable)
        if not paths and not policy.is_of_preset(entry):
            missing.append(entry)
        for path in paths:
            _add(found, path, f"exec: {entry}", search_path)
    return ProgramSet(tuple(found.values()), tuple(missing))


def _matches(entry: str, workspace: str, writable: Sequence[str]) -> list[str]:
    """The files that one entry names here."""
    if "/" not in entry:
        places = [f"{folder}/{entry}" for folder in PROGRAM_FOLDERS]
    elif is_pattern(entry):
        import glob

        places = sorted(glob.glob(entry))
        if len(places) > MATCHES_LIMIT:
            raise UserError(
                "exec-too-wide",
                f"exec: {entry} matches {len(places)} files, more than {MATCHES_LIMIT}",
                "name the programs, or open all of them on record: exec: {mode: any}",
            )
    else:
        places = [os.path.normpath(os.path.join(workspace, os.path.expanduser(entry)))]
    for place in places:
        if os.path.lexists(place) and any(is_below(place, folder) for folder in writable):
            probe_path(place, f"exec: {entry}")  # refuses links
    return [place for place in places if _is_program(place)]


def _is_program(path: str) -> bool:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in it
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _add(
    found: dict[tuple[int, int], Program],
    path: str,
    why: str,
    search_path: Sequence[str],
    *,
    is_launched: bool = False,
) -> None:
    for place, reason in _with_interpreters(path, why, search_path, is_launched=is_launched):
        real = os.path.realpath(place)
        status = os.stat(real)
        identity = (status.st_dev, status.st_ino)
        if identity not in found:
            head = read_head(real)
            found[identity] = Program(
                path=real,
                identity=identity,
                why=reason,
                is_script=head.startswith(b"#!"),
                loader=_loader_of(real),
            )


def _loader_of(path: str) -> str:
    facts = read_elf(path)
    return os.path.realpath(facts.loader) if facts is not None and facts.loader else ""


def _with_interpreters(
    path: str, why: str, search_path: Sequence[str], *, is_launched: bool
) -> Iterator[tuple[str, str]]:
    """A program, what interprets it, what interprets that, and so on."""
    pending = [(path, why, 0)]
    while pending:
        place, reason, depth = pending.pop(0)
        if not _is_program(place) or depth > INTERPRETERS_DEEP:
            continue
        yield place, reason
        head = read_head(place)
        following = interpreters_in(head, search_path)
        if is_launched and depth == 0 and not head.startswith((b"#!", b"\x7fELF")):
            following = ["/bin/sh"]  # as every shell does with a text that has no #! line (stage.execute)
        pending += [(name, f"interpreter of {os.path.basename(place)}", depth + 1) for name in following]


def read_head(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def interpreters_in(head: bytes, search_path: Sequence[str]) -> list[str]:
    """What a ``#!`` line starts: the program that it names, and if that is `env`, the one that env starts."""
    script = parse_script(head)
    if script is None:
        return []
    behind_env = words_of_env(script.argument or "")[:1] if is_env(script.interpreter) else ()
    found = [script.interpreter]
    for name in behind_env:
        paths = [name] if "/" in name else [f"{folder}/{name}" for folder in search_path]
        found += [path for path in paths if _is_program(path)][:1]
    return found
