"""One sandbox's life: build it, let the worker go, copy its streams, report its end. Linux only.

The order, and what breaks if swapped:

1. The child that will seal the mounts is forked: what it searches for it can look for
   meanwhile. Then bwrap starts, and right after it the builder is forked, which closes at
   once all that it inherits, above all the lifeline: end of file must not wait for it.
2. bwrap's info tells the process, and the builder begins in that network namespace
   while the stage's Python is still starting, and we compose the order to seal.
3. The stage says `ready`; who and where it is gets verified. Nothing of the worker has run.
4. The mounts are cut loose from the host's and sealed, from outside. Then the stage seals
   itself and hands out the eye (sandbox.eye); meanwhile the view, and the kernel's own list
   of mounts, are compared with what was planned.
5. `build` returns the room's sockets. The caller serves them and the eye, writes its first
   record, and calls `go`. Only then the stage forks the worker.

Closing the lifeline, on purpose or by dying, ends all of it in the kernel.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from stockade.errors import ContainmentError, HostError, StockadeError
from stockade.reactor import READ, Reactor
from stockade.sandbox import bubblewrap, kernel
from stockade.sandbox.detour import Stop, open_stop
from stockade.sandbox.enforcement import (
    EnforcementFacts,
    WorkerExit,
    describe_enforcement,
)
from stockade.sandbox.eye import LISTENER_FLAGS, Eye
from stockade.sandbox.filter import compile_filter, load_filter_table
from stockade.sandbox.finish_view import verify_private
from stockade.sandbox.hold import Hold, open_hold
from stockade.sandbox.holding import HeldLimits, open_limits
from stockade.sandbox.landlock import compile_ruleset, plan_rules
from stockade.sandbox.lifeline import (
    Lifeline,
    StageFacts,
    compose_order,
    compose_seal,
    explain_seal_failure,
    parse_facts,
    probe_own_namespaces,
    verify_sealed,
    verify_stage,
)
from stockade.sandbox.limits import LimitUsage, ReachedLimit, find_reached
from stockade.sandbox.noexec import MountSealer, read_mounts, verify_mounts
from stockade.sandbox.paths import make_folder
from stockade.sandbox.plan import SandboxPlan
from stockade.sandbox.room import BuiltRoom, RoomBuilder, RoomCounters, RoomSockets, verify_routes
from stockade.sandbox.signals import SignalRelay
from stockade.sandbox.stdio import Stdio
from stockade.sandbox.view import MountKind, is_below

if TYPE_CHECKING:
    from stockade.net.ends import Ends
    from stockade.sandbox.owner import Owner, OwnerFinder

__all__ = ["EnforcementFacts", "RoomCounters", "RoomSockets", "Sandbox", "WorkerExit"]

START_TIMEOUT_S = 10.0
SEARCH_TIMEOUT_S = 120.0  # the first search for program files on a slow disk


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
        self._sealer: MountSealer | None = None
        self.eye: Eye | None = None
        self._room: BuiltRoom | None = None
        self._limits: HeldLimits | None = None
        self._owners: OwnerFinder | None = None
        self._bwrap_pid = -1
        self._stage_fd = -1
        self._complaints = -1
        self._master = -1
        self._stdio: Stdio | None = None
        self._outcome: WorkerExit | None = None
        self._stage_gone = False
        self.made: dict[str, tuple[int, int]] = {}  # what was made for the run, by path: (device, inode)
        self._stops: list[Stop | Hold] = []
        self._began_s = time.time()
        self._on_exit: Callable[[WorkerExit], None] | None = None
        special: dict[int, Callable[[], None]] = {
            signal.SIGWINCH: self._resized,
            signal.SIGCONT: self._continued,
        }
        self._signals = SignalRelay(reactor, self.send_signal, self._insisted, special)

    # --- building --------------------------------------------------------------------------

    def build(self, meanwhile: Sequence[Callable[[], object]] = ()) -> RoomSockets | None:
        """Put everything up but the worker.

        Args:
            meanwhile: Called in order while the stage's Python starts and the builder works, which
                takes longer than our own part; in small pieces, since the builder waits for the
                end of one. They must not start threads or processes.

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
                f"no sandbox, last step {self._last_step()}: errno {error.errno}, {error}",
                "`stockade doctor` says what this host can enforce",
            ) from error
        except StockadeError:
            self.kill()
            self.close()
            raise

    def _build(self, meanwhile: Sequence[Callable[[], object]]) -> RoomSockets | None:
        plan = self.plan
        self._sealer = MountSealer(
            plan.late_mounts, plan.seal.mounts, guarded=plan.guarded, writable=tuple(map(str, plan.writable))
        )
        self._limits = open_limits(self.plan.limits)
        self.made = {path: make_folder(path, mode) for path, mode in self.plan.to_make}
        for paths, take in ((self.plan.stops, open_stop), (self.plan.holds, open_hold)):
            for path in paths:
                self._stops.append(take(path))
                self.made[path] = self._stops[-1].identity
        info = self._start_bwrap()
        self._mark("bwrap started")
        if self.plan.has_room:
            self._builder = RoomBuilder(self.plan.tools)
        self._mark("builder forked")
        # bwrap may say nothing for 10 ms: to enter a control group takes a grace period of the kernel's.
        work = deque(meanwhile)
        while work and not _is_readable(info, 0):
            work.popleft()()
        self._await_process(info)
        self._mark("process known")
        order = self._compose_seal()
        while work:
            work.popleft()()
        self._mark("meanwhile done")
        stage = self._await_ready()
        self._mark("stage ready")
        outside = probe_own_namespaces()
        verify_stage(stage, outside=outside, has_room=self.plan.has_room)
        self._limits.verify(self._stage_pid)
        self._sealer.begin(self._stage_pid)
        self._mark("stage verified")
        if self._builder is not None:
            self._room = self._builder.finish(START_TIMEOUT_S)
            self._builder = None
            self._verify_room(stage)
        self._mark("room built")
        opened = self._sealer.finish(SEARCH_TIMEOUT_S)
        self._sealer = None
        self._mark("mounts sealed")
        self._alive().send_order(order, [])  # the stage binds itself while we look at the mounts
        mounts = read_mounts(self._stage_pid)
        if self.plan.seal.mounts is not None:
            verify_mounts(mounts, opened)
        verify_private(mounts)
        self._verify_view()  # a file that was put over itself is the same file
        self._mark("mounts verified")
        stage = self._await_sealed(stage)
        self._mark("stage sealed")
        self.facts = describe_enforcement(self.plan, stage, outside, self._room, opened, self._limits)
        return self._room.sockets if self._room is not None else None

    def _compose_seal(self) -> bytes:
        """The order by which the stage will bind itself."""
        seal = self.plan.seal
        files = frozenset(fact for fact in map(str, self.plan.writable) if not os.path.isdir(fact))
        rules: list[tuple[int, str]] = []
        ruleset = b""
        if seal.landlock_abi:
            ruleset = compile_ruleset(seal.landlock_abi)
            rules = plan_rules(self.plan.mounts, files, seal.executable, seal.landlock_abi)
        program = b""
        if seal.filter.is_needed:
            program = compile_filter(load_filter_table(), self.plan.machine, seal.filter)
        return compose_seal(
            forbids_new_code=seal.forbids_new_code,
            ruleset=ruleset,
            program=program,
            flags=LISTENER_FLAGS if seal.has_eye else 0,
            rules=rules,
        )

    def _await_sealed(self, ready: StageFacts) -> StageFacts:
        """Wait until the stage has bound itself, and take over the eye."""
        seal = self.plan.seal
        message, fds = self._await_message("stage")
        if fds:
            self.eye = Eye(fds[0], self._stage_pid)
            self.eye.verify_reading()
        if message.startswith("seal-failed "):
            raise explain_seal_failure(message.split(" "), has_eye=seal.has_eye)
        facts = parse_facts(message, "sealed")
        has_eye = self.eye is not None or not seal.has_eye
        verify_sealed(facts, ready, has_filter=seal.filter.is_needed, has_eye=has_eye)
        return facts

    def _last_step(self) -> str:
        return next(reversed(self.step_times_ms), "none")

    def _mark(self, step: str) -> None:
        self.step_times_ms[step] = (time.monotonic() - self._began) * 1000

    def _start_bwrap(self) -> int:
        """Start bwrap; returns our end of its info pipe."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lifeline = Lifeline(ours)
        info_in, info_out = os.pipe2(os.O_CLOEXEC)
        self._complaints, complaints_out = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        data = bubblewrap.open_data(self.plan, bubblewrap.stage_program(self.plan.interpreter))
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
        """Where binds come from instead, and what the launching child does first."""
        assert self._limits is not None
        join = self._limits.join
        if not self.plan.started_as_root:
            return {}, join
        from stockade.sandbox import idmap

        become = idmap.become_worker(self.plan.mounts, self.plan.worker_uid, self.plan.worker_gid)

        def prepare() -> None:
            join()  # first: afterwards the worker's uid may not any more
            become()

        return idmap.plan_sources(self.plan.mounts), prepare

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
        self._alive().channel.setblocking(False)
        message, fds = self._await_message("stage")
        if fds:
            self._master = fds[0]
        return parse_facts(message, "ready")

    def _await_message(self, step: str) -> tuple[str, list[int]]:
        """The stage's next message, with the descriptors that came with it."""
        lifeline = self._alive()
        handed: list[int] = []
        while True:
            self._await_readable(lifeline.fileno(), step)
            messages, fds, is_gone = lifeline.receive()
            handed += fds
            if messages:
                return messages[0], handed
            if is_gone:
                raise self._explain_end(step)

    def _await_readable(self, fd: int, step: str) -> None:
        if not _is_readable(fd, START_TIMEOUT_S):
            raise ContainmentError(
                "start-timeout", f"step {step} did not answer within {START_TIMEOUT_S:.0f} s"
            )

    def _explain_end(self, step: str) -> StockadeError:
        """bwrap or the stage ended before it was ready: its own words say why."""
        self._reap_bwrap(1.0)
        text = ""
        with contextlib.suppress(OSError):
            text = os.read(self._complaints, 4096).decode(errors="replace").strip()
        by_limit = None if self._limits is None else self._limits.explain_end(text)
        if by_limit is not None:
            return by_limit
        if text:
            return bubblewrap.explain_complaint(text)
        return HostError(
            "sandbox-failed", f"step {step}: it ended without a word", "`stockade doctor` tries each part"
        )

    def _verify_view(self) -> None:
        """Each bind shows what was judged, each cover hides it, and not what was put in its place since."""
        root = os.open(f"/proc/{self._stage_pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        hiding = (MountKind.TMPFS, MountKind.COVER)
        covers = [(at, m.target) for at, m in enumerate(self.plan.mounts) if m.kind in hiding]
        try:
            for index, mount in enumerate(self.plan.mounts):
                made = self.made.get(mount.target)
                if mount.kind in (MountKind.READ_ONLY, MountKind.WRITABLE):
                    shown = mount.identity or made
                    # Something of ours may be over it on purpose (files.hide, the ledger).
                    is_covered = any(at > index and is_below(mount.target, path) for at, path in covers)
                    if shown is not None and not is_covered:
                        self._verify_place(root, mount.target, shown, is_shown=True)
                elif mount.kind in hiding and (mount.covers or made):
                    self._verify_place(root, mount.target, mount.covers or made, is_shown=False)
            writable = [str(path) for path in self.plan.writable]
            for program in self.plan.seal.programs:  # a permitted one that another run may have replaced
                if any(is_below(program.path, path) for path in writable):
                    self._verify_place(root, program.path, program.identity, is_shown=True)
        finally:
            os.close(root)

    def identity_of(self, path: str) -> tuple[int, int] | None:
        """(device, inode) of what was made or covered at a path; None if the view shows nothing there."""
        covers = (mount.covers for mount in self.plan.mounts if mount.target == path)
        return self.made.get(path) or next((found for found in covers if found), None)

    def _verify_place(
        self, root: int, target: str, identity: tuple[int, int] | None, *, is_shown: bool
    ) -> None:
        try:
            place = kernel.open_within(root, target, os.O_PATH)
        except OSError as error:
            raise ContainmentError("view-failed", f"{target} is not in the view: {error}") from error
        status = os.fstat(place)
        os.close(place)
        if ((status.st_dev, status.st_ino) == identity) != is_shown:
            raise ContainmentError("view-changed", f"{target} was replaced while the sandbox was being built")

    def _verify_room(self, stage: StageFacts) -> None:
        assert self._room is not None
        if os.fstat(self._room.sockets.netns_fd).st_ino != stage.namespaces["net"]:
            raise ContainmentError("room-failed", "the room was built in another network namespace")
        # Both tools said that they did it; here the kernel says so. The counters are part of the rules.
        self.read_counters()
        verify_routes(self._stage_pid, self.plan.tools, has_ipv6=self._room.has_ipv6)

    # --- running ---------------------------------------------------------------------------

    def go(self, on_exit: Callable[[WorkerExit], None]) -> None:
        """Let the worker start. `on_exit` is called once, when it has ended and its output is out.

        Raises:
            ContainmentError: The stage is gone.
        """
        self._on_exit = on_exit
        lifeline = self._alive()
        stdio = self._open_stdio()
        order = compose_order(
            self.plan.cwd,
            self.plan.program,
            stdio.places,
            ";".join(f"{kind} {soft} {hard}" for kind, soft, hard in self._resource_limits()),
            self.plan.argv,
            self.plan.environment,
        )
        try:
            if self.plan.started_as_root:
                for fd in stdio.theirs:  # else the worker could not open /dev/stdin, which is one of these
                    os.fchown(fd, self.plan.worker_uid, self.plan.worker_gid)
            lifeline.send_order(order, stdio.theirs)
        except OSError as error:
            raise ContainmentError("stage-failed", f"the stage is gone: {error}") from error
        finally:
            for fd in stdio.theirs:
                os.close(fd)
        self._reactor.watch(lifeline.fileno(), READ, self._hear_stage)
        self._signals.start()
        self._mark("order sent")

    def _resource_limits(self) -> list[tuple[int, int, int]]:
        return [] if self._limits is None else self._limits.resource_limits()

    def _open_stdio(self) -> Stdio:
        self._stdio = Stdio(self._reactor, self._settle)
        if self.plan.terminal:
            master, self._master = self._master, -1
            with_stderr = self.plan.stderr_in_terminal
            self._stdio.open_terminal(master, self._insisted, with_stderr=with_stderr)
        elif self.plan.debugging_pipe:
            self._stdio.open_debugging_pipe()
        else:
            self._stdio.open_pipes()
        return self._stdio

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

    def _settle(self) -> None:
        """The end has come when the stage is gone and everything that was written is out."""
        if not self._stage_gone or self._stdio is None or not self._stdio.is_drained:
            return
        on_exit, self._on_exit = self._on_exit, None
        if on_exit is None:
            return
        self._end_outside()
        self._reap_bwrap(START_TIMEOUT_S)
        if self._outcome is None and any(limit.name == "memory" for limit in self.limits_reached()):
            # The kernel chose the stage instead of the worker.
            self._outcome = WorkerExit(signal=signal.SIGKILL)
        on_exit(self._outcome or WorkerExit())

    def find_owner(self, ends: Ends) -> Owner | None:
        """The process inside that holds this end of a connection; None if that is not certain."""
        if self._room is None or self._stage_fd < 0:
            return None
        if self._owners is None:
            from stockade.sandbox.owner import OwnerFinder  # most runs refuse nothing

            try:
                self._owners = OwnerFinder(self._room.diagnosis, self._stage_pid, self._stage_fd)
            except OSError:  # the sandbox has ended
                return None
        return self._owners.find(ends)

    # --- signals ---------------------------------------------------------------------------

    def send_signal(self, signum: int) -> None:
        """Pass a signal to the command's process group."""
        if self._lifeline is not None:
            self._lifeline.send_signal(signum)

    def end(self, signum: int) -> None:
        """Kill all inside, and let it count as the command's death by `signum`; `on_exit` is called."""
        if self._outcome is None:
            self._outcome = WorkerExit(signal=signum)
        self._kill_stage()

    def _insisted(self) -> None:
        """Ctrl-C again and again: the person wants it to end."""
        self.end(signal.SIGINT)

    def _resized(self) -> None:
        if self._stdio is None or not self._stdio.copy_size():
            self.send_signal(signal.SIGWINCH)

    def _stop_ourselves(self) -> None:
        """The command was stopped (Ctrl-Z): give the terminal back and stop, as it would have."""
        if self._stdio is not None:
            self._stdio.step_back()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _continued(self) -> None:
        if self._stdio is not None:
            self._stdio.step_forward()
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
        except (OSError, KeyError) as error:
            raise ContainmentError("count-failed", f"the room's counters cannot be read: {error}") from error

    def limits_reached(self) -> list[ReachedLimit]:
        """The limits on memory and processes that had an effect; final once everything inside has ended."""
        if self._limits is None:
            return []
        return find_reached(self.plan.limits, self._limits.read_usage())

    def verify_limits(self) -> None:
        """See that the named limits held to the end; call it after `kill`.

        Raises:
            ContainmentError: One did not.
        """
        if self._limits is not None and (lost := self._limits.find_lost()):
            raise ContainmentError(
                "limit-lost",
                f"while it ran, somebody outside changed or took away the limit on {', '.join(lost)}",
                "the group's limits are written once, at the start; nothing of ours changes them",
            )

    def limit_usage(self) -> LimitUsage:
        """What the kernel counted of this run."""
        return LimitUsage() if self._limits is None else self._limits.read_usage()

    def planted(self) -> list[str]:
        """Paths in writable folders that are new and that other programs of the host would run or obey.

        What would be obeyed without a question has been moved aside, and has its new name
        here (left_behind.py). Whatever is alive inside is killed first.
        """
        self.kill()
        from stockade.sandbox.left_behind import Before, review

        plan = self.plan
        before = Before(
            run_id=plan.environment.get("STOCKADE_RUN", ""),
            protected=frozenset(map(str, plan.protected)) - frozenset(plan.holds),
            held={path: self.made[path] for path in plan.holds if path in self.made},
            opened=frozenset(map(str, plan.writable)),
            links=plan.kept_links,
            watched=plan.watched,
            homes=plan.homes,
            began_s=self._began_s,
        )
        return sorted({path for folder in plan.writable for path in review(str(folder), before)})

    def kill(self) -> None:
        """End everything inside at once; safe to call at any time and again."""
        if self._builder is not None:
            self._builder.close()
            self._builder = None
        if self._sealer is not None:
            self._sealer.close()
            self._sealer = None
        if self._lifeline is not None:
            self._reactor.unwatch(self._lifeline.fileno())
            self._lifeline.close()  # the stage ends on this, and with it the PID namespace
            self._lifeline = None
        self._kill_stage()
        self._end_outside()
        self._reap_bwrap(START_TIMEOUT_S)
        if self._limits is not None:
            self._limits.close()
        for stop in self._stops:  # last: nothing inside is alive any more to put something in its place
            stop.withdraw()

    def close(self) -> None:
        """Give back what is left: the eye, the room's counter socket and handles."""
        self.kill()
        if self.eye is not None:
            self._reactor.unwatch(self.eye.fileno())
            self.eye.close()
            self.eye = None
        if self._owners is not None:
            self._owners.close()
            self._owners = None
        if self._room is not None:
            self._room.counters.close()
            self._room.diagnosis.close()
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

    def _end_outside(self) -> None:
        """Give the caller's streams, terminal and signals back."""
        if self._stdio is not None:
            self._stdio.close()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
        self._signals.stop()

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


def _is_readable(fd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
