"""The plan of a run as `--dry-run` prints it: lines for people, or one object with all of it."""

from __future__ import annotations

import os

import msgspec

from stockade.policy.model import ExecPolicy
from stockade.run.native_modules import Places, describe_modules, find_environments
from stockade.sandbox.plan import SandboxPlan


def print_plan(plan: SandboxPlan, programs: ExecPolicy | None, *, as_json: bool) -> None:
    """Print it to standard output."""
    places = find_places(plan, programs)
    permitted = [os.path.basename(program.path) for program in plan.seal.programs]
    modules = () if places is None else describe_modules(places, permitted)
    notes = [*plan.notes, *modules]
    if as_json:
        fields = plan_fields(plan) | {"notes": notes}
        print(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
    else:
        print("\n".join([*plan.describe(), *(f"note: {note}" for note in notes)]))


def find_places(plan: SandboxPlan, programs: ExecPolicy | None) -> Places | None:
    """Where compiled modules of this run lie; None if code is loaded from everywhere."""
    if plan.seal.mounts is None:
        return None
    libraries = () if programs is None else programs.libraries
    return Places(
        workspace=plan.cwd,
        environments=find_environments(plan.cwd, plan.argv[0], plan.environment),
        opened=plan.seal.mounts.libraries,
        written=tuple(
            os.path.normpath(os.path.join(plan.cwd, os.path.expanduser(text))) for text in libraries
        ),
    )


def plan_fields(plan: SandboxPlan) -> dict[str, object]:
    """All that is planned, as JSON has it; text that is not UTF-8 is shown with replacements."""
    seal = plan.seal
    steps = None if seal.mounts is None else seal.mounts.work_out()
    folders = () if steps is None else steps.folders
    fields: dict[str, object] = {
        "argv": plan.argv,
        "program": plan.program,
        "folder": plan.cwd,
        "worker": {
            "uid": plan.worker_uid,
            "gid": plan.worker_gid,
            "started_as_root": plan.started_as_root,
        },
        "layers_off": sorted(plan.layers_off),
        "streams": "terminal" if plan.terminal else "pipes",
        "commands": {
            "listed": seal.lists_programs,
            "code": seal.code,
            "unix_sockets": seal.filter.unix_sockets,
            "programs": [
                {
                    "path": program.path,
                    "why": program.why,
                    "origin": program.origin,
                    "is_script": program.is_script,
                }
                for program in seal.programs
            ],
            "missing": seal.missing,
            "code_from": [path for path, is_opened in folders if is_opened],
            "no_code_from": [path for path, is_opened in folders if not is_opened],
            "covered": () if steps is None else steps.covered,
        },
        "limits": plan.limits.describe(),
        "view": [
            {
                "kind": mount.kind.value,
                "target": mount.target,
                "source": mount.source,
                "why": mount.why,
            }
            for mount in plan.mounts
        ],
        "environment": plan.environment,
    }
    return _readable(fields)  # type: ignore[return-value]


def _readable(value: object) -> object:
    """The same with text that UTF-8 can hold: a path may be any bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value
