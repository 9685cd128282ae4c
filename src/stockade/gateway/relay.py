"""Moving bytes from one socket to another without looking at them.

A `Way` is one direction. It starts with plain reads, since most tunnels are short,
and goes over to `splice` through a pipe once a direction has shown that it carries
bulk: the bytes then never enter this process. Back-pressure is the kernel's: when
the far side does not take bytes, the near side is not read. Pipes are borrowed only
while bytes are in them, so an idle tunnel owns none.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress

READ_BYTES = 65536
# After this much in one direction a pipe pays for itself (two more system calls a round against copying).
BULK_AFTER_BYTES = 262144
# The kernel's default for pipe-max-size, the most that an ordinary user may ask for.
PIPE_BYTES = 1048576
_SPLICE_FLAGS = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK
# Unprivileged users may hold 64 MiB of pipe pages (pipe-user-pages-soft); more get one page each.
POOL_KEEPS = 16


class PipePool:
    """Pipes that are empty and wait to be used again."""

    def __init__(self) -> None:
        self._idle: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int]:
        if self._idle:
            return self._idle.pop()
        pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):  # a smaller pipe is slower and nothing worse
            fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return pipe

    def give_back(self, pipe: tuple[int, int], *, is_empty: bool) -> None:
        if is_empty and len(self._idle) < POOL_KEEPS:
            self._idle.append(pipe)
            return
        os.close(pipe[0])
        os.close(pipe[1])

    def close(self) -> None:
        while self._idle:
            self.give_back(self._idle.pop(), is_empty=False)


PIPES = PipePool()


class Way:
    """One direction of a connection while nobody looks into it.

    Attributes:
        count: Bytes that went over so far.
        source_ended: The source has sent its last byte (its FIN was seen).
        wants_write: The destination was full; call `move` when it takes bytes again.
    """

    __slots__ = (
        "_buffer",
        "_in_pipe",
        "_left",
        "_pipe",
        "_spend",
        "count",
        "destination",
        "source",
        "source_ended",
        "wants_write",
    )

    def __init__(
        self,
        source: socket.socket,
        destination: socket.socket,
        limit_bytes: int | None,
        spend: Callable[[int], bool] | None = None,
    ) -> None:
        self.source = source
        self.destination = destination
        self._left = limit_bytes
        self._spend = spend
        self._buffer: memoryview | None = None
        self._pipe: tuple[int, int] | None = None
        self._in_pipe = 0
        self.count = 0
        self.source_ended = False
        self.wants_write = False

    @property
    def is_done(self) -> bool:
        """Nothing more will go this way and nothing is left in between."""
        return (self.source_ended or self._left == 0) and not self.wants_write

    @property
    def wants_read(self) -> bool:
        return not self.wants_write and not self.source_ended and self._left != 0

    def move(self) -> None:
        """Carry what can be carried now; raises OSError when either side is broken."""
        if self._buffer is not None or self._in_pipe:
            self._flush()
        if self.wants_read:
            if self.count < BULK_AFTER_BYTES:
                self._copy()
            else:
                self._splice()

    def release(self) -> None:
        """Give back what is borrowed; the bytes in it are lost with the connection."""
        if self._pipe is not None:
            PIPES.give_back(self._pipe, is_empty=self._in_pipe == 0)
            self._pipe = None

    # --- small amounts ---------------------------------------------------------------

    def _copy(self) -> None:
        try:
            data = self.source.recv(READ_BYTES if self._left is None else min(READ_BYTES, self._left))
        except BlockingIOError:
            return
        if not data:
            self.source_ended = True
            return
        self._account(len(data))
        try:
            sent = self.destination.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._buffer = memoryview(data)[sent:]
            self.wants_write = True

    # --- bulk --------------------------------------------------------------------------

    def _splice(self) -> None:
        if self._pipe is None:
            try:
                self._pipe = PIPES.take()
            except OSError:  # no descriptor is left for a pipe; reads need none
                self._copy()
                return
        wanted = PIPE_BYTES if self._left is None else min(PIPE_BYTES, self._left)
        try:
            taken = os.splice(self.source.fileno(), self._pipe[1], wanted, flags=_SPLICE_FLAGS)
        except BlockingIOError:
            self.release()
            return
        if taken == 0:
            self.source_ended = True
            self.release()
            return
        self._account(taken)
        self._in_pipe += taken
        self._flush()

    def _flush(self) -> None:
        """Push what is in between on to the destination."""
        try:
            while self._in_pipe:
                assert self._pipe is not None
                self._in_pipe -= os.splice(
                    self._pipe[0], self.destination.fileno(), self._in_pipe, flags=_SPLICE_FLAGS
                )
            if self._buffer is not None:
                sent = self.destination.send(self._buffer)
                self._buffer = self._buffer[sent:] if sent < len(self._buffer) else None
        except BlockingIOError:
            pass
        self.wants_write = self._in_pipe > 0 or self._buffer is not None

    def _account(self, count: int) -> None:
        if self._spend is not None and not self._spend(count):
            raise LimitReached(0)  # taken from the source and dropped here: it was never counted
        self.count += count
        if self._left is not None:
            self._left -= count


class LimitReached(Exception):  # noqa: N818  # a stop sign between relay and driver, not a fault
    """The run's upload is used up; the driver cuts the connection and records it.

    Attributes:
        unsent_bytes: What the flow has counted already and what does not leave now.
    """

    def __init__(self, unsent_bytes: int) -> None:
        super().__init__(unsent_bytes)
        self.unsent_bytes = unsent_bytes
