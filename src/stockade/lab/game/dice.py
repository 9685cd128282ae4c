"""Chance that is the same on every machine and in every version of Python.

`random` promises that for `random()` alone, and not for `shuffle`, `sample` or `choice`. So the numbers
are SHA-256 over the words that a draw depends on, and a counter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Throws that depend on the words alone, and on how often it was thrown before."""

    def __init__(self, *words: str) -> None:
        self._words = "\x1f".join(words).encode()
        self._thrown = 0

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1; of 256 bits, so that the remainder's slant is nothing."""
        self._thrown += 1
        digest = hashlib.sha256(self._words + b"\x1e%d" % self._thrown).digest()
        return int.from_bytes(digest, "big") % limit

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def shuffle(self, items: Sequence[T]) -> list[T]:
        """A new list in another order."""
        return self.sample(items, len(items))

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` of the items in an order of their own, or all if there are fewer (Fisher and Yates)."""
        mixed = list(items)
        taken = min(count, len(mixed))
        for place in range(taken):
            other = place + self.below(len(mixed) - place)
            mixed[place], mixed[other] = mixed[other], mixed[place]
        return mixed[:taken]
