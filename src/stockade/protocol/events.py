"""What can happen to one connection: the inputs of `protocol.flow.Flow`. Pure values."""

from __future__ import annotations

from msgspec import Struct

from stockade.net.address import IPAddress


class ClientData(Struct, frozen=True):
    """Bytes from the worker."""

    data: bytes


class ClientEnded(Struct, frozen=True):
    """The worker closed its sending side (FIN), or the connection died (`reset`)."""

    reset: bool = False


class UpstreamData(Struct, frozen=True):
    """Bytes from the destination."""

    data: bytes


class UpstreamEnded(Struct, frozen=True):
    """The destination closed its sending side, or the connection died (`reset`)."""

    reset: bool = False


class Recorded(Struct, frozen=True):
    """The decision of the last `Record` effect is durable under this sequence number."""

    seq: int


class Resolved(Struct, frozen=True):
    """All answers for the name of the last `Resolve` effect; empty means that there are none."""

    addresses: tuple[IPAddress, ...]
    error: str | None = None


class Dialed(Struct, frozen=True):
    """The last `Dial` effect reached this address."""

    address: IPAddress


class DialFailed(Struct, frozen=True):
    """No address of the permit could be reached; `error` is a short word: ``refused``, ``timed-out`` …"""

    error: str


class Pumped(Struct, frozen=True):
    """A `Pump` effect ended: this many bytes went over, and `ended` if the source closed first.

    Fewer bytes than asked for without `ended` mean that one side broke.
    """

    upstream: bool
    count: int
    ended: bool = False


class TimedOut(Struct, frozen=True):
    """The deadline of the last `Deadline` effect has passed."""


class PolicyReplaced(Struct, frozen=True):
    """A new policy or phase is in force; the flow judges itself again."""


class HoldAnswered(Struct, frozen=True):
    """A person answered a `Hold` effect; `by` is their name."""

    allowed: bool
    by: str


class UploadUsedUp(Struct, frozen=True):
    """The run may send no more (`limits: upload`): the connection is cut after this.

    Of what the last `ToUpstream` gave, these bytes did not leave.
    """

    unsent_bytes: int = 0


Event = (
    ClientData
    | ClientEnded
    | UpstreamData
    | UpstreamEnded
    | Recorded
    | Resolved
    | Dialed
    | DialFailed
    | Pumped
    | TimedOut
    | PolicyReplaced
    | HoldAnswered
    | UploadUsedUp
)
