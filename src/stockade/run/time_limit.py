"""The limit on a run's time: politely first, then all of it."""

from __future__ import annotations

import signal

from stockade.reactor import Reactor, Timer
from stockade.sandbox.limits import ReachedLimit, reached_time
from stockade.sandbox.supervise import Sandbox

# Between SIGTERM to the command and the end of everything; systemd and container runtimes wait 5 to 90 s.
GRACE_S = 5.0


class TimeLimit:
    """Ends the command when its time is up. Time that Stockade itself is stopped counts too.

    Args:
        limit_s: From `start` on; None for no limit.
    """

    def __init__(self, reactor: Reactor, sandbox: Sandbox, limit_s: float | None) -> None:
        self._reactor = reactor
        self._sandbox = sandbox
        self._limit_s = limit_s
        self._timer: Timer | None = None
        self._is_up = False
        self._was_killed = False

    def start(self) -> None:
        if self._limit_s is not None:
            self._timer = self._reactor.call_later(self._limit_s, self._ask)

    def cancel(self) -> None:
        """The command has ended: whatever comes later is not the limit's doing."""
        if self._timer is not None:
            self._timer.cancel()

    def _ask(self) -> None:
        self._is_up = True
        self._sandbox.send_signal(signal.SIGTERM)
        self._timer = self._reactor.call_later(GRACE_S, self._insist)

    def _insist(self) -> None:
        self._was_killed = True
        self._sandbox.end(signal.SIGKILL)

    @property
    def reached(self) -> list[ReachedLimit]:
        """The limit, if it ended the command."""
        if not self._is_up or self._limit_s is None:
            return []
        return [reached_time(self._limit_s, was_killed=self._was_killed)]
