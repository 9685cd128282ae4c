"""One sandbox's life: build it, let the worker go, copy its streams, report its end. Linux only.

Order (boundary.md R2), and what breaks if swapped:

1. bwrap starts. Right after it the builder is forked, which closes at once all that it
   inherits, above all the lifeline: end of file must not wait for it.
2. bwrap's info tells the process, and the builder begins in that network namespace
   while the stage's Python is still starting.
3. The stage says `ready`; who and where it is gets verified, and the view compared
   with what was planned. Nothing of the worker has run.
4. `build` returns the room's sockets. The caller serves them, writes its first record,
   and calls `go`. Only then the stage forks the worker.

Closing the lifeline, on purpose or by dying, ends all of it in the kernel.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stockade.errors import ContainmentError, HostError, StockadeError
from stockade.reactor import READ, Reactor
from stockade.sandbox import bubblewrap
from stockade.sandbox.lifeline import (
    Lifeline,
    StageFacts,
    compose_order,
    parse_ready,
    probe_own_namespaces,
    verify_stage,
)
from stockade.sandbox.paths import make_folder, planted_in
from stockade.sandbox.plan import SandboxPlan
from stockade.sandbox.room import BuiltRoom, RoomBuilder, RoomCounters, RoomSockets
from stockade.sandbox.streams import InputPump, OutputPump

if TYPE_CHECKING:
    from stockade.sandbox.console import Console

__all__ = ["EnforcementFacts", "RoomCounters", "RoomSockets", "Sandbox", "WorkerExit"]

STAGE_FILE = Path(__file__).with_name("stage.py")
START_TIMEOUT_S = 10.0
# What reaches the tool is passed on to the command's process group.
FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
# Without a terminal of ours, this many SIGINT in this time kill the run (with one: console.py).
INTERRUPTS_THAT_KILL = 3
INTERRUPTS_WITHIN_S = 2.0


def stage_program(interpreter: str) -> bytes:
    """The stage as its interpreter takes it: compiled if that is our own Python, else as text.

    Parsing the text takes three milliseconds of every start. Python recognizes compiled
    code by its first bytes; it is taken from the same cache as every other module's.
    """
    if os.path.realpath(getattr(sys, "_base_executable", "")) != interpreter:
        return STAGE_FILE.read_bytes()
    code = SourceFileLoader("stage", str(STAGE_FILE)).get_code("stage")
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


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
    commands: str = "not enforced"
    view: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: int = 0
    limits: dict[str, int] = {}
    streams: str = "pipes"
    ipv6: bool = False
    exact_count: bool = False
    layers_off: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_fields(self) -> dict[str, object]:
        """As plain values, for a record."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        return fields


