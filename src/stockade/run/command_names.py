"""The command of a connection, as a field of its record: who holds it, and by which exec it began.

Joins what three parts know: the gateway has the ends of a connection, the sandbox finds the
process that holds them, and the list of execs says which attempt started that program.

A worker decides how often it is refused and how many descriptors there are to look
through. So looking is paid from an allowance of processor time; when that is used up
the refusal is recorded without a command, and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stockade.ledger.record import CleanFields, Redactor, clean_fields
from stockade.net.ends import Ends

if TYPE_CHECKING:
    from stockade.sandbox.owner import Owner

# Of one processor; the rest is for the connections. 0.3 s pays for about 500 look-ups at once.
ALLOWANCE_SHARE = 0.1
ALLOWANCE_MOST_S = 0.3

# A flood mostly comes from few processes; what is written about them is cleaned and redacted once.
FIELDS_KEPT = 64

ExecOf = Callable[[int, int], int | None]


def no_exec_known(_pid: int, _start_time: int) -> int | None:
    """What answers where execs are not recorded."""
    return None


class Allowance:
    """Processor time that may be used: it grows with time, up to what may be used at once."""

    def __init__(self, share: float, most_s: float, now: float) -> None:
        self._share = share
        self._most_s = most_s
        self._left_s = most_s
        self._since = now

    def has_any(self, now: float) -> bool:
        """Whether something is left as of now."""
        self._left_s = min(self._most_s, self._left_s + (now - self._since) * self._share)
        self._since = now
        return self._left_s > 0

    def spend(self, used_s: float) -> None:
        """Take what was used, which is known only afterwards."""
        self._left_s -= used_s


class CommandNames:
    """Names the commands of one run; the gateway's `CommandNames`.

    Args:
        find: Says who holds a connection (`Sandbox.find_owner`).
        redactor: That of the run's ledger.
        exec_of: Gives the number of the ``exec`` attempt by which the process with this pid
            (as Stockade sees it) and start time (clock ticks since boot) last called exec.
        clock, processor_clock: Seconds, from any beginning.

    Attributes:
        named, unknown, not_looked_up: How often each happened, for the closing record.
    """

    def __init__(
        self,
        find: Callable[[Ends], Owner | None],
        redactor: Redactor,
        *,
        names_all: bool,
        exec_of: ExecOf = no_exec_known,
        clock: Callable[[], float] = time.monotonic,
        processor_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.names_all = names_all
        self.named = self.unknown = self.not_looked_up = 0
        self._find = find
        self._redactor = redactor
        self._kept: dict[object, CleanFields] = {}
        self._exec_of = exec_of
        self._clock = clock
        self._processor_clock = processor_clock
        self._allowance = Allowance(ALLOWANCE_SHARE, ALLOWANCE_MOST_S, clock())

    def name(self, ends: Ends | None) -> Mapping[str, object] | None:
        """The fields of ``command``; None if it is not known or the allowance is used up."""
        if ends is None:
            self.unknown += 1
            return None
        if not self._allowance.has_any(self._clock()):
            self.not_looked_up += 1
            return None
        began = self._processor_clock()
        owner = self._find(ends)
        fields = None if owner is None else self._fields(owner)
        self._allowance.spend(self._processor_clock() - began)
        if fields is None:
            self.unknown += 1
        else:
            self.named += 1
        return fields

    def counts(self) -> dict[str, int]:
        return {"named": self.named, "unknown": self.unknown, "not_looked_up": self.not_looked_up}

    def _fields(self, owner: Owner) -> CleanFields:
        exec_seq = self._find_exec(owner)
        process = owner.process
        key = (process.inner_pid, process.start_time, owner.program, owner.argv, exec_seq, owner.also)
        found = self._kept.get(key)
        if found is None:
            fields: dict[str, object] = {
                "pid": process.inner_pid,
                "program": owner.program,
                "argv": list(owner.argv),
                "exec": exec_seq,
            }
            if owner.also:
                fields["also"] = list(owner.also)
            if len(self._kept) >= FIELDS_KEPT:
                self._kept.clear()
            found = self._kept[key] = clean_fields(fields, self._redactor)
        return found

    def _find_exec(self, owner: Owner) -> int | None:
        """The exec of the process, or of the ancestor from whom it was forked without one since."""
        image = owner.process.image
        for process in (owner.process, *owner.parents):
            if process.image != image or not image:
                return None  # this one has called exec since the fork: it is another program
            found = None if process.pid is None else self._exec_of(process.pid, process.start_time)
            if found is not None:
                return found
        return None
