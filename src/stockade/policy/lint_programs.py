"""What a list of programs permits without its author knowing. Advice only, and about names only.

Which file a name is, and whether that is a script, the run finds out and shows (`--dry-run`).
The tables hold what many systems have; a program that is not in them is not thereby harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from stockade.policy.model import PRESET_ORIGIN, ExecPolicy, Finding, Policy, make_finding
from stockade.policy.programs import PROGRAM_FOLDERS, is_loader, is_pattern

# Programs that run any code that they are given: languages, shells, debuggers, emulators (R144).
_RUNS_CODE = re.compile(
    r"(?:ba|da|z|k|a|c|tc|fi|mk|pw)?sh|python[0-9.]*|pypy[0-9.]*|ipython[0-9.]*|perl[0-9.]*|ruby[0-9.]*|irb|"
    r"node(?:js)?|deno|bun|php[0-9.]*|lua(?:jit)?[0-9.]*|[gmn]?awk|original-awk|tclsh[0-9.]*|wish[0-9.]*|expect|"
    r"R|Rscript|julia|java|jshell|groovy|dotnet|mono|erl|elixir|iex|ghci|runghc|guile[0-9.]*|sbcl|octave|"
    r"vim?|view|nvim|emacs[0-9.]*|gdb|lldb|qemu-.*|wine[0-9]*|"
    r"npm|npx|yarn|pnpm|corepack|pip[0-9.]*|pipx|uvx?|poetry|tox|nox",
    re.ASCII,
)
# Programs that start others by an argument, a setting, a hook or a keystroke. Each of those is judged again.
_STARTS_OTHERS = re.compile(
    r"env|xargs|find|nohup|timeout|nice|ionice|setsid|stdbuf|chroot|flock|time|watch|parallel|taskset|prlimit|"
    r"setpriv|chrt|unshare|nsenter|sudo|su|doas|runuser|systemd-run|run-parts|at|batch|crontab|"
    r"g?make|cmake|ctest|ninja|meson|git|scalar|ssh|scp|sftp|rsync|tar|zip|split|sort|sed|ed|less|more|man|"
    r"script|socat|screen|tmux|strace|ltrace|docker|podman|cargo|go|sqlite3|dc|xdg-open|"
    r"(?:\w+-)*(?:gcc|g\+\+|cc|c\+\+|c[89]9|gfortran)(?:-[0-9.]+)?|clang(?:\+\+)?(?:-[0-9.]+)?|rustc",
    re.ASCII,
)
_MANY_IN_ONE = re.compile(r"busybox(?:\.static)?|toybox.*|coreutils|[su]base-box", re.ASCII)
_SCRIPT = re.compile(r".+\.(?:(?:ba|z|k)?sh|py|pl|rb|[cm]?js|php|lua|awk|tcl)", re.ASCII)

_SHOWN = 4


class _Kind(Struct, frozen=True):
    """What several programs have in common; `message` says it with their names in its place."""

    code: str
    severity: Literal["warning", "note"]
    has: Callable[[str], object]
    message: str
    better: str | None = None


def _named(pattern: re.Pattern[str]) -> Callable[[str], object]:
    return lambda entry: pattern.fullmatch(_name_of(entry))


def _name_of(entry: str) -> str:
    """The last segment; of a pattern what stands before its `*`, so that ``python3.*`` is a Python."""
    name = entry.rpartition("/")[2]
    return name.partition("*")[0].rstrip("-") if is_pattern(entry) else name


_KINDS = (
    _Kind(
        "exec-interpreter",
        "warning",
        _named(_RUNS_CODE),
        "programs that run any code given to them ({}): it keeps out other programs, not other code",
        "keep only what the task needs; no verdict of the network rests on the program",
    ),
    _Kind(
        "exec-starts-others",
        "note",
        _named(_STARTS_OTHERS),
        "programs that start others, by themselves or as they are told ({}): those have to be listed too",
        "`stockade policy presets exec/coding` shows what git, compilers and make start, by their paths",
    ),
    _Kind(
        "exec-many-in-one",
        "warning",
        _named(_MANY_IN_ONE),
        "a file that is many programs ({}): all of them are permitted, under any name",
        "list the single programs of another package",
    ),
    _Kind(
        "exec-loader",
        "warning",
        is_loader,
        "the loader of programs ({}), which loads any program file that it is given",
        "leave it out: each listed program may use it anyway",
    ),
    _Kind(
        "exec-script",
        "warning",
        _named(_SCRIPT),
        "scripts ({}): the interpreter of each is then permitted for every command line",
        "leave them out and start them by their interpreter, if that is listed",
    ),
    _Kind(
        "exec-pattern-broad",
        "warning",
        lambda entry: entry.endswith("/*") and entry[:-2] in PROGRAM_FOLDERS,
        "whole folders of programs ({})",
        "name the programs, or include: [exec/coding]",
    ),
    _Kind(
        "exec-from-workspace",
        "warning",
        lambda entry: entry.startswith("./"),
        "files of the workspace ({}): they count as they stand when a run starts, whoever wrote them",
    ),
)


def lint_programs(policy: Policy) -> Iterator[Finding]:
    """Findings about `exec:`, each kind once."""
    if policy.exec is None:
        yield make_finding(
            "note",
            "exec-launched-only",
            policy.source,
            "without `exec:` only the launched command may run, and if it is a script its interpreters",
            "include: [exec/coding], exec/python, exec/node or exec/browser, or exec: {allow: [NAME]}",
        )
    elif policy.exec.mode == "any":
        yield make_finding(
            "warning",
            "exec-any",
            policy.exec.origin,
            "any program may run",
            "list the programs under exec: allow",
        )
    else:
        yield from _lint_kinds(policy.exec)
        yield from _lint_levels(policy.exec)
        yield from _lint_libraries(policy, policy.exec)


def _lint_kinds(policy: ExecPolicy) -> Iterator[Finding]:
    for kind in _KINDS:
        entries = [entry for entry in policy.allow if kind.has(entry)]
        if not entries:
            continue
        more = len(entries) - _SHOWN
        names = ", ".join(entries[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        message = f"`allow` lists {kind.message.format(names)}"
        yield make_finding(kind.severity, kind.code, policy.origin_of(entries[0]), message, kind.better)


def _lint_levels(policy: ExecPolicy) -> Iterator[Finding]:
    if policy.code == "jit":
        yield make_finding(
            "warning",
            "exec-jit",
            policy.code_origin,
            "`code: jit`: permitted programs may make new native code; what holds is that no others start",
            _remedy(policy.code_origin, "unless a browser, Node or another just-in-time compiler runs"),
        )
    if policy.unix_sockets:
        yield make_finding(
            "note",
            "exec-unix-sockets",
            policy.unix_sockets_origin,
            "Unix sockets may be made and connected; a socket of the host in a writable folder would answer",
            _remedy(policy.unix_sockets_origin, "unless a program needs them"),
        )


def _remedy(origin: str, condition: str) -> str:
    if origin.startswith(PRESET_ORIGIN):
        return f"leave the include {origin.split(':')[1]} out {condition}"
    return f"leave the key out {condition}"


def _lint_libraries(policy: Policy, programs: ExecPolicy) -> Iterator[Finding]:
    """Writable xor executable: code that the worker wrote is not loaded by what it may run."""
    for library in programs.libraries:
        for folder in policy.files.write:
            if is_same_or_below(folder, library):
                yield make_finding(
                    "warning",
                    "library-writable",
                    policy.files.origin or policy.source,
                    f"{folder} in files: write belongs to exec: libraries and stays read-only for the worker",
                    "fill it by a run of its own, under exec: {mode: any} and without `libraries`",
                )
            elif is_same_or_below(library, folder):
                yield make_finding(
                    "note",
                    "library-writable",
                    programs.origin,
                    f"{library} in exec: libraries stays read-only, although {folder} may be written",
                )


def is_same_or_below(path: str, folder: str) -> bool:
    """Compare two paths of a policy as texts: below the workspace, below the home, or absolute."""
    inner, outer = _parts(path), _parts(folder)
    return inner[: len(outer)] == outer


def _parts(path: str) -> list[str]:
    root = path[:1] if path.startswith(("/", "~")) else "."
    return [root, *(part for part in path.lstrip("~").split("/") if part not in ("", "."))]
