"""The worker's environment: an allow-list, since a variable can load code or move traffic. Pure.

What is not listed is not passed: proxies (a client would try to leave by them), LD_*,
PYTHON*, NODE_OPTIONS, GIT_* and the like (they run code or open files in programs that
are permitted), tokens, agent and desktop sockets. The operator adds names by ``--env``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockade.policy.programs import PROGRAM_FOLDERS

HOME = "/home/worker"
USER = "worker"
DEFAULT_PATH = (
    PROGRAM_FOLDERS  # a bare name in `exec:` and one that the worker types are looked for in one list
)

# Names that say how to show things and which language to speak; none of them names a file to run.
PASSED = frozenset({"TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "NO_COLOR", "CI"})
PASSED_PREFIXES = ("LC_",)


def plan_environment(
    caller: Mapping[str, str],
    *,
    visible_folders: Sequence[str],
    extra: Sequence[str],
    run_id: str,
    workspace: str,
    temporary: str = "/tmp",
) -> dict[str, str]:
    """The whole environment of the worker.

    Args:
        caller: The environment of whoever started Stockade.
        visible_folders: Folders of the view; entries of PATH outside them would dangle.
        extra: What the operator passes: ``NAME`` (the caller's value) or ``NAME=VALUE``.
        run_id: Shown inside as STOCKADE_RUN; it gives no right.
        workspace: Becomes PWD.
        temporary: Becomes TMPDIR.
    """
    passed = {name: value for name, value in caller.items() if _is_passed(name)}
    virtual_env = caller.get("VIRTUAL_ENV", "")
    if virtual_env and _is_below_any(virtual_env, visible_folders):
        passed["VIRTUAL_ENV"] = virtual_env
    passed.setdefault("LANG", "C.UTF-8")
    passed |= {
        "PATH": ":".join(plan_search_path(caller.get("PATH", ""), visible_folders)),
        "HOME": HOME,
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/sh",
        "PWD": workspace,
        "TMPDIR": temporary,
        "STOCKADE": "1",
        "STOCKADE_RUN": run_id,
    }
    return passed | _extra_variables(caller, extra)


def plan_search_path(caller_path: str, visible_folders: Sequence[str]) -> list[str]:
    """The caller's PATH as far as it can be seen inside, in its order, then the usual folders."""
    kept = [
        entry
        for entry in caller_path.split(":")
        if entry.startswith("/") and _is_below_any(entry, visible_folders)
    ]
    return list(dict.fromkeys([*kept, *DEFAULT_PATH]))


def _is_passed(name: str) -> bool:
    return name in PASSED or name.startswith(PASSED_PREFIXES)


def _is_below_any(path: str, folders: Sequence[str]) -> bool:
    return ".." not in path.split("/") and any(
        path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders
    )


def _extra_variables(caller: Mapping[str, str], extra: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in extra:
        name, equals, value = item.partition("=")
        if equals:
            found[name] = value
        elif name in caller:
            found[name] = caller[name]
    return found
