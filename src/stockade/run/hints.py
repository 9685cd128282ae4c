"""Why a command may have failed, where no record says so.

The kernel tells nobody when a file is not mapped as code, and some programs ask first
whether they may run another one, and take what they may not run for absent. What could have
happened is looked for afterwards, and only when the command failed or a plan is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import glob

from stockade.decision.explain import quote_program
from stockade.sandbox.plan import SandboxPlan
from stockade.sandbox.programs import Program
from stockade.sandbox.view import is_below

FILES_LOOKED_AT = 50_000
_NATIVE = re.compile(r".+\.(?:so(?:\.\d+)*|node)", re.ASCII)
_FOLDERS = (".venv", "venv", "node_modules")


def find_hints(
    plan: SandboxPlan,
    libraries: Sequence[str],
    *,
    refused: Collection[str],
    not_found: Collection[str],
    has_failed: bool,
) -> list[str]:
    """Sentences for the end of a run.

    Args:
        libraries: `exec: libraries` as written.
        refused: Files of commands that were refused as not listed.
        not_found: Names of programs that were looked for in vain.
        has_failed: The command ended with another code than 0.
    """
    if not plan.seal.lists_programs:
        return []
    found = [*_find_launcher(plan, refused), *_find_own_programs(plan, refused)]
    if has_failed:
        found += [*_find_hidden_helpers(plan, not_found), *find_unlisted_libraries(plan, libraries)]
    return found


def _find_launcher(plan: SandboxPlan, refused: Collection[str]) -> Iterator[str]:
    """The launched command is a script in front of the program of its name, as Chromium's is."""
    launched = next((program for program in plan.seal.programs if program.why == "launched"), None)
    if launched is None or not launched.is_script or not refused:
        return
    listed = [program.path for program in plan.seal.programs if _is_listed(program)]
    for path in [*listed, *sorted(refused)]:
        if os.path.basename(path) == os.path.basename(launched.path):
            yield f"{launched.path} is a script that starts other programs; launch {path} itself"
            return


def _is_listed(program: Program) -> bool:
    return program.why.startswith("exec: ") and not program.is_script


def _find_own_programs(plan: SandboxPlan, refused: Collection[str]) -> Iterator[str]:
    own = sorted(path for path in refused if any(is_below(path, str(root)) for root in plan.writable))
    if own:
        names = ", ".join(map(os.path.basename, own[:3])) + (", …" if len(own) > 3 else "")
        yield (
            f"what lies where the command may write does not run ({names}); a file that is listed is"
            " read-only in the next run, and `exec: {mode: any}` permits to make programs and run them"
        )


# --- programs that look absent -----------------------------------------------------------------


def _find_hidden_helpers(plan: SandboxPlan, not_found: Collection[str]) -> Iterator[str]:
    """Programs outside the search path, which only presets name: a compiler's passes, git's commands."""
    permitted = {os.path.basename(program.path) for program in plan.seal.programs}
    wanted = sorted(name for name in not_found if name not in permitted)
    for name, path, preset in _find_in_presets(wanted):
        yield (
            f"{name} was looked for in vain: {path} may not run, which some programs take for absent;"
            f" to permit it, add `include: [{preset}]`, or `exec: {{allow: [{quote_program(path)}]}}`"
        )


def _find_in_presets(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(name, a file of that name here, a preset that lists it) for each name that one of them explains."""
    if not names:
        return
    from stockade.policy.load import list_presets, load_preset

    left = list(names)
    for preset in filter(lambda name: name.startswith("exec/"), list_presets()):
        policy = load_preset(preset).exec
        for entry in () if policy is None else policy.allow:
            folder, slash, last = entry.rpartition("/")
            for name in [name for name in left if slash and fnmatchcase(name, last)]:
                path = next(iter(sorted(glob(f"{folder}/{name}"))), None)
                if path is not None:
                    left.remove(name)
                    yield name, path, preset


# --- libraries that cannot be loaded -----------------------------------------------------------


def find_unlisted_libraries(plan: SandboxPlan, libraries: Sequence[str]) -> Iterator[str]:
    """Environments of the command that hold native code and were not under `exec: libraries` at the start."""
    if plan.seal.mounts is None:
        return
    opened = [path for path, _is_read_only in plan.seal.mounts.libraries]
    written = [os.path.normpath(plan.workspace / os.path.expanduser(text)) for text in libraries]
    for folder in _environments(plan):
        if _is_among(folder, opened):
            continue
        example = _find_native(folder)
        if example is None:
            continue
        entry = quote_program(_entry_of(folder, plan))
        remedy = (
            "it was made in this run, so from the next run on it can be"
            if _is_among(folder, written)
            else f"to permit it, add `exec: {{libraries: [{entry}]}}`"
        )
        yield f"native code of {folder}, such as {example}, cannot be loaded; {remedy}"


def _is_among(folder: str, places: Sequence[str]) -> bool:
    return any(is_below(folder, place) or is_below(place, folder) for place in places)


def _environments(plan: SandboxPlan) -> list[str]:
    """Folders that a Python or Node of this command loads packages from, as far as they exist."""
    workspace = str(plan.workspace)
    places = [os.path.join(workspace, name) for name in _FOLDERS]
    places.append(plan.environment.get("VIRTUAL_ENV", ""))
    if "/" in plan.argv[0]:
        prefix = os.path.dirname(os.path.dirname(os.path.join(workspace, plan.argv[0])))
        places.append(prefix if os.path.isfile(f"{prefix}/pyvenv.cfg") else "")
    real = [os.path.realpath(place) for place in places if place and os.path.isdir(place)]
    return list(dict.fromkeys(real))


def _find_native(folder: str) -> str | None:
    """A shared object below a folder; None if there is none among its first files."""
    left = FILES_LOOKED_AT
    for place, _folders, files in os.walk(folder):
        for name in sorted(files):
            if _NATIVE.fullmatch(name):
                return os.path.relpath(os.path.join(place, name), folder)
        left -= len(files) + 1
        if left < 0:
            return None
    return None


def _entry_of(folder: str, plan: SandboxPlan) -> str:
    workspace = str(plan.workspace)
    return os.path.relpath(folder, workspace) if is_below(folder, workspace) else folder
