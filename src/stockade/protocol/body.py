"""One message body on its way from one side to the other, never held in memory.

What is buffered goes on at once; the rest is pumped by the driver where its length is
known, and read through the chunk scanner where it is not. Nothing is allocated for a
declared length, and no byte is changed.
"""

from __future__ import annotations

from stockade.protocol.events import Pumped
from stockade.protocol.framing import ChunkedScanner, Ending, Framing
from stockade.protocol.line import Line

# Below this, reading a chunk through the buffer costs less than setting a pump up.
PUMP_CHUNK_BYTES = 32768


class BodyRelay:
    """Carries one body.

    Args:
        upstream: True for a request's body, False for a response's.
        limit_bytes: Largest chunked content; a declared length was judged before.

    Attributes:
        is_done: All of it was passed on.
        is_broken: Its sender ended too early, or its receiver is gone: the rest will never come.
        count: Bytes passed on, framing included.
    """

    __slots__ = (
        "_is_pumping",
        "_left",
        "_line",
        "_scanner",
        "_upstream",
        "count",
        "is_broken",
        "is_done",
    )

    def __init__(
        self, line: Line, framing: Framing, *, upstream: bool, limit_bytes: int | None = None
    ) -> None:
        self._line = line
        self._upstream = upstream
        self._is_pumping = False
        self._scanner = ChunkedScanner(limit_bytes) if framing.ending is Ending.CHUNKED else None
        # Bytes that are still to come; None until the sender closes, or says so in chunks.
        self._left = framing.length
        self.is_done = framing.ending is Ending.NONE
        self.is_broken = False
        self.count = 0

    def advance(self) -> None:
        """Pass on what can be passed on now.

        Raises:
            ProtocolViolation: a chunked body that is malformed or too large.
        """
        if self.is_done or self.is_broken or self._is_pumping:
            return
        if self._scanner is not None:
            self._advance_chunks(self._scanner)
        else:
            self._advance_plain()

    def pumped(self, event: Pumped) -> None:
        """A pump of this body ended; `advance` goes on from there."""
        self._is_pumping = False
        self.count += event.count
        if self._scanner is not None:
            self._scanner.skip(event.count)
            is_whole = self._scanner.pending_bytes == 0
        elif self._left is not None:
            self._left -= event.count
            is_whole = self.is_done = self._left == 0
        else:
            is_whole = self.is_done = event.ended
        if not is_whole:
            self.is_broken = True

    def _advance_plain(self) -> None:
        buffer = self._line.client if self._upstream else self._line.upstream
        count = len(buffer) if self._left is None else min(self._left, len(buffer))
        self._pass_on(count)
        if self._left is not None:
            self._left -= count
            self.is_done = self._left == 0
        if self.is_done:
            return
        if self._has_ended():
            self.is_done = self._left is None
            self.is_broken = not self.is_done
            return
        self._pump(self._left)

    def _advance_chunks(self, scanner: ChunkedScanner) -> None:
        buffer = self._line.client if self._upstream else self._line.upstream
        while count := scanner.scan(buffer):
            self._pass_on(count)
        self.is_done = scanner.is_done
        if self.is_done:
            return
        if self._has_ended():
            self.is_broken = True
        elif scanner.pending_bytes >= PUMP_CHUNK_BYTES:
            self._pump(scanner.pending_bytes)

    def _has_ended(self) -> bool:
        return self._line.client_ended if self._upstream else self._line.upstream_ended

    def _pass_on(self, count: int) -> None:
        self.count += count
        if self._upstream:
            self._line.to_upstream(self._line.take_client(count))
        else:
            self._line.to_client(self._line.take_upstream(count))

    def _pump(self, limit_bytes: int | None) -> None:
        self._is_pumping = True
        self._line.pump(upstream=self._upstream, limit_bytes=limit_bytes)
