"""One thread, one epoll: who is ready, what is due, and what other threads want done.

Why not asyncio: importing it costs more than starting a sandboxed command does, and
its streams carry half as many tunnels (docs/adr/0001-own-reactor.md has the figures).
What is needed here is small: watch a descriptor, call later, call from a thread,
catch a signal. Callbacks must not block. An exception that leaves a callback ends
`run` and so the run: only the code around one flow may catch and go on.
"""

from __future__ import annotations

import heapq
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import get_ident

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
GONE = select.EPOLLHUP | select.EPOLLERR

# Deadlines are mostly cancelled long before they are due; what is left of them is swept out from here on.
SWEEP_TIMERS = 1024

Callback = Callable[[], None]
FdCallback = Callable[[int], None]


class Timer:
    """A call that is due later; `cancel` makes it never happen."""

    __slots__ = ("callback", "due")

    def __init__(self, due: float, callback: Callback) -> None:
        self.due = due
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class Reactor:
    """The event loop that gateway and sandbox share in one process."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, FdCallback] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._sweep_at = SWEEP_TIMERS
        self._order = count()
        self._soon: deque[Callback] = deque()
        self._stopped = False
        self._thread = 0  # whose turn it is; nobody's before the first one
        # A pipe wakes epoll when another thread or a signal handler has put something into `_soon`.
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.watch(self._wake_r, READ, self._drain_wakeups)

    now = staticmethod(time.monotonic)

    # --- descriptors -----------------------------------------------------------------

    def watch(self, fd: int, events: int, callback: FdCallback) -> None:
        """Call `callback(ready_events)` whenever `fd` is ready (level-triggered)."""
        self._epoll.register(fd, events)
        self._watched[fd] = callback

    def rewatch(self, fd: int, events: int) -> None:
        """Change what a watched descriptor is watched for; 0 leaves errors only."""
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching a descriptor that is closed next: the kernel then drops it from epoll by itself."""
        self._watched.pop(fd, None)

    def unwatch(self, fd: int) -> None:
        """Stop watching; do this before the descriptor is closed. Unknown ones are ignored."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    # --- time and threads --------------------------------------------------------------

    def call_soon(self, callback: Callback) -> None:
        """Call from the loop's own thread, after the present callbacks."""
        self._soon.append(callback)

    def call_later(self, delay_s: float, callback: Callback) -> Timer:
        return self.call_at(time.monotonic() + delay_s, callback)

    def call_at(self, due: float, callback: Callback) -> Timer:
        timer = Timer(due, callback)
        if len(self._timers) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._timers, (due, next(self._order), timer))
        return timer

    def _sweep(self) -> None:
        """Forget cancelled timers, so that a busy loop does not keep minutes of them."""
        self._timers = [entry for entry in self._timers if entry[2].callback is not None]
        heapq.heapify(self._timers)
        self._sweep_at = max(SWEEP_TIMERS, 2 * len(self._timers))

    def call_threadsafe(self, callback: Callback) -> None:
        """Call in the loop's thread; this may be used by any thread, but not by signal handlers."""
        self._soon.append(callback)  # deque.append is atomic
        if get_ident() != self._thread:  # the loop's own thread is not asleep
            self._wake_up()

    def _wake_up(self) -> None:
        try:
            os.write(self._wake_w, b"!")
        except BlockingIOError:
            pass  # the pipe is full of wake-ups already
        except OSError:
            pass  # the loop is closed: nobody is there to be told

    def on_signal(self, signum: int, callback: Callback) -> None:
        """Call `callback` in the loop when the process gets this signal."""

        def handle(_signum: int, _frame: object) -> None:
            self._soon.append(callback)
            self._wake_up()  # Python goes on waiting after a handler (PEP 475), so the pipe has to say it

        signal.signal(signum, handle)

    def _drain_wakeups(self, _events: int) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake_r, 4096)

    # --- running -----------------------------------------------------------------------

    def run(self) -> None:
        """Run until `stop` is called."""
        self._stopped = False
        while not self._stopped:
            self.turn(None)

    def stop(self) -> None:
        self._stopped = True

    def turn(self, timeout_s: float | None) -> None:
        """Wait once, at most `timeout_s`, then call what is ready and due."""
        self._thread = get_ident()
        if self._soon:
            timeout_s = 0
        elif self._timers:
            until_due = max(0.0, self._timers[0][0] - time.monotonic())
            timeout_s = until_due if timeout_s is None else min(timeout_s, until_due)
        for fd, events in self._epoll.poll(-1 if timeout_s is None else timeout_s, 256):
            callback = self._watched.get(fd)
            if callback is not None:  # an earlier callback of this round may have unwatched it
                callback(events)
        self._call_due()
        for _ in range(len(self._soon)):  # not those that are added meanwhile: descriptors get their turn
            self._soon.popleft()()

    def _call_due(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                timer.callback()

    def close(self) -> None:
        self._epoll.close()
        os.close(self._wake_r)
        os.close(self._wake_w)
