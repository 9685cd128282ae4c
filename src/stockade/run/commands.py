"""Commands of the worker: seen by the eye, judged by the engine, on record, then answered.

The order is that of every attempt: the decision is durable, then the answer goes out. The
waiting thread sleeps meanwhile, so nothing that a command does can come before its record.

Refused system calls come the same way. Of equal refusals, commands or calls, the first few are
records of their own and the others are counted (`repeats.py`).
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from stockade.decision.commands import RefusedCall
from stockade.decision.engine import Engine
from stockade.decision.request import Attempt, Decision
from stockade.errors import InternalError
from stockade.gateway.journal import Journal
from stockade.reactor import READ
from stockade.run.callers import Caller, Parents, probe_caller
from stockade.run.repeats import Refused, Repeats
from stockade.sandbox.command_reader import CommandTry, read_command
from stockade.sandbox.eye import Eye, Sighting
from stockade.sandbox.filter import (
    Refusal,
    describe_call,
    find_permit,
    find_refusal,
    is_command,
    load_filter_table,
)
from stockade.sandbox.plan import SandboxPlan
from stockade.sandbox.processes import read_stat
from stockade.vocabulary import Entry, Protocol, Reason, Verdict

EXECS_KEPT = 10_000
# Each takes a third of a millisecond, for which connections wait; and what a worker makes on purpose takes
# a hundred times as long (arguments full of `@`, links to links): then the others come between.
SIGHTINGS_AT_ONCE = 16
TURN_S = 0.01


class _Exec(Struct):
    """The last exec that a process was let do, and the one before, in case the kernel refused it."""

    start_time: int
    seq: int
    image_before: tuple[bytes, ...]
    seq_before: int | None


class Commands:
    """Answers the eye of one run.

    Attributes:
        started: Files of the programs that were let run; empty where every program may.

    Args:
        engine: Gives the engine in force.
        done: Called when nobody is left who could be seen.
    """

    def __init__(
        self,
        eye: Eye,
        plan: SandboxPlan,
        engine: Callable[[], Engine],
        journal: Journal,
        done: Callable[[], None],
    ) -> None:
        self._eye = eye
        self._done = done
        self._engine = engine
        self._journal = journal
        self._machine = plan.machine
        self._wish = plan.seal.filter
        self._table = load_filter_table()
        self._permitted = {program.identity: program.path for program in plan.seal.programs}
        self._lists = plan.seal.lists_programs
        self._parents = Parents()
        self._execs: dict[int, _Exec] = {}
        self._repeats = Repeats()
        self.started: set[str] = set()
        self.refused_calls = 0

    def look(self, events: int) -> None:
        """Take what waits, so that it goes to the disk together; the reactor calls again for more."""
        if not events & READ:
            self._done()  # everybody whom the eye watched has ended
            return
        until = time.monotonic() + TURN_S
        for _ in range(SIGHTINGS_AT_ONCE):
            sighting = self._eye.receive()
            if sighting is not None:
                self._judge(sighting)
            if time.monotonic() > until or not self._eye.has_more():
                return

    def _judge(self, sighting: Sighting) -> None:
        if is_command(self._table, self._machine, sighting.arch, sighting.number):
            self._judge_command(sighting)
        else:
            self._judge_call(sighting)

    def exec_of(self, pid: int, start_time: int) -> int | None:
        """The number of the attempt by which a process last called exec itself; None if it never did."""
        if pid not in self._execs:
            return None
        stat = read_stat(pid)
        return self._find_exec(pid, start_time, () if stat is None else stat.image)

    def _find_exec(self, pid: int, start_time: int, image: tuple[bytes, ...]) -> int | None:
        """The same where it is known what the process runs."""
        known = self._execs.get(pid)
        if known is None or known.start_time != start_time:
            return None
        # Permitted is not done: a full table or a missing loader makes the kernel refuse after us.
        return known.seq if image != known.image_before else known.seq_before

    # --- commands ----------------------------------------------------------------------------

    def _judge_command(self, sighting: Sighting) -> None:
        tried = read_command(
            sighting, is_at=is_command(self._table, self._machine, sighting.arch, sighting.number, at=True)
        )
        caller = probe_caller(sighting.pid)
        if not self._eye.is_waiting(sighting):
            return  # killed: what was read could be somebody else's
        if tried.nothing:
            # Never "go on" without a record: by now the path may lead to a program (another thread's trick).
            self._eye.refuse(sighting, tried.nothing)
            return
        attempt = Attempt(
            entry=Entry.EXEC,
            protocol=Protocol.EXEC,
            argv=tried.argv or (tried.path,),
            program=tried.path or tried.file,
            file=self._name_file(tried),
            is_script_of=tried.interpreter or None,
        )
        decision = self._decide(attempt, tried)
        if tried.is_check:  # no command, and no way to make one of it: the flag is a register's
            self._answer(sighting, decision)
            return

        fields: dict[str, Any] = {
            "pid": caller.inner_pid,
            "parent": self._describe_parent(caller),
            "layer": "notify",
        }
        if decision.verdict is Verdict.DENY:
            refused = Refused(attempt, decision, fields)
            self._refuse(sighting, refused, errno.EACCES, caller.program, attempt.program, attempt.argv)
            return

        def recorded(seq: int) -> None:
            self._remember(caller, seq)
            if self._lists:  # no more than are permitted
                self.started.add(attempt.file or "")
            self._eye.let_go_on(sighting)

        self._journal.attempt(attempt, decision, recorded, **fields)

    def _answer(self, sighting: Sighting, decision: Decision) -> None:
        if decision.verdict is Verdict.DENY:
            self._eye.refuse(sighting, errno.EACCES)
        else:
            self._eye.let_go_on(sighting)

    def _decide(self, attempt: Attempt, tried: CommandTry) -> Decision:
        if tried.unreadable:
            why = f"Stockade could not see what this command is ({tried.unreadable}), so it does not run."
            return self._engine().refuse(attempt, Reason.PROGRAM_NOT_LISTED, why)
        return self._engine().decide(attempt)

    def _name_file(self, tried: CommandTry) -> str:
        """The permitted path of a permitted file; any other file never has the name of one."""
        if not self._lists or tried.identity is None:
            return tried.file
        known = self._permitted.get(tried.identity)
        if known is None and tried.file in self._permitted.values():
            return f"{tried.file} (another file since the start)"
        return known or tried.file

    def _describe_parent(self, caller: Caller) -> dict[str, object] | None:
        """Who started it; None for the launched command, and for what its starter has left behind."""
        if caller.parent_pid in (0, self._eye.stage_pid):
            return None
        parent = self._parents.probe(caller.parent_pid)
        process = parent.process
        return {
            "pid": process.inner_pid,
            "program": parent.program,
            "exec": self._find_exec(process.pid, process.start_time, process.image),
        }

    def _remember(self, caller: Caller, seq: int) -> None:
        if len(self._execs) >= EXECS_KEPT:
            self._execs.pop(next(iter(self._execs)))
        before = self._find_exec(caller.pid, caller.start_time, caller.image)
        self._execs.pop(caller.pid, None)  # so that the oldest one stays first
        self._execs[caller.pid] = _Exec(caller.start_time, seq, caller.image, before)

    # --- system calls ------------------------------------------------------------------------

    def _judge_call(self, sighting: Sighting) -> None:
        refusal, refused = self._find_refusal(sighting)
        caller = probe_caller(sighting.pid)
        if not self._eye.is_waiting(sighting):
            return
        self.refused_calls += 1
        call = describe_call(self._table, self._machine, sighting.number, sighting.args, sighting.arch)
        program = caller.program
        attempt = Attempt(entry=refusal.entry, protocol=refusal.protocol, call=call, program=program or None)
        record = Refused(
            attempt,
            self._engine().refuse_call(attempt, refused),
            self._describe_call(caller, refusal),
            refusal.common,
            refused.permit or "",
        )
        self._refuse(sighting, record, refusal.errno_number, program, call)

    def _find_refusal(self, sighting: Sighting) -> tuple[Refusal, RefusedCall]:
        asked = self._table, self._machine, self._wish, sighting.arch, sighting.number, sighting.args
        refusal = find_refusal(*asked)
        if refusal is None:  # the kernel has the program that was compiled from the same table
            raise InternalError(
                "unknown-call", f"the filter reported call {sighting.number}, which no line refuses"
            )
        return refusal, RefusedCall(
            refusal.name, refusal.reason, refusal.why, find_permit(*asked), refusal.leads_out
        )

    def _describe_call(self, caller: Caller, refusal: Refusal) -> dict[str, Any]:
        return {
            "pid": caller.inner_pid,
            "exec": self._find_exec(caller.pid, caller.start_time, caller.image),
            "layer": refusal.layer,
        }

    # --- refusals ----------------------------------------------------------------------------

    def _refuse(self, sighting: Sighting, refused: Refused, number: int, *kind: object) -> None:
        """Answer with an errno, when its record is durable or it was counted."""
        if self._repeats.is_recorded(refused, *kind):
            self._append(refused, lambda _seq: self._eye.refuse(sighting, number))
        else:
            self._eye.refuse(sighting, number)

    def _append(
        self, refused: Refused, recorded: Callable[[int], None] | None, repeated: int | None = None
    ) -> None:
        self._journal.attempt(
            refused.attempt,
            refused.decision,
            recorded,
            is_common=refused.is_common,
            key=refused.permit,
            repeated=repeated,
            **refused.fields,
        )

    def close(self) -> None:
        """Write what was counted and not yet recorded: one record for each kind, with its number."""
        self._repeats.write(lambda refused, times: self._append(refused, None, repeated=times))
