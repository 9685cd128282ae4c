"""What reaches the tool as a signal is passed on to the command, as if it had been meant for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping

from stockade.reactor import Reactor

FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
)
# Without a terminal of ours, this many SIGINT in this time kill the run (with one: console.py).
INTERRUPTS_THAT_KILL = 3
INTERRUPTS_WITHIN_S = 2.0


class SignalRelay:
    """Handlers for the time that a command runs; those that were there before are put back.

    Args:
        send: Passes a signal to the command.
        insist: Called when the person presses Ctrl-C again and again.
        special: Signals that need more than being passed on.
    """

    def __init__(
        self,
        reactor: Reactor,
        send: Callable[[int], None],
        insist: Callable[[], None],
        special: Mapping[int, Callable[[], None]],
    ) -> None:
        self._reactor = reactor
        self._send = send
        self._insist = insist
        self._special = special
        self._interrupts: list[float] = []
        self._before: dict[int, object] = {}

    def start(self) -> None:
        """Begin to pass on; in another thread than the main one the embedding program must do it."""
        if threading.current_thread() is not threading.main_thread():
            return
        for forwarded in FORWARDED:
            self._handle(forwarded, self._forwarder(forwarded))
        for signum, action in self._special.items():
            self._handle(signum, action)

    def stop(self) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]
        self._before.clear()

    def _handle(self, signum: int, action: Callable[[], None]) -> None:
        if signal.getsignal(signum) is signal.SIG_IGN:
            return  # nohup and the like: as it would be for a plain command
        self._before[signum] = signal.getsignal(signum)
        self._reactor.on_signal(signum, action)

    def _forwarder(self, signum: int) -> Callable[[], None]:
        return self._interrupt if signum == signal.SIGINT else lambda: self._send(signum)

    def _interrupt(self) -> None:
        now = time.monotonic()
        self._interrupts = [at for at in self._interrupts if now - at < INTERRUPTS_WITHIN_S] + [now]
        if len(self._interrupts) >= INTERRUPTS_THAT_KILL:
            self._insist()
        else:
            self._send(signal.SIGINT)
