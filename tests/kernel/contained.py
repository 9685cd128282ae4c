"""Run one command in a sandbox without a gateway: what the kernel tests look at.

Usage: contained.py [--write DIR] [--read DIR] [--hide PATH] [--invisible PATH] [--env NAME=VALUE]
                    [--facts FILE] [--memory BYTES] [--processes N] [--open-files N] [--file-size BYTES]
                    [--exec listed|any] [--allow PROGRAM] [--code closed|jit] [--unix-sockets]
                    [--without-layer NAME] [--lose-group] [--run-id ID] [--thread] [--user-namespaces]
                    [--close-eye-at TEXT] -- CMD...

Exits like `stockade run` (100 + family for failures of ours). With --facts it leaves a
JSON object: facts, counters, step times, and the host's view of the worker.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import sys
import threading
from pathlib import Path

import msgspec

from stockade.errors import StockadeError
from stockade.policy.model import ExecPolicy
from stockade.reactor import READ, Reactor
from stockade.sandbox import bubblewrap, supervise
from stockade.sandbox.command_reader import read_command
from stockade.sandbox.filter import find_refusal, load_filter_table
from stockade.sandbox.holding import HeldLimits, open_limits
from stockade.sandbox.limits import LimitPlan, LimitRequest
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import RoomSockets, Sandbox, WorkerExit


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("write", "read", "hide", "invisible"):
        parser.add_argument(f"--{name}", action="append", default=[], type=Path)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--without-layer", action="append", default=[])
    parser.add_argument("--unix-sockets", action="store_true")
    parser.add_argument("--facts", type=Path)
    for name in ("memory", "processes", "open-files", "file-size"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--lose-group", action="store_true", help="remove the control group once it is made")
    parser.add_argument("--exec", choices=("listed", "any"), default="any")
    parser.add_argument("--allow", action="append", default=[])
    parser.add_argument("--code", choices=("closed", "jit"), default="closed")
    parser.add_argument("--run-id", default="test")
    parser.add_argument("--thread", action="store_true", help="build in a thread that ends at once")
    parser.add_argument("--user-namespaces", action="store_true", help="leave out --disable-userns")
    parser.add_argument("--close-eye-at", default="", help="close the eye when a command has this argument")
    parser.add_argument("argv", nargs="+")
    args = parser.parse_args()
    request = SandboxRequest(
        argv=tuple(args.argv),
        workspace=Path(os.environ.get("PWD") or os.getcwd()),
        read=tuple(args.read),
        write=tuple(args.write),
        hide=tuple(args.hide),
        invisible=tuple(args.invisible),
        caller_environment=dict(os.environ),
        extra_environment=tuple(args.env),
        limits=LimitRequest(
            memory_bytes=args.memory,
            processes=args.processes,
            open_files=args.open_files,
            file_size_bytes=args.file_size,
        ),
        exec=ExecPolicy(
            mode=args.exec, allow=tuple(args.allow), code=args.code, unix_sockets=args.unix_sockets
        ),
        layers_off=frozenset(args.without_layer),
        run_id=args.run_id,
    )
    try:
        return run(request, args)
    except StockadeError as error:
        print(f"{type(error).__name__} {error}\nhint: {error.hint}", file=sys.stderr)
        return 100 + error.exit_code


def run(request: SandboxRequest, args: argparse.Namespace) -> int:
    if args.user_namespaces:
        permit_user_namespaces()
    plan = plan_sandbox(request, probe_host(request))
    if args.lose_group:
        supervise.open_limits = open_limits_that_vanish
    reactor = Reactor()
    sandbox = Sandbox(plan, reactor)
    built: list[RoomSockets | None] = []
    if args.thread:
        thread = threading.Thread(target=lambda: built.append(sandbox.build()))
        thread.start()
        thread.join()
    else:
        built.append(sandbox.build())
    ended: list[WorkerExit] = []

    def on_exit(how: WorkerExit) -> None:
        ended.append(how)
        reactor.stop()

    try:
        if sandbox.eye is not None:
            answer_commands(reactor, sandbox, args.close_eye_at)
        sandbox.go(on_exit)
        reactor.run()
        if args.facts:
            leave_facts(args.facts, sandbox, built[0])
    finally:
        sandbox.close()
    return ended[0].shell_code


def open_limits_that_vanish(plan: LimitPlan) -> HeldLimits:
    held = open_limits(plan)
    for fact in held.to_facts().values():
        if "group" in fact:
            os.rmdir(str(fact["group"]))
    return held


def permit_user_namespaces() -> None:
    """One protection taken away that no option of the product takes away."""
    compile_all = bubblewrap.compile_arguments
    bubblewrap.compile_arguments = lambda *args, **kept: [
        word for word in compile_all(*args, **kept) if word != "--disable-userns"
    ]


def answer_commands(reactor: Reactor, sandbox: Sandbox, close_at: str) -> None:
    """Let each command go on and refuse each reported call: no record, the other layers alone.

    Args:
        close_at: A command with this argument is not answered: the listener is closed while it waits.
    """
    eye, table = sandbox.eye, load_filter_table()
    assert eye is not None

    def look(_events: int) -> None:
        sighting = eye.receive()
        if sighting is None:
            return
        if close_at and close_at in read_command(sighting, is_at=False).argv:
            reactor.unwatch(eye.fileno())
            eye.close()
            return
        wish, machine = sandbox.plan.seal.filter, sandbox.plan.machine
        refusal = find_refusal(table, machine, wish, sighting.arch, sighting.number, sighting.args)
        if refusal is None:
            eye.let_go_on(sighting)
        else:
            eye.refuse(sighting, refusal.errno_number)

    reactor.watch(eye.fileno(), READ, look)


def drain(sockets: RoomSockets) -> dict[str, int]:
    """What waits in the listeners' queues, and what they dropped (SO_MEMINFO, the ninth number)."""
    found = {"accepted": 0, "tcp_drops": 0, "dns_received": 0, "dns_drops": 0}
    for listener in (sockets.tcp4, sockets.tcp6):
        while listener is not None:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                found["tcp_drops"] += drops_of(listener)
                break
            found["accepted"] += 1
    for receiver in (sockets.udp4, sockets.udp6):
        while receiver is not None:
            try:
                receiver.recv(2048)
            except BlockingIOError:
                found["dns_drops"] += drops_of(receiver)
                break
            found["dns_received"] += 1
    return found


def drops_of(channel: socket.socket) -> int:
    return struct.unpack("9I", channel.getsockopt(socket.SOL_SOCKET, 55, 36))[8]


def leave_facts(path: Path, sandbox: Sandbox, sockets: RoomSockets | None) -> None:
    counters = sandbox.read_counters() if sandbox.plan.has_room else None
    found = {
        "facts": sandbox.facts.to_fields(),
        "queues": drain(sockets) if sockets is not None else {},
        "planted": sandbox.planted(),
        "steps_ms": sandbox.step_times_ms,
        "usage": msgspec.to_builtins(sandbox.limit_usage()),
        "limits_reached": [limit.name for limit in sandbox.limits_reached()],
        "counters": {name: getattr(counters, name) for name in getattr(counters, "__struct_fields__", ())},
    }
    path.write_text(json.dumps(found))


sys.exit(main())
