"""Who holds each limit of a run: a control group where one can be had, else the kernel's rlimits.

An ordinary user often gets no control group. rlimits then hold processes (they count in the
sandbox's own user namespace), open files and file sizes; nothing but a group holds memory of
all processes together. Found out by trying, before anything is started.
"""

from __future__ import annotations

import os
import re
import resource

from stockade.errors import ContainmentError, HostError, StockadeError, UserError
from stockade.sandbox.cgroup import Group, open_group
from stockade.sandbox.limits import OWN_PROCESSES, Limit, LimitName, LimitPlan, LimitUsage

_CONTROLLERS: dict[LimitName, str] = {"memory": "memory", "processes": "pids"}
_RLIMITS: dict[LimitName, int] = {
    "processes": resource.RLIMIT_NPROC,
    "open-files": resource.RLIMIT_NOFILE,
    "file-size": resource.RLIMIT_FSIZE,
    "core-files": resource.RLIMIT_CORE,
}
_JOINING = "joining the control group"
_JOINING_FAILED = re.compile(rf"\[Errno (\d+)\] ({_JOINING}.*)")
# The stage counts among the processes of the user namespace; bubblewrap's outer process does not.
_COUNTED_IN_NAMESPACE = OWN_PROCESSES - 1


class HeldLimits:
    """The limits of one sandbox, each with who holds it. `close` gives the control group back."""

    def __init__(self, plan: LimitPlan, group: Group, refused: dict[str, OSError]) -> None:
        self.plan = plan
        self._usage = LimitUsage()
        self._lost: list[str] = []
        self._group = group
        self._refused = refused

    def holds_by_group(self, name: LimitName) -> bool:
        return _CONTROLLERS.get(name, "") in self._group

    # --- starting --------------------------------------------------------------------------

    def join(self) -> None:
        """Enter the group; called in the launching child, as the one who started Stockade.

        Raises:
            OSError: A named limit needs the group and the kernel refused it.
        """
        try:
            self._group.join()
        except OSError as error:
            if self._needs_group():
                raise OSError(error.errno, f"{_JOINING}: {error.strerror}") from error

    def _needs_group(self) -> bool:
        return any(limit.is_named and self.holds_by_group(limit.name) for limit in self.plan.limits)

    def verify(self, stage_pid: int) -> None:
        """See that the sandbox is in the group. A group that only defaults need is given up if it is not.

        Raises:
            ContainmentError: A named limit would not hold.
        """
        try:
            if self._group.holds(stage_pid):
                return
            problem = OSError(0, "the sandbox is not in its control group")
        except (OSError, KeyError) as error:
            problem = OSError(getattr(error, "errno", 0), f"the sandbox's control group: {error}")
        if self._needs_group():
            raise ContainmentError(
                "limit-failed", str(problem.strerror), "`stockade doctor` tries each limit"
            )
        self._group.close()
        self._refused |= dict.fromkeys(("memory", "pids"), problem)

    def explain_end(self, complaint: str) -> StockadeError | None:
        """Why the sandbox ended before it was ready, if a limit was it.

        Args:
            complaint: What bubblewrap or the child that became it said last.
        """
        memory = self.plan.find("memory")
        said = _JOINING_FAILED.search(complaint)
        if said and (limit := memory or self.plan.find("processes")):
            return refuse_limit(limit, self.plan.origin, OSError(int(said[1]), said[2]))
        usage = self._group.read_usage()
        if memory is not None and usage.memory_kills:
            what = f"`memory: {memory.amount_text}` is too little for the sandbox itself"
            return UserError("limit-too-small", _place(self.plan.origin) + what, "name 32MiB or more")
        return None

    def resource_limits(self) -> list[tuple[int, int, int]]:
        """What the stage sets on the worker: (number, soft, hard), never above what we have ourselves.

        Not set from outside: prlimit on another uid needs a capability that root lacks in some
        containers. Not set before bwrap: the count of processes would include all of the user's
        others until the sandbox's own user namespace exists.
        """
        found = []
        for limit in self.plan.limits:
            kind = _RLIMITS.get(limit.name)
            if kind is None or self.holds_by_group(limit.name):
                continue  # both at once would hide from the group's count what the rlimit refuses
            amount = limit.amount + (_COUNTED_IN_NAMESPACE if limit.name == "processes" else 0)
            our_soft, our_hard = resource.getrlimit(kind)
            hard = _least(amount, our_hard)
            # A named count is meant; the default leaves the usual 1024, which is all that select(2) takes.
            is_meant = limit.name == "open-files" and limit.is_named
            found.append((kind, hard if is_meant else _least(hard, our_soft), hard))
        return found

    # --- what is said ----------------------------------------------------------------------

    def to_facts(self) -> dict[str, dict[str, object]]:
        """For the first record: each limit, who holds it, and if not the group, why not."""
        hard = {kind: hard for kind, _soft, hard in self.resource_limits()}
        return {limit.name: self._facts_of(limit, hard) for limit in self.plan.limits}

    def _facts_of(self, limit: Limit, hard: dict[int, int]) -> dict[str, object]:
        facts: dict[str, object] = {"limit": limit.amount, "named": limit.is_named}
        controller = _CONTROLLERS.get(limit.name)
        if limit.name == "time":
            return facts | {"held_by": "supervisor"}
        if self.holds_by_group(limit.name):
            facts |= {"held_by": "cgroup", "group": self._group.folder(controller or "")}
            return facts | ({"swap": self._group.limits_swap} if limit.name == "memory" else {})
        kind = _RLIMITS[limit.name]
        own = _COUNTED_IN_NAMESPACE if limit.name == "processes" else 0
        facts |= {"held_by": "rlimit", "limit": hard[kind] - own}
        reason = self._refused.get(controller or "")
        return facts if reason is None else facts | {"counted": False, "no_group": reason.strerror}

    # --- ending ----------------------------------------------------------------------------

    def read_usage(self) -> LimitUsage:
        """What the kernel counted so far; after `close` what it had counted by then."""
        if self._group.parts:
            self._usage = self._group.read_usage()
        return self._usage

    def close(self) -> None:
        """Remove the group; nothing inside is alive any more. Safe to call again."""
        self.read_usage()
        self._lost += self._group.find_lost()
        self._group.close()

    def find_lost(self) -> list[LimitName]:
        """Named limits that the group did not hold to the end; final after `close`."""
        lost = [name for name, controller in _CONTROLLERS.items() if controller in self._lost]
        return [limit.name for limit in self.plan.limits if limit.is_named and limit.name in lost]


