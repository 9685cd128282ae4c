"""What one run is limited to, and how that is said. Pure; who holds a limit is `holding.py`'s.

A limit that somebody named must hold, or the run does not start. The rest are defaults:
they are held as well as this host can, and the first record says by whom.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

LimitName = Literal["memory", "processes", "open-files", "file-size", "core-files", "time"]

DEFAULT_PROCESSES = 4096  # a browser uses some hundred threads, each of which counts
DEFAULT_OPEN_FILES = 65536
# More than these the kernel has no numbers for, and no machine has so much.
_MOST_BYTES = 1 << 62
_MOST: Mapping[LimitName, int] = {"processes": 4_194_304 - 2, "open-files": 1 << 30}  # PID_MAX_LIMIT
# What the sandbox has of its own beside the worker's processes: bubblewrap's outer process and the stage.
OWN_PROCESSES = 2


class LimitRequest(Struct, frozen=True, kw_only=True):
    """Limits that somebody named; None where nobody did.

    Attributes:
        memory_bytes: Of all processes together, swap included.
        processes: Processes and threads of the worker at one time.
        open_files: Descriptors, of each process.
        file_size_bytes: Size of each file that is written.
        time_s: From the start of the command.
        origin: Where they were named (``policy.yaml:7``), for refusals.
    """

    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    file_size_bytes: int | None = None
    time_s: float | None = None
    origin: str = ""


class Limit(Struct, frozen=True):
    """One limit.

    Attributes:
        name: As the policy's key; ``core-files`` has none.
        amount: Bytes, a count, or seconds.
        is_named: Somebody named it, so it must hold.
    """

    name: LimitName
    amount: int
    is_named: bool = False

    @property
    def amount_text(self) -> str:
        """As a policy writes it: ``64MiB``, ``256``, ``30s``."""
        from stockade.policy.quantities import write_duration, write_size

        if self.name in ("memory", "file-size"):
            return write_size(self.amount)
        return write_duration(self.amount) if self.name == "time" else str(self.amount)


class LimitPlan(Struct, frozen=True, kw_only=True):
    """All limits of one run.

    Attributes:
        group: Name of the control group, should there be one: ``stockade-RUN``.
        origin: Where the named ones were named.
    """

    limits: tuple[Limit, ...] = ()
    group: str = ""
    origin: str = ""

    def find(self, name: LimitName) -> Limit | None:
        return next((limit for limit in self.limits if limit.name == name), None)

    def describe(self) -> list[str]:
        """Lines for ``--dry-run``, which tries nothing."""
        return [
            f"limit: {limit.name} {limit.amount_text}"
            + (" (held, or the run does not start)" if limit.is_named else "")
            for limit in self.limits
        ]


def plan_limits(request: LimitRequest, run_id: str) -> LimitPlan:
    """The named limits and the defaults beside them. Memory, file size and time have no default."""
    wanted: Mapping[LimitName, tuple[float | None, int | None]] = {
        "memory": (request.memory_bytes, None),
        "processes": (request.processes, DEFAULT_PROCESSES),
        "open-files": (request.open_files, DEFAULT_OPEN_FILES),
        "file-size": (request.file_size_bytes, None),
        "core-files": (None, 0),  # a core file would lie in the workspace and hold what was in memory
        "time": (request.time_s, None),
    }
    limits = []
    for name, (named, default) in wanted.items():
        amount = default if named is None else min(int(named), _MOST.get(name, _MOST_BYTES))
        if amount is not None:
            limits.append(Limit(name, amount, named is not None))
    return LimitPlan(limits=tuple(limits), group=f"stockade-{run_id or 'nameless'}", origin=request.origin)


class LimitUsage(Struct, frozen=True, kw_only=True):
    """What the kernel counted of one run; None where nobody counts it (no control group).

    Attributes:
        memory_peak_bytes: Highest use of all processes together.
        memory_kills: Processes that the kernel killed for want of memory.
        is_memory_exhausted: The group wanted more than its limit permits, and nothing could be given back.
        processes_peak: Most processes and threads of the worker at one time.
        processes_refused: Forks and threads that the limit on processes refused.
    """

    memory_peak_bytes: int | None = None
    memory_kills: int | None = None
    is_memory_exhausted: bool | None = None
    processes_peak: int | None = None
    processes_refused: int | None = None


class ReachedLimit(Struct, frozen=True):
    """A limit that had an effect: the limit, and what it did."""

    name: LimitName
    amount: int
    message: str


def find_reached(plan: LimitPlan, usage: LimitUsage) -> list[ReachedLimit]:
    """The limits that refused or killed something, with a sentence for people.

    A kill counts as the limit's only if the group had run into its limit: the kernel counts
    here too what it kills because the whole machine, or a group around ours, has no memory.
    """
    found = []
    memory, processes = plan.find("memory"), plan.find("processes")
    if memory is not None and usage.memory_kills and usage.is_memory_exhausted:
        what = f"{usage.memory_kills} process{'es' if usage.memory_kills > 1 else ''} killed"
        found.append(_reached(memory, f"memory limit of {memory.amount_text} reached: {what}"))
    if processes is not None and usage.processes_refused:
        what = f"refused {usage.processes_refused} time{'s' if usage.processes_refused > 1 else ''}"
        found.append(_reached(processes, f"process limit of {processes.amount_text} reached: {what}"))
    return found


def reached_time(limit_s: float, *, was_killed: bool) -> ReachedLimit:
    """The limit on time, which the supervisor itself holds."""
    how = "SIGTERM did not end the command, so all was killed" if was_killed else "the command was ended"
    return _reached(Limit("time", int(limit_s)), f"time limit of {int(limit_s)} s reached: {how}")


def find_file_size_reached(plan: LimitPlan, exit_code: int) -> list[ReachedLimit]:
    """The limit on file size, if it ended the command or what a shell ran last for it.

    The kernel counts nothing here. A program that writes on gets SIGXFSZ, or EFBIG if it ignores that.
    """
    limit = plan.find("file-size")
    if limit is None or exit_code != 128 + signal.SIGXFSZ:
        return []
    return [_reached(limit, f"file-size limit of {limit.amount_text} reached: a process was ended (SIGXFSZ)")]


def _reached(limit: Limit, message: str) -> ReachedLimit:
    return ReachedLimit(limit.name, limit.amount, message)