class Sandbox:
    """One sandbox. Call `build`, `go`, and at the end `kill` and `close`, from one thread.

    bwrap is started from the calling thread. If that is not the main thread, bwrap is
    not bound to it, since the kernel would kill it when the thread ends (R116); the
    lifeline alone then ties the worker to this process.
    """

    def __init__(self, plan: SandboxPlan, reactor: Reactor) -> None:
        self.plan = plan
        self.facts = EnforcementFacts()
        self.step_times_ms: dict[str, float] = {}
        self._reactor = reactor
        self._began = 0.0
        self._lifeline: Lifeline | None = None
        self._builder: RoomBuilder | None = None
        self._room: BuiltRoom | None = None
        self._limits = ""
        self._bwrap_pid = -1
        self._stage_fd = -1
        self._complaints = -1
        self._master = -1
        self._console: Console | None = None
        self._input: InputPump | None = None
        self._outputs: list[OutputPump] = []
        self._outcome: WorkerExit | None = None
        self._stage_gone = False
        self._on_exit: Callable[[WorkerExit], None] | None = None
        self._interrupts: list[float] = []
        self._old_handlers: dict[int, object] = {}

    # --- building --------------------------------------------------------------------------

    def build(self, meanwhile: Callable[[], None] = lambda: None) -> RoomSockets | None:
        """Put everything up but the worker.

        Args:
            meanwhile: Called while the stage's Python starts and the builder works, which
                takes longer than our own part; it must not start threads or processes.

        Returns:
            The room's sockets; None if the room was given up (``--without-layer=room``).

        Raises:
            HostError, ContainmentError: Names the step, the errno and the remedy; what was
                put up is gone again.
        """
        self._began = time.monotonic()
        try:
            return self._build(meanwhile)
        except OSError as error:
            self.kill()
            self.close()
            raise HostError(
                "sandbox-failed",
                f"the sandbox could not be built: errno {error.errno}, {error}",
                "`stockade doctor` says what this host can enforce",
            ) from error
        except StockadeError:
            self.kill()
            self.close()
            raise

    def _build(self, meanwhile: Callable[[], None]) -> RoomSockets | None:
        for path in self.plan.to_make:
            make_folder(path)
        info = self._start_bwrap()
        self._mark("bwrap started")
        if self.plan.has_room:
            self._builder = RoomBuilder(self.plan.tools)
        self._mark("builder forked")
        self._await_process(info)
        self._mark("process known")
        meanwhile()
        self._mark("meanwhile done")
        stage = self._await_ready()
        self._mark("stage ready")
        verify_stage(
            stage,
            outside=probe_own_namespaces(),
            has_room=self.plan.has_room,
            has_filter=self.plan.has_filter,
        )
        self._verify_view()
        self._limits = self._planned_limits()
        self._mark("stage verified")
        if self._builder is not None:
            self._room = self._builder.finish(START_TIMEOUT_S)
            self._builder = None
            self._verify_room(stage)
        self._mark("room built")
        self._fill_facts(stage)
        return self._room.sockets if self._room is not None else None

    def _mark(self, step: str) -> None:
        self.step_times_ms[step] = (time.monotonic() - self._began) * 1000

    def _start_bwrap(self) -> int:
        """Start bwrap; returns our end of its info pipe."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lifeline = Lifeline(ours)
        info_in, info_out = os.pipe2(os.O_CLOEXEC)
        self._complaints, complaints_out = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        data = bubblewrap.open_data(self.plan, stage_program(self.plan.interpreter))
        descriptors = data | {
            bubblewrap.INFO_FD_NAME: info_out,
            bubblewrap.LIFELINE_FD_NAME: theirs.fileno(),
        }
        try:
            sources, prepare = self._privileged_part()
            arguments = bubblewrap.compile_arguments(
                self.plan,
                descriptors=descriptors,
                sources=sources,
                dies_with_thread=bubblewrap.is_main_thread(),
            )
            self._bwrap_pid = bubblewrap.launch(
                self.plan.bwrap, arguments, list(descriptors.values()), complaints_out, prepare
            )
        finally:
            theirs.close()
            for fd in (info_out, complaints_out, *data.values()):
                os.close(fd)
        return info_in

    def _privileged_part(self) -> tuple[dict[str, str], Callable[[], None]]:
        if not self.plan.started_as_root:
            return {}, lambda: None
        from stockade.sandbox import idmap

        become = idmap.become_worker(self.plan.mounts, self.plan.worker_uid, self.plan.worker_gid)
        return idmap.plan_sources(self.plan.mounts), become

    def _await_process(self, info: int) -> None:
        """Read bwrap's info: the stage's process id. Open it as a descriptor, and set the builder off."""
        with os.fdopen(info, "rb") as file:
            self._await_readable(file.fileno(), "bubblewrap")
            text = file.read()  # bwrap closes its end after one small object
        if not text:
            raise self._explain_end("bubblewrap")
        pid = int(msgspec.json.decode(text)["child-pid"])
        self._stage_pid = pid
        try:
            self._stage_fd = os.pidfd_open(pid)
        except OSError as error:
            raise self._explain_end("bubblewrap") from error
        if self._builder is not None:
            self._builder.begin(pid)

    def _await_ready(self) -> StageFacts:
        lifeline = self._alive()
        lifeline.channel.setblocking(False)
        while True:
            self._await_readable(lifeline.fileno(), "stage")
            messages, fds, is_gone = lifeline.receive()
            if fds:
                self._master = fds[0]
            if messages:
                return parse_ready(messages[0])
            if is_gone:
                raise self._explain_end("stage")

    def _await_readable(self, fd: int, step: str) -> None:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(START_TIMEOUT_S * 1000):
            raise ContainmentError(
                "start-timeout", f"step {step} did not answer within {START_TIMEOUT_S:.0f} s"
            )

    def _explain_end(self, step: str) -> StockadeError:
        """bwrap or the stage ended before it was ready: its own words say why."""
        self._reap_bwrap(1.0)
        with contextlib.suppress(OSError):
            text = os.read(self._complaints, 4096).decode(errors="replace").strip()
            if text:
                return bubblewrap.explain_complaint(text)
        return HostError(
            "sandbox-failed", f"step {step}: it ended without a word", "`stockade doctor` tries each part"
        )

    def _verify_view(self) -> None:
        """Each bind shows what was judged, and not what was put in its place since."""
        for mount in self.plan.mounts:
            if mount.identity is None:
                continue
            try:
                status = os.lstat(f"/proc/{self._stage_pid}/root{mount.target}")
            except OSError as error:
                raise ContainmentError(
                    "view-failed", f"{mount.target} is not in the view: {error}"
                ) from error
            if (status.st_dev, status.st_ino) != mount.identity and not self._is_covered(mount.target):
                raise ContainmentError(
                    "view-changed", f"{mount.target} was replaced while the sandbox was being built"
                )

    def _is_covered(self, target: str) -> bool:
        return any(mount.target == target and mount.identity is None for mount in self.plan.mounts)

    def _verify_room(self, stage: StageFacts) -> None:
        assert self._room is not None
        if os.fstat(self._room.sockets.netns_fd).st_ino != stage.namespaces["net"]:
            raise ContainmentError("room-failed", "the room was built in another network namespace")

    def _planned_limits(self) -> str:
        """The limits as the stage sets them on itself: never above what we have ourselves.

        Not set from here: prlimit on another uid needs a capability that root lacks in
        some containers. Not set before bwrap: the count of processes would include all
        of the user's others until the sandbox's own user namespace exists.
        """
        import resource

        found = []
        for name, soft, hard in self.plan.limits:
            kind = getattr(resource, name)
            our_soft, our_hard = resource.getrlimit(kind)
            most = hard if our_hard == resource.RLIM_INFINITY else min(hard, our_hard)
            wanted = our_soft if soft is None else soft
            least = most if wanted == resource.RLIM_INFINITY else min(wanted, most)
            self.facts.limits[name.removeprefix("RLIMIT_").lower()] = most
            found.append(f"{kind} {least} {most}")
        return ";".join(found)

    def _fill_facts(self, stage: StageFacts) -> None:
        plan, facts = self.plan, self.facts
        outside = probe_own_namespaces()
        facts.network = "room" if self._room is not None else "host"
        facts.namespaces = tuple(name for name, inode in stage.namespaces.items() if inode != outside[name])
        facts.capabilities = "none"
        facts.no_new_privileges = True
        facts.system_call_filter = "room" if plan.has_filter else "none"
        facts.worker_uid = plan.worker_uid
        facts.started_as_root = plan.started_as_root
        facts.view = tuple(mount.target for mount in plan.mounts if mount.identity is not None)
        facts.writable = tuple(map(str, plan.writable))
        facts.hidden = tuple(map(str, plan.hidden))
        facts.protected = len(plan.protected)
        facts.streams = "terminal" if plan.terminal else "pipes"
        facts.layers_off = tuple(sorted(plan.layers_off))
        facts.notes = plan.notes
        if self._room is not None:
            facts.ipv6 = self._room.has_ipv6
            facts.exact_count = self._room.has_exact_count

    # --- running ---------------------------------------------------------------------------

    def go(self, on_exit: Callable[[WorkerExit], None]) -> None:
        """Let the worker start. `on_exit` is called once, when it has ended and its output is out.

        Raises:
            ContainmentError: The stage is gone.
        """
        self._on_exit = on_exit
        lifeline = self._alive()
        streams, theirs = self._open_streams()
        order = compose_order(
            self.plan.cwd,
            self.plan.program,
            streams,
            self._limits,
            self.plan.argv,
            self.plan.environment,
        )
        try:
            if self.plan.started_as_root:
                for fd in theirs:  # else the worker could not open /dev/stdin and its like, which are these
                    os.fchown(fd, self.plan.worker_uid, self.plan.worker_gid)
            lifeline.send_order(order, theirs)
        except OSError as error:
            raise ContainmentError("stage-failed", f"the stage is gone: {error}") from error
        finally:
            for fd in theirs:
                os.close(fd)
        self._reactor.watch(lifeline.fileno(), READ, self._hear_stage)
        self._forward_signals()
        self._mark("order sent")

    def _open_streams(self) -> tuple[str, list[int]]:
        """Start the pumps; gives the streams' places in the order, and the worker's ends."""
        if not self.plan.terminal:
            in_read, in_write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(in_write, False)
            out_write, err_write = self._open_output(1), self._open_output(2)
            self._input = InputPump(self._reactor, 0, in_write)
            return "012", [in_read, out_write, err_write]
        from stockade.sandbox.console import Console

        os.set_blocking(self._master, False)
        self._console = Console(0, self._master, self._insisted)
        self._console.make_raw()
        self._outputs.append(
            OutputPump(self._reactor, self._master, 1, self._output_done, self._console.filter.feed)
        )
        self._input = InputPump(self._reactor, 0, os.dup(self._master), seen=self._console.note_keys)
        if self.plan.stderr_in_terminal:
            return "ttt", []
        return "tt0", [self._open_output(2)]

    def _open_output(self, sink: int) -> int:
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(ours, False)
        self._outputs.append(OutputPump(self._reactor, ours, sink, self._output_done))
        return theirs

    def _hear_stage(self, _events: int) -> None:
        lifeline = self._alive()
        messages, fds, is_gone = lifeline.receive()
        for fd in fds:
            os.close(fd)
        for message in messages:
            self._hear(message.split(" "))
        if is_gone:
            self._reactor.unwatch(lifeline.fileno())
            self._stage_gone = True
            self._settle()

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["started"]:
                self._mark("worker started")
            case ["exited", number]:
                self._outcome = WorkerExit(code=int(number))
            case ["signaled", number]:
                self._outcome = WorkerExit(signal=int(number))
            case ["failed", step, number]:
                self._outcome = WorkerExit(exec_errno=int(number), step=step)
            case ["stopped", _number]:
                self._stop_ourselves()

    def _output_done(self) -> None:
        self._settle()

    def _settle(self) -> None:
        """The end has come when the stage is gone and everything that was written is out."""
        if not self._stage_gone or not all(pump.is_done for pump in self._outputs):
            return
        on_exit, self._on_exit = self._on_exit, None
        if on_exit is None:
            return
        self._end_streams()
        self._reap_bwrap(START_TIMEOUT_S)
        on_exit(self._outcome or WorkerExit())

    # --- signals ---------------------------------------------------------------------------

    def _forward_signals(self) -> None:
        if not bubblewrap.is_main_thread():
            return  # only the main thread may set handlers; the embedding program forwards
        for signum in FORWARDED:
            self._handle(signum, lambda signum=signum: self.send_signal(signum))  # type: ignore[misc]
        self._handle(signal.SIGWINCH, self._resized)
        self._handle(signal.SIGTSTP, lambda: self.send_signal(signal.SIGTSTP))
        self._handle(signal.SIGCONT, self._continued)

    def _handle(self, signum: int, action: Callable[[], None]) -> None:
        if signal.getsignal(signum) is signal.SIG_IGN:
            return  # nohup and the like: as it would be for a plain command
        self._old_handlers[signum] = signal.getsignal(signum)
        self._reactor.on_signal(signum, action)

    def send_signal(self, signum: int) -> None:
        """Pass a signal to the command's process group."""
        if signum == signal.SIGINT and self._is_insisting():
            self._insisted()
        elif self._lifeline is not None:
            self._lifeline.send_signal(signum)

    def _is_insisting(self) -> bool:
        now = time.monotonic()
        self._interrupts = [at for at in self._interrupts if now - at < INTERRUPTS_WITHIN_S] + [now]
        return len(self._interrupts) >= INTERRUPTS_THAT_KILL

    def _insisted(self) -> None:
        """Ctrl-C again and again: the person wants it to end."""
        if self._outcome is None:
            self._outcome = WorkerExit(signal=signal.SIGINT)
        self._kill_stage()

    def _resized(self) -> None:
        if self._console is not None:
            self._console.copy_size()
        else:
            self.send_signal(signal.SIGWINCH)

    def _stop_ourselves(self) -> None:
        """The command was stopped (Ctrl-Z): give the terminal back and stop, as it would have."""
        if self._console is not None:
            self._console.restore()
        if self._input is not None:
            self._input.pause()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _continued(self) -> None:
        if self._console is not None:
            self._console.make_raw()
            self._console.copy_size()
        if self._input is not None:
            self._input.resume()
        self.send_signal(signal.SIGCONT)

    # --- ending ----------------------------------------------------------------------------

    def read_counters(self) -> RoomCounters:
        """The kernel's counts in the room; call it after the worker has ended and before `close`.

        Raises:
            ContainmentError: They cannot be read (any more).
        """
        if self._room is None:
            raise ContainmentError("room-failed", "there is no room, so nothing was counted")
        try:
            return self._room.read_counters()
        except OSError as error:
            raise ContainmentError("count-failed", f"the room's counters cannot be read: {error}") from error

    def planted(self) -> list[str]:
        """Paths in writable folders that are new and that other programs of the host would run or obey.

        Settings and hooks that existed are protected; those that did not can be created
        (docs/concepts/boundary.md), and the operator should look at them before using the
        folder. Sockets, FIFOs and set-user-id files are named as well.
        """
        known = frozenset(map(str, self.plan.protected))
        return [path for folder in self.plan.writable for path in planted_in(str(folder), known)]

    def kill(self) -> None:
        """End everything inside at once; safe to call at any time and again."""
        if self._builder is not None:
            self._builder.close()
            self._builder = None
        if self._lifeline is not None:
            self._reactor.unwatch(self._lifeline.fileno())
            self._lifeline.close()  # the stage ends on this, and with it the PID namespace
            self._lifeline = None
        self._kill_stage()
        for pump in self._outputs:
            pump.finish()
        self._end_streams()
        self._reap_bwrap(START_TIMEOUT_S)

    def close(self) -> None:
        """Give back what is left: the room's counter socket and handles."""
        self.kill()
        if self._room is not None:
            self._room.counters.close()
            self._room.sockets.close()
            self._room = None
        for name in ("_complaints", "_stage_fd"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)

    def _kill_stage(self) -> None:
        if self._stage_fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._stage_fd, signal.SIGKILL)

    def _end_streams(self) -> None:
        if self._input is not None:
            self._input.hand_back()
        if self._console is not None:
            self._console.close()
            self._console = None
        elif self._master >= 0 and not self._outputs:
            os.close(self._master)
        self._master = -1
        for signum, handler in self._old_handlers.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]
        self._old_handlers.clear()

    def _reap_bwrap(self, timeout_s: float) -> None:
        """Wait for bwrap, which ends right after its child; kill it if it does not."""
        if self._bwrap_pid <= 0:
            return
        pid, self._bwrap_pid = self._bwrap_pid, -1
        with contextlib.suppress(ChildProcessError):
            fd = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(timeout_s * 1000):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)
            os.waitpid(pid, 0)

    def _alive(self) -> Lifeline:
        if self._lifeline is None:
            raise ContainmentError("stage-failed", "the sandbox is not there")
        return self._lifeline
