"""A point in time as the game takes it: an argument, never asked for here.

Within one start of the server the monotonic clock counts, which nobody can set. Across a restart only the
wall clock is left, and a wall clock can be set back: then the time cannot be told, and there is no bonus.
"""

from __future__ import annotations

from msgspec import Struct


class Moment(Struct, frozen=True):
    """Now.

    Attributes:
        wall_ms: Milliseconds since 1970, UTC.
        mono_ms: Milliseconds on a clock that only goes forward; counts from anywhere.
        start: Which start of the server `mono_ms` belongs to.
    """

    wall_ms: int
    mono_ms: int
    start: str


def elapsed_ms(since: Moment | None, now: Moment) -> int | None:
    """Milliseconds between two moments; None if that cannot be told."""
    if since is None:
        return None
    if since.start == now.start:
        return max(0, now.mono_ms - since.mono_ms)
    passed = now.wall_ms - since.wall_ms
    return passed if passed >= 0 else None
