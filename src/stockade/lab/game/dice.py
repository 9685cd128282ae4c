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
        """A new list in another order (Fisher and Yates)."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed
