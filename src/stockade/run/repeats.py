"""Equal refusals: the first few are records of their own, the others are counted.

A program that repeats what it may not do would fill the ledger's disk, at a thousand records a
second. So nothing is lost but the hour of each: what was counted stands in one last record with
its number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from stockade.decision.request import Attempt, Decision

EQUAL_RECORDED = 5
KINDS_KEPT = 500


class Refused(Struct, frozen=True):
    """A refusal as the journal takes it; `fields` are those that the attempt does not know."""

    attempt: Attempt
    decision: Decision
    fields: dict[str, Any]
    is_common: bool = False
    permit: str = ""


class _Count(Struct):
    """How often it happened: with a record each time, and beyond that."""

    recorded: int = 0
    left_out: int = 0
    last: Refused | None = None


class Repeats:
    """Counts what is equal, in one run."""

    def __init__(self) -> None:
        self._counts: dict[tuple[object, ...], _Count] = {}

    def is_recorded(self, refused: Refused, *kind: object) -> bool:
        """Whether this one gets a record of its own; otherwise it is counted.

        Args:
            kind: What makes two of them equal. Those beyond `KINDS_KEPT` kinds are one kind.
        """
        if kind not in self._counts and len(self._counts) >= KINDS_KEPT:
            kind = ()
        count = self._counts.setdefault(kind, _Count())
        if count.recorded < EQUAL_RECORDED:
            count.recorded += 1
            return True
        count.left_out += 1
        count.last = refused
        return False

    def write(self, append: Callable[[Refused, int], None]) -> None:
        """Hand over the last one of each kind that was counted, and how many of it were."""
        for count in self._counts.values():
            if count.last is not None:
                append(count.last, count.left_out)