def open_limits(plan: LimitPlan) -> HeldLimits:
    """Find somebody to hold each limit.

    Raises:
        HostError: ``limit-not-available``: one that somebody named has nobody.
    """
    own = {"processes": OWN_PROCESSES}
    amounts = {
        controller: limit.amount + own.get(name, 0)
        for name, controller in _CONTROLLERS.items()
        if (limit := plan.find(name)) is not None
    }
    is_named = any(limit.is_named for limit in plan.limits if limit.name in _CONTROLLERS)
    group, refused = open_group(plan.group, amounts, may_move=is_named)
    memory = plan.find("memory")
    if memory is not None and "memory" in refused:
        group.close()
        raise refuse_limit(memory, plan.origin, refused["memory"])
    return HeldLimits(plan, group, refused)


def refuse_limit(limit: Limit, origin: str, error: OSError) -> HostError:
    """The refusal of a limit that nobody here can hold, with what would help."""
    number = f" (errno {error.errno})" if error.errno else ""
    return HostError(
        "limit-not-available",
        f"{_place(origin)}`{limit.name}: {limit.amount_text}` cannot be held here: {error.strerror}{number}",
        group_remedy(limit),
    )


def group_remedy(limit: Limit | None = None) -> str:
    """How to get a control group, or to do without."""
    user = "" if os.geteuid() == 0 else " --user"
    remedy = f"start it in a group of its own: systemd-run{user} --scope -p Delegate=yes stockade run …"
    if limit is not None and limit.name == "memory":
        remedy += (
            f"; or leave `memory` out and start it in a group that holds it, by systemd-run{user} --scope "
            f"-p MemoryMax={limit.amount} stockade run … or as the container's own limit"
        )
    return remedy


def _place(origin: str) -> str:
    return f"{origin}: " if origin else ""


def _least(*amounts: int) -> int:
    bounded = [amount for amount in amounts if amount != resource.RLIM_INFINITY]
    return min(bounded, default=resource.RLIM_INFINITY)
