"""What is really enforced, and how a command ended: the values that a run puts on record."""

from __future__ import annotations

import signal

import msgspec
from msgspec import Struct

from stockade.sandbox.holding import HeldLimits
from stockade.sandbox.lifeline import StageFacts
from stockade.sandbox.plan import SandboxPlan
from stockade.sandbox.room import BuiltRoom


class WorkerExit(Struct, frozen=True):
    """How the command ended: one of the three is set, or none if the sandbox died under it.

    Attributes:
        code: It ended by itself with this code.
        signal: It died of this signal.
        exec_errno: It could not be started; `step` says at what (``exec``, ``chdir``).
    """

    code: int | None = None
    signal: int | None = None
    exec_errno: int | None = None
    step: str = ""

    @property
    def shell_code(self) -> int:
        """The exit code by the shell's convention: n, 128 + signal, 127 not found, 126 not executable."""
        if self.code is not None:
            return self.code
        if self.signal is not None:
            return 128 + self.signal
        if self.exec_errno is not None:
            return 127 if self.exec_errno in (2, 20) else 126  # ENOENT, ENOTDIR
        return 128 + signal.SIGKILL


class EnforcementFacts(Struct, kw_only=True):
    """What is really enforced, for the run's first record. Filled by `Sandbox.build`."""

    network: str = "none"
    namespaces: tuple[str, ...] = ()
    user_namespaces_inside: str = "none"
    capabilities: str = "unknown"
    no_new_privileges: bool = False
    system_call_filter: str = "none"
    worker_uid: int = -1
    started_as_root: bool = False
    commands: str = "any"
    code: str = "any"
    programs: tuple[str, ...] = ()
    missing_programs: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()
    landlock_abi: int = 0
    new_code_forbidden_by_kernel: bool = False
    view: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: int = 0
    limits: dict[str, dict[str, object]] = {}
    streams: str = "pipes"
    ipv6: bool = False
    exact_count: bool = False
    layers_off: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_fields(self) -> dict[str, object]:
        """As plain values, for a record."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        return fields


def describe_enforcement(
    plan: SandboxPlan,
    stage: StageFacts,
    outside: dict[str, int],
    room: BuiltRoom | None,
    executable: list[str],
    limits: HeldLimits,
) -> EnforcementFacts:
    """The facts of a sandbox whose stage was verified (`lifeline.verify_stage`).

    Args:
        executable: The mounts from which code may be run or loaded, as the kernel named them.
    """
    return EnforcementFacts(
        network="room" if room is not None else "host",
        namespaces=tuple(name for name, inode in stage.namespaces.items() if inode != outside[name]),
        capabilities="none",
        no_new_privileges=True,
        system_call_filter=_name_filter(plan),
        commands=_name_commands(plan),
        code=plan.seal.code,
        programs=tuple(program.path for program in plan.seal.programs),
        missing_programs=plan.seal.missing,
        executable=tuple(executable),
        landlock_abi=plan.seal.landlock_abi,
        new_code_forbidden_by_kernel=stage.status.get("mdwe") == "1",
        worker_uid=plan.worker_uid,
        started_as_root=plan.started_as_root,
        view=tuple(mount.target for mount in plan.mounts if mount.identity is not None),
        writable=tuple(map(str, plan.writable)),
        hidden=tuple(map(str, plan.hidden)),
        protected=len(plan.protected),
        limits=limits.to_facts(),
        streams="terminal" if plan.terminal else "pipes",
        ipv6=room is not None and room.has_ipv6,
        exact_count=room is not None and room.has_exact_count,
        layers_off=tuple(sorted(plan.layers_off)),
        notes=plan.notes,
    )


def _name_filter(plan: SandboxPlan) -> str:
    wish = plan.seal.filter
    parts = {"calls": wish.refuse_calls, "code-in-memory": wish.refuse_memory_code and wish.code != "any"}
    return "+".join(name for name, is_on in parts.items() if is_on) or "none"


def _name_commands(plan: SandboxPlan) -> str:
    """In one word who may run and whether each command is on record."""
    seen = "seen" if plan.seal.has_eye else "unseen"
    if not plan.seal.lists_programs:
        return f"any, {seen}"
    if plan.seal.mounts is None and plan.seal.landlock_abi == 0:
        return f"any, {seen}" if not plan.seal.has_eye else "listed by the eye alone"
    return f"listed, {seen}"
