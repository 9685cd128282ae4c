"""Commands of the worker: seen by the eye, judged by the engine, on record, then answered.

The order is that of every attempt: the decision is durable, then the answer goes out. The
waiting thread sleeps meanwhile, so nothing that a command does can come before its record.

Refused system calls come the same way. A program that repeats one would fill the ledger, so
of equal ones the first few are records of their own and the others are counted; what was
counted and not yet written stands in one last record each.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from msgspec import Struct

from stockade.decision.commands import RefusedCall
from stockade.decision.engine import Engine
from stockade.decision.request import Attempt, Decision
from stockade.gateway.journal import Journal
from stockade.sandbox.command_reader import CommandTry, read_command
from stockade.sandbox.eye import Eye, Sighting
from stockade.sandbox.filter import describe_call, find_permit, find_refusal, is_command, load_filter_table
from stockade.sandbox.plan import SandboxPlan
from stockade.vocabulary import Entry, Protocol, Reason, Verdict

EQUAL_CALLS_RECORDED = 5
KINDS_OF_CALLS_KEPT = 500
EXECS_KEPT = 10_000


class Caller(Struct, frozen=True, kw_only=True):
    """Who made a call, as far as the kernel still says it.

    Attributes:
        pid: Process (not thread) on the host, 0 if it is gone.
        inner_pid: The same as the worker knows it.
        parent_pid: Its parent on the host.
        started: Its start time in clock ticks, by which one pid is told from a later one.
        program: The file that it runs.
    """

    pid: int = 0
    inner_pid: int = 0
    parent_pid: int = 0
    started: int = 0
    program: str = ""


def probe_caller(thread: int) -> Caller:
    """Look a thread's process up."""
    try:
        with open(f"/proc/{thread}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file if b":" in line)
        pid = int(fields[b"Tgid"])
        return Caller(
            pid=pid,
            inner_pid=int(fields[b"NStgid"].split()[-1]),
            parent_pid=int(fields[b"PPid"]),
            started=probe_start_time(pid),
            program=_program_of(pid),
        )
    except (OSError, KeyError, ValueError, IndexError):
        return Caller()


def probe_start_time(pid: int) -> int:
    """Field 22 of ``/proc/PID/stat`` (proc(5)); the name before it may hold anything.

    Raises:
        OSError: It is gone.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def _program_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


class Commands:
    """Answers the eye of one run.

    Args:
        engine: Gives the engine in force.
    """

    def __init__(self, eye: Eye, plan: SandboxPlan, engine: Callable[[], Engine], journal: Journal) -> None:
        self._eye = eye
        self._engine = engine
        self._journal = journal
        self._machine = plan.machine
        self._wish = plan.seal.filter
        self._table = load_filter_table()
        self._permitted = {program.identity: program.path for program in plan.seal.programs}
        self._lists = plan.seal.lists_programs
        self._execs: dict[int, tuple[int, int]] = {}
        self._calls: dict[tuple[str, str], list[int]] = {}
        self._last_of_kind: dict[tuple[str, str], tuple[Attempt, Decision]] = {}
        self.refused_calls = 0

    def fileno(self) -> int:
        return self._eye.fileno()

    def look(self, _events: int) -> None:
        """Take one sighting; the reactor calls again while there are more."""
        sighting = self._eye.receive()
        if sighting is None:
            return
        if is_command(self._table, self._machine, sighting.arch, sighting.number):
            self._judge_command(sighting)
        else:
            self._judge_call(sighting)

    def exec_of(self, pid: int, started: int) -> int | None:
        """The record of the command that a process runs by its own execve; None if it made none."""
        known = self._execs.get(pid)
        return known[1] if known is not None and known[0] == started else None

    # --- commands ----------------------------------------------------------------------------

    def _judge_command(self, sighting: Sighting) -> None:
        tried = read_command(
            sighting, is_at=is_command(self._table, self._machine, sighting.arch, sighting.number, at=True)
        )
        caller = probe_caller(sighting.pid)
        if not self._eye.is_waiting(sighting):
            return  # killed: what was read could be somebody else's
        if not tried.unreadable and not tried.is_program:
            self._eye.let_go_on(sighting)  # there is nothing to run, and the kernel says so best
            return
        attempt = Attempt(
            entry=Entry.EXEC,
            protocol=Protocol.EXEC,
            argv=tried.argv or (tried.path,),
            file=self._name_file(tried),
            is_script_of=tried.interpreter or None,
        )
        decision = self._decide(attempt, tried)

        def recorded(seq: int) -> None:
            if decision.verdict is Verdict.DENY:
                self._eye.refuse(sighting, errno.EACCES)
                return
            self._remember(caller, seq)
            self._eye.let_go_on(sighting)

        self._journal.attempt(
            attempt,
            decision,
            recorded,
            program=tried.path or tried.file,
            pid=caller.inner_pid,
            parent=self._describe_parent(caller),
            layer="notify",
        )

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
        """Who started it; None for the launched command, which the stage starts."""
        if caller.parent_pid in (0, self._eye.stage_pid) and caller.inner_pid <= 2:
            return None
        parent = probe_caller(caller.parent_pid)
        return {
            "pid": parent.inner_pid,
            "program": parent.program,
            "exec": self.exec_of(parent.pid, parent.started),
        }

    def _remember(self, caller: Caller, seq: int) -> None:
        if len(self._execs) >= EXECS_KEPT:
            self._execs.pop(next(iter(self._execs)))
        self._execs.pop(caller.pid, None)
        self._execs[caller.pid] = (caller.started, seq)

    # --- system calls ------------------------------------------------------------------------

    def _judge_call(self, sighting: Sighting) -> None:
        asked = self._table, self._machine, self._wish, sighting.arch, sighting.number, sighting.args
        refusal = find_refusal(*asked)
        if refusal is None:
            raise RuntimeError(f"the filter reported call {sighting.number}, which the table does not refuse")
        caller = probe_caller(sighting.pid)
        if not self._eye.is_waiting(sighting):
            return
        call = describe_call(self._table, self._machine, sighting.number, sighting.args, sighting.arch)
        attempt = Attempt(entry=refusal.entry, protocol=refusal.protocol, call=call)
        refused = RefusedCall(refusal.name, refusal.reason, refusal.why, find_permit(*asked))
        decision = self._engine().refuse_call(attempt, refused)
        self.refused_calls += 1
        key = (caller.program, call)
        count = self._calls.setdefault(key, [0, 0]) if self._has_place(key) else [EQUAL_CALLS_RECORDED, 0]
        count[0] += 1
        if count[0] > EQUAL_CALLS_RECORDED:
            count[1] += 1
            self._last_of_kind[key] = (attempt, decision)
            self._eye.refuse(sighting, refusal.errno_number)
            return
        self._journal.attempt(
            attempt,
            decision,
            lambda _seq: self._eye.refuse(sighting, refusal.errno_number),
            program=caller.program,
            pid=caller.inner_pid,
            exec=self.exec_of(caller.pid, caller.started),
            layer=refusal.layer,
        )
