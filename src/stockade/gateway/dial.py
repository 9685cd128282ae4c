"""Connecting to judged addresses, and to nothing else.

The dialler takes a `Permit`, which only the engine makes and which holds addresses,
never a name: between the judgement and the connection nobody looks anything up again.
Several addresses are tried in their order, the next one when the one before failed or
has not answered for a quarter of a second (RFC 8305, "connection attempt delay").
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

from stockade.decision.request import Permit
from stockade.gateway.closing import is_dead
from stockade.gateway.upstream import ConnectRequest
from stockade.net.address import IPAddress
from stockade.reactor import READ, WRITE, Reactor, Timer

NEXT_ADDRESS_AFTER_S = 0.25
DIAL_TIMEOUT_S = 15.0

_WORDS = {
    errno.ECONNREFUSED: "refused",
    errno.ENETUNREACH: "network-unreachable",
    errno.EHOSTUNREACH: "host-unreachable",
    errno.ETIMEDOUT: "timed-out",
    errno.EACCES: "forbidden-by-host",
    errno.EPERM: "forbidden-by-host",
    errno.EMFILE: "out-of-descriptors",
    errno.ENFILE: "out-of-descriptors",
    errno.EADDRNOTAVAIL: "no-local-port",
}

Done = Callable[["socket.socket | None", "IPAddress | None", str], None]


class Dial:
    """One attempt to reach a permit; calls `done(socket, address, error)` exactly once."""

    __slots__ = (
        "_deadline",
        "_done",
        "_error",
        "_permit",
        "_port",
        "_reactor",
        "_stagger",
        "_tries",
        "_waiting",
    )

    def __init__(self, reactor: Reactor, permit: Permit, done: Done) -> None:
        self._reactor = reactor
        self._done: Done | None = done
        self._permit = permit
        self._port = permit.port if permit.through is None else permit.through.port
        self._waiting = list(permit.addresses)
        self._tries: dict[int, tuple[socket.socket, IPAddress]] = {}
        self._error = "no-address"
        self._stagger: Timer | None = None
        self._deadline: Timer | None = None
        self._try_next()
        if self._done is not None:
            self._deadline = reactor.call_later(DIAL_TIMEOUT_S, self._give_up)

    def cancel(self) -> None:
        """Forget about it; `done` will not be called."""
        self._done = None
        self._clean_up()

    def _try_next(self) -> None:
        self._stagger = None
        while self._waiting and self._done is not None:
            address = self._waiting.pop(0)
            sock = self._open(address)
            if sock is None:
                continue
            if self._waiting:
                self._stagger = self._reactor.call_later(NEXT_ADDRESS_AFTER_S, self._try_next)
            return
        if not self._tries:
            self._finish(None, None)

    def _open(self, address: IPAddress) -> socket.socket | None:
        """Start one connection; None if it failed at once (or is finished already)."""
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            self._error = _WORDS.get(error.errno or 0, "failed")
            return None
        code = sock.connect_ex((str(address), self._port))
        if code not in (0, errno.EINPROGRESS):
            self._error = _WORDS.get(code, "failed")
            sock.close()
            return None
        fd = sock.fileno()
        self._tries[fd] = (sock, address)
        if code == 0 or not is_dead(sock):  # a near peer answers before `connect` is back
            self._win(fd)
        else:
            self._reactor.watch(fd, WRITE, lambda _events: self._ready(fd))
        return sock

    def _ready(self, fd: int) -> None:
        sock, _ = self._tries[fd]
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            self._win(fd)
            return
        self._error = _WORDS.get(code, "failed")
        del self._tries[fd]
        self._reactor.unwatch(fd)
        sock.close()
        if self._stagger is not None:
            self._stagger.cancel()
        self._try_next()

    def _win(self, fd: int) -> None:
        sock, address = self._tries.pop(fd)
        self._reactor.unwatch(fd)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._permit.through is None:
            self._finish(sock, address)
        else:
            self._ask_proxy(sock, address)

    def _ask_proxy(self, sock: socket.socket, address: IPAddress) -> None:
        """The upstream proxy is reached; it still has to reach the name."""
        self._waiting.clear()
        if self._stagger is not None:
            self._stagger.cancel()
        fd = sock.fileno()
        self._tries[fd] = (sock, address)

        def answered(error: str) -> None:
            del self._tries[fd]
            self._reactor.unwatch(fd)
            if error:
                sock.close()
                self._error = error
                self._finish(None, None)
            else:
                self._finish(sock, address)

        ask = ConnectRequest(sock, self._permit, answered)
        self._reactor.watch(fd, READ, lambda _events: ask.read())

    def _give_up(self) -> None:
        self._error = "timed-out"
        self._finish(None, None)

    def _finish(self, sock: socket.socket | None, address: IPAddress | None) -> None:
        done, self._done = self._done, None
        self._clean_up()
        if done is not None:
            done(sock, address, "" if sock is not None else self._error)

    def _clean_up(self) -> None:
        for timer in (self._stagger, self._deadline):
            if timer is not None:
                timer.cancel()
        for fd, (sock, _) in self._tries.items():
            self._reactor.unwatch(fd)
            sock.close()
        self._tries.clear()
        self._waiting.clear()
