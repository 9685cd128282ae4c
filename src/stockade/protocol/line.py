"""The two sides of one connection, as the scripts of a flow see and use them.

A script is a generator: it looks at the buffers here, adds effects, and yields when it
has to wait; each yield gives it the next event. `Flow` puts what arrives into the
buffers before it wakes the script, so a script asks "is it enough yet?" and never
"which event was that?".
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from msgspec import Struct

from stockade.protocol.effects import (
    Close,
    CloseUpstream,
    Deadline,
    Effect,
    EndUpstream,
    Pump,
    ToClient,
    ToUpstream,
    Tunnel,
)
from stockade.protocol.events import Event, TimedOut

T = TypeVar("T")
E = TypeVar("E")

# A part of a script that ends with a value; a whole script ends with the script that goes on, or None.
Steps: TypeAlias = Generator[None, Event, T]
Script: TypeAlias = Generator[None, Event, "Script | None"]


class FlowLimits(Struct, frozen=True, kw_only=True):
    """What one connection may take, in time and in bytes. Nothing limits an established stream.

    Attributes:
        first_bytes_s: For a whole hello or request head, however slowly it comes.
        peek_s: On a port that no rule names: how long to look for what the client would have said.
        idle_s: Between two requests of a kept connection.
        hold_s: How long a held attempt waits for a person.
        head_bytes: Largest head, and the most that is buffered of either side.
        content_s: For a body that a rule wants to see whole before it goes on.
        drain_bytes: So much body of a refused request is read and dropped to keep the connection.
    """

    first_bytes_s: float = 10.0
    peek_s: float = 1.0
    idle_s: float = 300.0
    hold_s: float = 60.0
    head_bytes: int = 65536
    content_s: float = 60.0
    drain_bytes: int = 65536


class Line:
    """Buffers, state and effects of one connection.

    Attributes:
        client: What the worker has sent and nobody has taken yet; `upstream` likewise.
        client_ended: Its FIN was seen; `upstream_ended` likewise, of the present upstream.
        wants_client: The script can use bytes of the worker now.
        client_limit_bytes: More than a head may be buffered: a body that is looked at as a whole.
        is_connected: There is an upstream.
        is_closed: `Close` was given: nothing follows.
    """

    __slots__ = (
        "_deadline",
        "client",
        "client_ended",
        "client_limit_bytes",
        "effects",
        "is_closed",
        "is_connected",
        "is_pumping_down",
        "is_pumping_up",
        "limits",
        "now",
        "upstream",
        "upstream_ended",
        "wants_client",
    )

    def __init__(self, limits: FlowLimits) -> None:
        self.limits = limits
        self.now = 0.0
        self.client = bytearray()
        self.upstream = bytearray()
        self.effects: list[Effect] = []
        self.client_ended = False
        self.client_limit_bytes = 0
        self.upstream_ended = False
        self.wants_client = False
        self.is_connected = False
        self.is_pumping_up = False
        self.is_pumping_down = False
        self.is_closed = False
        self._deadline: float | None = None

    @property
    def reads_client(self) -> bool:
        return (
            self.wants_client
            and not (self.client_ended or self.is_pumping_up or self.is_closed)
            and len(self.client) < max(self.limits.head_bytes, self.client_limit_bytes)
        )

    @property
    def reads_upstream(self) -> bool:
        return (
            self.is_connected
            and not (self.upstream_ended or self.is_pumping_down or self.is_closed)
            and len(self.upstream) < self.limits.head_bytes
        )

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    # --- bytes -----------------------------------------------------------------------

    def take_client(self, count: int) -> bytes:
        taken = bytes(self.client[:count])
        del self.client[:count]
        return taken

    def take_upstream(self, count: int) -> bytes:
        taken = bytes(self.upstream[:count])
        del self.upstream[:count]
        return taken

    def to_client(self, data: bytes) -> None:
        if data:
            self.effects.append(ToClient(data))

    def to_upstream(self, data: bytes) -> None:
        if data:
            self.effects.append(ToUpstream(data))

    def pump(self, *, upstream: bool, limit_bytes: int | None) -> None:
        if upstream:
            self.is_pumping_up = True
        else:
            self.is_pumping_down = True
        self.effects.append(Pump(upstream, limit_bytes))

    def tunnel(self) -> None:
        """Hand both ways over; what was buffered must have been passed on before."""
        self.is_pumping_up = self.is_pumping_down = True
        # Tunnels live long and are many: give the memory of the buffers back.
        self.client = bytearray()
        self.upstream = bytearray()
        self.effects.append(Tunnel())

    # --- time ------------------------------------------------------------------------

    def set_deadline(self, seconds: float) -> None:
        self._deadline = self.now + seconds
        self.effects.append(Deadline(self._deadline))

    def clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline = None
            self.effects.append(Deadline(None))

    def is_late(self, event: Event) -> bool:
        """True if this event says that the present deadline has passed (not an earlier one)."""
        return type(event) is TimedOut and self._deadline is not None and self.now >= self._deadline

    # --- ends ------------------------------------------------------------------------

    def end_upstream(self) -> None:
        self.effects.append(EndUpstream())

    def drop_upstream(self) -> None:
        """Let the upstream go, with whatever it still had to say."""
        if self.is_connected:
            self.effects.append(CloseUpstream())
        self.is_connected = self.upstream_ended = False
        self.is_pumping_up = self.is_pumping_down = False
        self.upstream = bytearray()

    def close(self, *, reset: bool = False) -> None:
        if not self.is_closed:
            self.clear_deadline()
            self.is_closed = True
            self.effects.append(Close(reset))


def wait_for(kind: type[E]) -> Steps[E]:
    """Wait for one kind of event; what else happens meanwhile is in the buffers."""
    while True:
        event = yield
        if isinstance(event, kind):
            return event
