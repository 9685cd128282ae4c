"""Slowing down requests that come faster than a rule's `rate`: later, not refused.

A token bucket for each rule (one second's worth of burst). A request that finds no
token waits for its own; the queue is bounded by the room's connections, since a
connection has at most one request under way.
"""

from __future__ import annotations

from collections.abc import Callable

from stockade.reactor import Reactor

Recorded = Callable[[int], None]


class Pace:
    """The buckets of one room."""

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._next_free: dict[str, float] = {}

    def slow(self, rule: str, rate_per_s: float, recorded: Recorded) -> Recorded:
        """Give a callback that calls `recorded` when the rule's rate permits it."""
        now = self._reactor.now()
        delay_s = self.spend(rule, rate_per_s, now)
        if delay_s <= 0:
            return recorded
        return lambda seq: self._later(now + delay_s, recorded, seq)

    def spend(self, rule: str, rate_per_s: float, now: float) -> float:
        """Take a token; returns how many seconds to wait for it."""
        # The bucket is full when its next free moment lies one second back.
        free = max(self._next_free.get(rule, 0.0), now - 1.0 + 1.0 / rate_per_s)
        self._next_free[rule] = free + 1.0 / rate_per_s
        return round(free - now, 6)  # microseconds: sums of 1/rate are not exact

    def _later(self, due: float, recorded: Recorded, seq: int) -> None:
        self._reactor.call_at(due, lambda: recorded(seq))
