"""What a connection asks of the world: the outputs of `protocol.flow.Flow`. Pure values.

The driver performs effects in order. A `Dial` comes only after the `Recorded` event
of the decision that permits it: write first, act second, by construction.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.decision.request import Attempt, Decision, Permit
from stockade.net.host import Host


class Record(Struct, frozen=True):
    """Write this decision down; answered by `Recorded` once it is durable."""

    attempt: Attempt
    decision: Decision


class RecordOutcome(Struct, frozen=True):
    """Say what became of the attempt with this sequence number; nothing waits for it.

    `outcome` is a short word (``closed``, ``refused``, ``dial-failed``, ``cut`` …).
    """

    of: int
    outcome: str
    detail: str | None = None
    sent_bytes: int = 0
    received_bytes: int = 0
    status: int | None = None


class Resolve(Struct, frozen=True):
    """Look the permitted name up; answered by `Resolved`."""

    host: Host


class Dial(Struct, frozen=True):
    """Connect to an address of the permit; answered by `Dialed` or `DialFailed`."""

    permit: Permit


class ToClient(Struct, frozen=True):
    """Send these bytes to the worker."""

    data: bytes


class ToUpstream(Struct, frozen=True):
    """Send these bytes to the destination."""

    data: bytes


class Pump(Struct, frozen=True):
    """Copy bytes without looking at them, after all sent before; answered by `Pumped`.

    Args:
        upstream: True for worker → destination, False for the other way.
        limit_bytes: Stop after this many bytes; None copies until the source ends.
    """

    upstream: bool
    limit_bytes: int | None = None


class Tunnel(Struct, frozen=True):
    """From now on copy both ways, passing on half-closes, until both sides have ended.

    Answered by two `Pumped` events, one for each way, in either order.
    """


class EndUpstream(Struct, frozen=True):
    """Pass the worker's end of sending on to the destination (half close)."""


class CloseUpstream(Struct, frozen=True):
    """Drop the connection to the destination; the worker's stays."""


class Close(Struct, frozen=True):
    """Close everything after what was sent has drained; `reset` sends a TCP reset instead."""

    reset: bool = False


class Deadline(Struct, frozen=True):
    """Send `TimedOut` at this time of the monotonic clock; None clears the one before."""

    at: float | None


class Redirected(Struct, frozen=True):
    """A permitted answer named this place as the next hop."""

    host: Host
    port: int


class Hold(Struct, frozen=True):
    """Ask a person about this recorded decision; answered by `HoldAnswered`, or the deadline."""

    attempt: Attempt
    decision: Decision
    seconds: float


Effect = (
    Record
    | RecordOutcome
    | Resolve
    | Dial
    | ToClient
    | ToUpstream
    | Pump
    | Tunnel
    | EndUpstream
    | CloseUpstream
    | Close
    | Deadline
    | Redirected
    | Hold
)
