"""What an entry of ``exec: allow`` names: a program, a family of files, a file of the workspace. Pure.

========================  ============================================================
``git``                   the file of that name in each of `PROGRAM_FOLDERS`
``/usr/bin/git``          that file
``/usr/lib/git-core/*``   every file that the pattern matches; ``*`` is any text inside
                          one segment, but no leading dot
``./tools/check``         a file below the workspace
``~/.cargo/bin/cargo``    a file below the home of whoever starts the run
========================  ============================================================

Patterns exist because one compiler lies in other folders on each distribution and in each
version. They are matched once, on the host, when a run starts: a file that comes later is
not permitted. There are none below the workspace, where they would match whatever an
earlier run left behind. Here entries are compared with what was typed; which files they are, links
followed, is the run's to find out.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Where a bare name is looked for: fixed, since the worker may set its PATH to anything.
PROGRAM_FOLDERS = (
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/usr/games",
)

_LOADER = re.compile(r"ld\.so|ld-(?:linux|musl|[0-9]).*|ld64\.so.*", re.ASCII)
_NO_PROGRAMS = ("/proc/", "/dev/", "/sys/")
_LONGEST = 4096  # linux/limits.h: PATH_MAX
_LEAST_FIXED = 2  # folders before the first `*`: "/usr/*" and "/opt/*/x" could be anything


def parse_program(text: str) -> str:
    """An entry as the model has it: a path below the workspace begins with ``./``.

    Raises:
        Rejected: ``program-unclear`` or ``program-too-broad``.
    """
    if " " in text:
        better = f"write {text.split()[0]}" if text.split() else "write git"
        raise _reject(text, "has a space in it; arguments are not judged", better)
    if not text or not text.isprintable() or len(text) > _LONGEST:
        raise _reject(text, "is not the name or the path of a program", "write git or /usr/bin/git")
    if "/" not in text:
        return _parse_name(text)
    path = text if text.startswith(("/", "~", "./")) else f"./{text}"
    if path.startswith("~") and not path.startswith("~/"):
        raise _reject(text, "names another user's home", "write the absolute path")
    if any(segment in ("", ".", "..") for segment in path.split("/")[1:]):
        raise _reject(text, "is no straight path to a file", "write it without //, /./, .. and a final /")
    if path.startswith(_NO_PROGRAMS):
        raise _reject(text, "is no program of this host", "write git or /usr/bin/git")
    if "?" in path or "[" in path:
        raise _reject(text, "has ? or [ in it; only * stands for other text", "write * or the name")
    _refuse_broad(text, path)
    return path


def _parse_name(text: str) -> str:
    if text in (".", "..", "~"):
        raise _reject(text, "is a folder", "write git or /usr/bin/git")
    if "*" in text:
        raise _reject(text, "is a pattern without a folder", f"write /usr/bin/{text}, or name the programs")
    return text


def _refuse_broad(text: str, path: str) -> None:
    if "*" not in path:
        return
    if not path.startswith("/"):
        raise _reject(text, "is a pattern, and only an absolute path can be one", "name the file")
    if "**" in path:
        better = "write one * for each folder on the way: /usr/lib/gcc/*/*/cc1"
        raise _reject(text, "would match at any depth", better, "program-too-broad")
    folders = path.split("/")[1:-1]
    fixed = next((count for count, folder in enumerate(folders) if "*" in folder), len(folders))
    if fixed < _LEAST_FIXED:
        better = "name two folders before the first *: /usr/lib/gcc/*/*/cc1"
        raise _reject(text, "could match any program", better, "program-too-broad")


def _reject(text: str, what: str, better: str, code: str = "program-unclear") -> Exception:
    from stockade.policy.problems import Rejected, shown  # only loading and refusing need them

    return Rejected(code, f"{shown(text)} {what}", better)


def is_pattern(entry: str) -> bool:
    """True if an entry stands for a family of files."""
    return "/" in entry and "*" in entry


def is_in_program_folder(path: str) -> bool:
    """True for a file right in one of the folders in which bare names are looked for."""
    return path.rpartition("/")[0] in PROGRAM_FOLDERS


def spellings(entry: str) -> list[str]:
    """Every way to type the program of an entry that is no pattern.

    A bare name and a path in a program folder are the same program, in both directions.
    """
    if "/" not in entry:
        return [entry, *(f"{folder}/{entry}" for folder in PROGRAM_FOLDERS)]
    return [entry, entry.rpartition("/")[2]] if is_in_program_folder(entry) else [entry]


def is_loader(program: str) -> bool:
    """True for a name or path of the ELF loader (ld.so(8)), which loads any program file it is given."""
    return _LOADER.fullmatch(program.rpartition("/")[2]) is not None


def plain_spelling(program: str) -> str:
    """A program as it was typed, a relative path taken to start from the workspace."""
    is_relative = "/" in program and not program.startswith("/")
    return f"./{program.removeprefix('./')}" if is_relative else program


def matches_pattern(pattern: str, program: str) -> bool:
    """Tell whether a pattern covers a path, or a bare name in its program folder."""
    if "/" not in program:
        if not is_in_program_folder(pattern):
            return False
        program = f"{pattern.rpartition('/')[0]}/{program}"
    return _compile(pattern).fullmatch(program) is not None


@lru_cache(maxsize=1024)
def _compile(entry: str) -> re.Pattern[str]:
    segments = entry.split("/")
    return re.compile("/".join(map(_segment, segments)), re.DOTALL)


def _segment(segment: str) -> str:
    """``*`` matches no leading dot, so neither ``..`` nor hidden files."""
    if segment == "*":
        return "(?!\\.)[^/]+"
    inner = "[^/]*".join(map(re.escape, segment.split("*")))
    return f"(?!\\.){inner}" if segment.startswith("*") else inner
