"""How an operator changes a running room: another policy, the next phase; and how a driver notes its steps.

An abstract Unix socket in the gateway's own network namespace. The worker has another
network namespace, so this name does not exist for it (unix(7), abstract sockets), and
when this process dies nothing is left on disk. Only the same user and root are served.
One JSON object a line in, one out.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from stockade.errors import HostError, StockadeError, UserError
from stockade.reactor import READ
from stockade.vocabulary import Phase

if TYPE_CHECKING:
    from stockade.run.session import Session

Reply = Callable[[dict[str, object]], None]

REQUEST_LIMIT_BYTES = 1 << 20
ACCEPT_AGAIN_S = 0.2
_CREDENTIALS = struct.Struct("3i")
# What the worker's view, the seal and the room's limits were made of: no other policy can change it any more.
_FIXED_KEYS = ("files", "limits", "exec")


def socket_name(run_id: str) -> str:
    """The abstract name (with its leading NUL) of a run's control socket."""
    return f"\0stockade/control/{run_id}"


class ControlSocket:
    """Serves one run's operator."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._clients: set[socket.socket] = set()
        self._listener = socket.socket(
            socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        )
        self._listener.bind(socket_name(session.run_id))
        self._listener.listen(8)
        self._is_open = True
        self._watch_listener()

    def _watch_listener(self) -> None:
        if self._is_open:
            self._session.reactor.watch(self._listener.fileno(), READ, lambda _events: self._accept())

    def close(self) -> None:
        self._is_open = False
        for sock in (self._listener, *self._clients):
            self._session.reactor.unwatch(sock.fileno())
            sock.close()
        self._clients.clear()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # no descriptor is free: look again later instead of spinning
            self._session.reactor.unwatch(self._listener.fileno())
            self._session.reactor.call_later(ACCEPT_AGAIN_S, self._watch_listener)
            return
        _pid, uid, _gid = _CREDENTIALS.unpack(
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if uid not in (0, os.getuid()):
            sock.close()
            return
        sock.setblocking(False)
        self._clients.add(sock)
        buffer = bytearray()
        self._session.reactor.watch(sock.fileno(), READ, lambda _events: self._receive(sock, buffer))

    def _receive(self, sock: socket.socket, buffer: bytearray) -> None:
        try:
            data = sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        buffer += data
        if data and b"\n" not in buffer and len(buffer) < REQUEST_LIMIT_BYTES:
            return
        self._session.reactor.unwatch(sock.fileno())
        if b"\n" in buffer:
            self._answer(bytes(buffer.partition(b"\n")[0]), partial(self._reply, sock))
        else:
            self._drop(sock)

    def _reply(self, sock: socket.socket, answer: dict[str, object]) -> None:
        with suppress(OSError):  # the operator has gone; what was asked for is done and on record
            sock.sendall(msgspec.json.encode(answer) + b"\n")
        self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._clients.discard(sock)
        sock.close()

    def _answer(self, line: bytes, reply: Reply) -> None:
        """Do what one line asks, and reply when it is done: to a change, when it is in force."""
        try:
            self._perform(
                msgspec.json.decode(line, type=dict[str, Any]), lambda fields: reply({"ok": True, **fields})
            )
        except msgspec.DecodeError as error:
            reply({"ok": False, "code": "bad-request", "message": str(error)})
        except StockadeError as error:
            reply({"ok": False, "code": error.code, "message": error.message, "hint": error.hint})

    def _perform(self, request: dict[str, Any], done: Reply) -> None:
        session = self._session
        match request.get("do"):
            case "status":
                done({"run": session.run_id, "phase": str(session.phase), "policy": session.policy.digest})
            case "policy":
                self._replace_policy(Path(str(request.get("file"))), done)
            case "phase":
                self._change_phase(str(request.get("phase")), request.get("reopen") is True, done)
            case "step" | "step-outcome":
                from stockade.run.agent_steps import record_step

                record_step(session, request, done)
            case _:
                known = "status, policy, phase, step and step-outcome"
                raise UserError("bad-request", f"the control socket knows {known}")

    def _replace_policy(self, file: Path, done: Reply) -> None:
        from stockade.policy.canonical import canonical_document
        from stockade.run.prepare import load_runnable

        policy = load_runnable(file)
        old, new = canonical_document(self._session.policy), canonical_document(policy)
        changed = [key for key in _FIXED_KEYS if old.get(key) != new.get(key)]
        if changed:
            raise UserError(
                "fixed-in-a-run",
                f"the room was built with other {' and '.join(f'`{key}:`' for key in changed)}",
                "keep them as they are in a replacement, or start another run",
            )
        self._session.replace_policy(policy, f"uid {os.getuid()}", lambda: done({"policy": policy.digest}))

    def _change_phase(self, word: str, is_reopening: bool, done: Reply) -> None:
        order = list(Phase)
        try:
            phase = Phase(word)
        except ValueError as error:
            raise UserError("bad-phase", f"{word!r} is not a phase", "setup, work or scoring") from error
        if order.index(phase) < order.index(self._session.phase) and not is_reopening:
            raise UserError(
                "phase-backward",
                f"the run is in {self._session.phase}; phases go forward only",
                "--reopen goes back, and the ledger records it",
            )
        self._session.change_phase(
            phase, f"uid {os.getuid()}", lambda: done({"phase": str(phase)}), is_reopening=is_reopening
        )


def ask_run(run_id: str, request: dict[str, object]) -> dict[str, Any]:
    """Send one request to a running run, from the operator's side.

    Raises:
        HostError: No such run is open on this machine.
        UserError: The run refused the request.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(10)
        try:
            sock.connect(socket_name(run_id))
            sock.sendall(msgspec.json.encode(request) + b"\n")
            answer = msgspec.json.decode(sock.makefile("rb").readline(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError) as error:
            raise HostError(
                "run-not-open",
                f"run {run_id} does not answer: {error}",
                "is it still running, on this machine and in this network namespace, as this user?",
            ) from error
    if not answer.pop("ok"):
        raise UserError(answer.get("code", "refused"), answer.get("message", ""), answer.get("hint"))
    return answer
