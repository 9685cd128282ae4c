"""One contained run, from its built sandbox to its last record: where everything meets.

Nothing of the worker runs before its sockets are served and the first record is on disk.
After `go`, three things end the run: the command ends, the ledger fails, or this process
dies. In the last two the worker is killed, since what it does could no longer be recorded.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.decision.engine import Engine
from stockade.errors import ContainmentError, StockadeError
from stockade.gateway.journal import Journal
from stockade.gateway.resolve import Resolver
from stockade.gateway.server import DEFAULT_CONNECTION_LIMIT, Listeners, Room, RoomCounts, RoomLimits
from stockade.ledger.record import clean_text, decision_id
from stockade.ledger.store import Ledger
from stockade.net.address import IPAddress
from stockade.policy.model import Policy
from stockade.protocol.line import FlowLimits
from stockade.reactor import READ, Reactor
from stockade.run.command_names import CommandNames, no_exec_known
from stockade.run.commands import Commands
from stockade.run.completeness import Completeness, weigh
from stockade.run.control import ControlSocket
from stockade.run.descriptors import plan_connections, probe_descriptors, raise_limit
from stockade.run.opening import opening_fields
from stockade.run.options import RunOptions
from stockade.run.own_addresses import probe_own_addresses
from stockade.run.prepare import read_secrets
from stockade.run.registries import own_registries
from stockade.run.time_limit import TimeLimit
from stockade.run.upstream import probe_upstream
from stockade.sandbox.limits import ReachedLimit, find_file_size_reached
from stockade.sandbox.supervise import RoomSockets, Sandbox, WorkerExit
from stockade.vocabulary import Phase

if TYPE_CHECKING:
    from stockade.run.report import ReportFile

# How long records that are queued may take to become durable before the run ends without them.
FIRST_RECORD_TIMEOUT_S = 10.0
HEARTBEAT_S = 30.0
# How long the last bytes of an ended worker may take; the command's exit waits for them.
LAST_BYTES_S = 2.0
LEFT_BEHIND_KEPT = 100


class Session:
    """The state of one run, from the moment that its sandbox is built.

    Args:
        sockets: The room's sockets; None if the operator gave the room up.
        shelf_identity: (device, inode) of the shelf that the view covers; another one is refused.

    Raises:
        HostError: The ledger cannot be written.
    """

    def __init__(
        self,
        options: RunOptions,
        policy: Policy,
        shelf: Path,
        run_id: str,
        reactor: Reactor,
        sandbox: Sandbox,
        sockets: RoomSockets | None,
        shelf_identity: tuple[int, int] | None = None,
    ) -> None:
        self.options = options
        self.policy = policy
        self.phase = options.phase
        self._in_force = policy, options.phase
        self._own_addresses = probe_own_addresses()
        self.shelf = shelf
        self.run_id = run_id
        self.reactor = reactor
        self.sandbox = sandbox
        self.time_limit = TimeLimit(reactor, sandbox, policy.limits.time_s)
        self.upstream = probe_upstream(os.environ, options.resolve)
        self._failure: StockadeError | None = None
        self._exit: WorkerExit | None = None
        self._faults = 0
        self.ledger = Ledger.open(
            shelf,
            run_id,
            wake=reactor.call_threadsafe,
            on_failure=self._ledger_failed,
            shelf_identity=shelf_identity,
        )
        self.journal = Journal(self.ledger, policy.digest)
        self._engine_in_force = self._engine()
        self.commands = self._open_eye()
        self.command_names = CommandNames(
            sandbox.find_owner,
            self.ledger.redactor,
            names_all=options.names_commands,
            exec_of=no_exec_known if self.commands is None else self.commands.exec_of,
        )
        self.room = None if sockets is None else self._open_room(sockets)
        self.control = ControlSocket(self)
        self.steps: set[int] = set()  # of an agent outside, whose outcome is not on record yet

    def run(self, report: ReportFile | None) -> int:
        """Let the worker go, serve it until it ends, and close the record."""
        try:
            self._record_opening()
            settle_collector()
            self.sandbox.go(self._worker_ended)
            self.time_limit.start()
            raise_limit()
            self.reactor.call_later(HEARTBEAT_S, self._heartbeat)
            self.reactor.run()
        except StockadeError as error:
            self._fail(error)
        self.sandbox.kill()
        self._let_out()
        try:
            self.sandbox.verify_limits()
        except StockadeError as error:
            self._fail(error)
        return self._finish(report)

    # --- starting --------------------------------------------------------------------------

    def _open_room(self, sockets: RoomSockets) -> Room:
        limits = self.policy.limits
        wanted = DEFAULT_CONNECTION_LIMIT if limits.connections is None else limits.connections
        room_limits = RoomLimits(
            connections=plan_connections(wanted, probe_descriptors()),
            upload_bytes=limits.upload_bytes,
            flow=FlowLimits(hold_s=self.policy.hold_s),
        )
        room = Room(
            self.reactor,
            Listeners(sockets.tcp4, sockets.tcp6, sockets.udp4, sockets.udp6, sockets.nflog),
            self._engine_in_force,
            self.journal,
            Resolver(self.reactor, self.options.resolve),
            lambda seq: decision_id(self.run_id, seq),
            secrets=read_secrets(self.policy, os.environ),
            limits=room_limits,
            on_fault=self._fault,
            commands=self.command_names,
        )
        room.open()
        return room

    def _open_eye(self) -> Commands | None:
        if self.sandbox.eye is None:
            return None
        eye = self.sandbox.eye
        commands = Commands(
            eye,
            self.sandbox.plan,
            lambda: self._engine_in_force,
            self.journal,
            lambda: self.reactor.unwatch(eye.fileno()),
        )
        self.reactor.watch(eye.fileno(), READ, commands.look)
        return commands

    def _engine(self) -> Engine:
        seal = self.sandbox.plan.seal
        return Engine(
            *self._in_force,
            self.options.identity,
            self._own_addresses,
            places=own_registries(),
            upstream=self.upstream,
            programs=seal.reasons_to_run() if seal.lists_programs else None,
        )

    def _look_at_addresses(self) -> frozenset[IPAddress]:
        """This machine's addresses; what was last seen, while a worker's connections take all descriptors."""
        try:
            return probe_own_addresses()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            return self._own_addresses

    def _record_opening(self) -> None:
        """Write the first record and wait for it: before it is durable the worker does not start."""
        durable: list[int] = []
        fields = opening_fields(self)
        self.ledger.append("run.opened", fields, durable.append)
        deadline = self.reactor.now() + FIRST_RECORD_TIMEOUT_S
        while not durable and self._failure is None:
            self.reactor.turn(0.5)
            if self.reactor.now() > deadline:
                raise ContainmentError("ledger-stalled", "the first record did not become durable")
        if self._failure is not None:
            raise self._failure

    # --- while it runs -----------------------------------------------------------------------

    def replace_policy(self, policy: Policy, changed_by: str, done: Callable[[], None]) -> None:
        """Put another policy in force: on record first, then for new attempts and open connections.

        Args:
            done: Called when it is in force. Whoever asked is told no earlier.
        """
        old, self.policy = self.policy, policy
        fields = {"from": old.digest, "to": policy.digest, "source": policy.source, "by": changed_by}
        self._change("policy.changed", fields, done)

    def change_phase(
        self, phase: Phase, changed_by: str, done: Callable[[], None], *, is_reopening: bool = False
    ) -> None:
        """Move to another phase, likewise recorded first."""
        old, self.phase = self.phase, phase
        fields = {"from": str(old), "to": str(phase), "by": changed_by, "reopened": is_reopening}
        self._change("phase.changed", fields, done)

    def _change(self, kind: str, fields: Mapping[str, object], done: Callable[[], None]) -> None:
        wanted = self.policy, self.phase  # as of now: what is asked for later is not on record yet

        def recorded(_seq: int) -> None:
            self._in_force = wanted
            self._put_in_force()
            done()

        self.ledger.append(kind, fields, recorded)

    def _put_in_force(self) -> None:
        self._own_addresses = self._look_at_addresses()
        self.journal.policy_digest = self._in_force[0].digest
        self._engine_in_force = self._engine()
        if self.room is not None:
            self.room.replace_engine(self._engine_in_force, read_secrets(self._in_force[0], os.environ))

    def _heartbeat(self) -> None:
        if self._exit is None and self._failure is None:
            self.ledger.heartbeat(attempts=self.journal.attempts.total())
            if self._look_at_addresses() != self._own_addresses:
                self._put_in_force()
            self.reactor.call_later(HEARTBEAT_S, self._heartbeat)

    def _worker_ended(self, ended: WorkerExit) -> None:
        self._exit = ended
        self.time_limit.cancel()
        if ended.code is None and ended.signal is None and ended.exec_errno is None:
            self._fail(
                ContainmentError(
                    "sandbox-died",
                    "the sandbox's own first process ended under the command, which is killed with it",
                    "was it killed from outside, or by the kernel for want of memory?",
                )
            )
        self.reactor.stop()

    def _ledger_failed(self, error: Exception) -> None:
        """What cannot be recorded does not happen: the run ends."""
        failure = (
            error
            if isinstance(error, StockadeError)
            else ContainmentError("ledger-failed", f"the ledger cannot be written: {error}")
        )
        self._fail(failure)
        self.sandbox.kill()
        self.reactor.stop()

    def _fault(self, error: Exception) -> None:
        """An exception escaped one connection, which is closed: a fault of ours, said once."""
        self._faults += 1
        if self._faults == 1:
            print(
                f"stockade: internal: {type(error).__name__}: {error} (one connection was closed)",
                file=sys.stderr,
            )
            if os.environ.get("STOCKADE_DEBUG"):
                import traceback

                traceback.print_exception(error)

    def limits_reached(self) -> list[ReachedLimit]:
        """The limits that refused or ended something of the worker's."""
        code = 0 if self._exit is None else self._exit.shell_code
        by_code = find_file_size_reached(self.sandbox.plan.limits, code)
        return [*self.time_limit.reached, *self.sandbox.limits_reached(), *by_code]

    def _fail(self, failure: StockadeError) -> None:
        if self._failure is None:
            self._failure = failure

    # --- ending ------------------------------------------------------------------------------

    def _let_out(self) -> None:
        """Pass on what the worker sent before it ended, as a plain network would."""
        deadline = self.reactor.now() + LAST_BYTES_S
        while (
            self._failure is None
            and self.room is not None
            and self.room.is_sending
            and self.reactor.now() < deadline
        ):
            self.reactor.turn(0.05)

    def _finish(self, report: ReportFile | None) -> int:
        from stockade.run.report import closing_fields, print_start_failure, print_summary

        completeness = None if self.room is None else self._weigh(self.room.close())
        self.control.close()
        if self.commands is not None:
            self.commands.close()
        closing = closing_fields(self, self._exit, self._failure, completeness)
        left_behind = [clean_text(path, 300) for path in self.sandbox.planted()[:LEFT_BEHIND_KEPT]]
        closing["left_behind"] = left_behind
        if not self.ledger.failed:
            self.ledger.append("run.closed", closing)
        self.ledger.close()
        if self.ledger.failure is not None and self._failure is None:
            # The last records are not on disk: nothing may say that all is.
            self._fail(self.ledger.failure)
            closing |= closing_fields(self, self._exit, self._failure, completeness) | {"complete": False}
        if report is not None:
            report.write(self, closing)
        if self._failure is not None:
            raise self._failure
        assert self._exit is not None
        if self._exit.exec_errno is not None:
            print_start_failure(self.options.argv[0], self._exit.step, self._exit.exec_errno)
        if not self.options.is_quiet:
            print_summary(self, completeness, left_behind, self._exit.shell_code)
        return self._exit.shell_code

    def _weigh(self, counts: RoomCounts) -> Completeness:
        try:
            return weigh(counts, self.sandbox.read_counters())
        except StockadeError as error:
            return Completeness(is_exact=False, missing=None, detail=str(error))


def settle_collector() -> None:
    """Let the garbage collector run again, and never look at what was imported: 5 % of a tunnel's cost."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()
