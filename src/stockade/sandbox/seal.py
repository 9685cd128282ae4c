"""The plan of the seal: what no command may step over, as values. Pure.

Four layers, each of which holds where another could be passed:

=========  ============================================================================
mounts     noexec everywhere but permitted programs and library folders: no copy, no
           download, no `ld.so PROGRAM`, no library of the worker's own becomes code
landlock   no program but the permitted ones is executed, whatever path leads to it
seccomp    no system call by which the above, or another namespace, could be passed;
(memfd)    its second half: no code in memory that never was a permitted file
notify     the eye: each command is judged and on record before it runs
=========  ============================================================================
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from stockade.policy.model import PRESET_ORIGIN, ExecPolicy
from stockade.sandbox.filter import FilterWish
from stockade.sandbox.noexec import MountSeal
from stockade.sandbox.programs import Program, ProgramSet

SHOWN = 30  # programs that --dry-run names one by one
LAYERS = ("mounts", "memfd", "landlock", "seccomp", "notify")


class SealFacts(Struct, frozen=True, kw_only=True):
    """What this host has, as far as the seal depends on it.

    Attributes:
        programs: What may run.
        libraries: Folders from which code may be loaded, besides the system's: the command's own, and
            those of `exec: libraries`.
        cache_folder: Where searches of them are remembered.
        landlock_abi: 0 without Landlock.
        landlock_errno: Why there is none.
    """

    programs: ProgramSet = ProgramSet()
    libraries: tuple[str, ...] = ()
    cache_folder: str = ""
    landlock_abi: int = 0
    landlock_errno: int = 0


class SealPlan(Struct, frozen=True, kw_only=True):
    """What will be put up.

    Attributes:
        code: How far the promise goes: ``closed`` (no new native code inside a permitted
            program), ``jit`` (no other program is started by the kernel), ``any``.
        programs: What may run, by file.
        missing: What the policy lists and this host does not have.
        mounts: The noexec layer, None if every program may run or the layer was given up.
        executable: What Landlock lets execute.
        landlock_abi: 0 if the layer was given up.
        filter: What the system-call filter is to do.
        forbids_new_code: PR_SET_MDWE is asked for.
    """

    code: Literal["closed", "jit", "any"]
    programs: tuple[Program, ...] = ()
    missing: tuple[str, ...] = ()
    mounts: MountSeal | None = None
    executable: tuple[str, ...] = ("/",)
    landlock_abi: int = 0
    filter: FilterWish
    forbids_new_code: bool = False

    @property
    def lists_programs(self) -> bool:
        return self.code != "any"

    @property
    def has_eye(self) -> bool:
        return self.filter.watch

    def reasons_to_run(self) -> dict[str, str]:
        """Which entry of `exec: allow` lists a file, or in a few words what else permits it."""
        return {program.path: program.why.removeprefix("exec: ") for program in self.programs}

    def describe(self) -> list[str]:
        """Lines for ``--dry-run``."""
        if not self.lists_programs:
            return ["commands: any program may run (exec: {mode: any})"]
        sockets = "permitted" if self.filter.unix_sockets else "refused"
        lines = [f"commands: code {self.code}, Unix sockets {sockets}, programs: {len(self.programs)}"]
        lines += _describe_programs(self.programs)
        lines += [f"not here: {entry}, listed under exec" for entry in self.missing]
        if self.mounts is not None:
            steps = self.mounts.work_out()
            lines += [f"code may be loaded from: {path}" for path, is_opened in steps.folders if is_opened]
            lines += [f"but not from: {path}" for path, is_opened in steps.folders if not is_opened]
            lines += [f"read-only, another name of what may run: {path}" for path in steps.other_names]
            lines.append(f"closed again in those: {len(steps.covered)} program files that are not permitted")
        return lines


def _describe_programs(programs: Sequence[Program]) -> list[str]:
    """One line for each program that the policy names or that came with another; one for each preset."""
    from collections import Counter

    single = [program for program in programs if not program.origin.startswith(PRESET_ORIGIN)]
    lines = [f"may run: {program.path} – {program.why}" for program in single[:SHOWN]]
    if len(single) > SHOWN:
        lines.append(f"may run: {len(single) - SHOWN} more; --json names each")
    of_presets: dict[str, Counter[str]] = {}
    for program in programs:
        if program.origin.startswith(PRESET_ORIGIN):
            preset = program.origin.removeprefix(PRESET_ORIGIN).rpartition(":")[0]
            of_presets.setdefault(preset, Counter())[os.path.dirname(program.path)] += 1
    for preset, folders in of_presets.items():
        places = ", ".join(f"{count} in {folder}" for folder, count in folders.most_common())
        lines.append(f"may run: {folders.total()} of preset {preset}, {places}; --json names each")
    return lines


def plan_seal(
    policy: ExecPolicy,
    facts: SealFacts,
    *,
    writable: Sequence[str],
    worker_uid: int,
    layers_off: frozenset[str],
) -> SealPlan:
    """Decide the seal.

    Args:
        policy: The policy's `exec:`.
        facts: See `SealFacts`.
        writable: Folders of the host that the worker may write.
        worker_uid: Who the worker is on the host.
        layers_off: What was given up.
    """
    code: Literal["closed", "jit", "any"] = "any" if policy.mode == "any" else policy.code
    lists = code != "any"
    programs = facts.programs.programs
    executable = (*(program.path for program in programs), *facts.programs.loaders)
    return SealPlan(
        code=code,
        programs=programs,
        missing=facts.programs.missing,
        mounts=_plan_mounts(facts, writable, worker_uid) if lists and "mounts" not in layers_off else None,
        executable=executable if lists else ("/",),
        landlock_abi=0 if "landlock" in layers_off else facts.landlock_abi,
        filter=FilterWish(
            code=code,
            refuse_calls="seccomp" not in layers_off,
            refuse_memory_code="memfd" not in layers_off,
            watch="notify" not in layers_off,
            unix_sockets=policy.unix_sockets,
        ),
        forbids_new_code=code == "closed" and "memfd" not in layers_off,
    )


def _plan_mounts(facts: SealFacts, writable: Sequence[str], worker_uid: int) -> MountSeal:
    programs = (*(program.path for program in facts.programs.programs), *facts.programs.loaders)
    return MountSeal(
        programs=tuple(dict.fromkeys(programs)),
        libraries=tuple(dict.fromkeys(facts.libraries)),
        writable=tuple(writable),
        worker_uid=worker_uid,
        cache_folder=facts.cache_folder,
    )
