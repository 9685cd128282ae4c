"""Find what is filed under a host name, at a cost that does not grow with the number of entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from stockade.policy.model import HostPattern

T = TypeVar("T")


class NameIndex(Generic[T]):
    """Values filed under exact names, under ``*.name`` and under ``*``.

    A look-up costs one dictionary access for each label of the name asked for.
    """

    def __init__(self) -> None:
        self._exact: dict[str, list[T]] = {}
        self._below: dict[str, list[T]] = {}

    def add(self, pattern: HostPattern, value: T) -> None:
        shelf = self._below if pattern.is_wildcard else self._exact
        shelf.setdefault(pattern.name, []).append(value)

    def find(self, name: str) -> list[T]:
        """All values whose pattern matches, the most specific pattern first."""
        found = list(self._exact.get(name, ()))
        for parent in parents_of(name):
            found += self._below.get(parent, ())
        return found + self._below.get("", [])

    def has_exact(self, name: str) -> bool:
        return name in self._exact

    def has_below(self, name: str) -> bool:
        """True if something is filed under ``*.name``."""
        return name in self._below

    def names(self) -> Iterator[str]:
        """Every name that something is filed under, exact or as the root of a wildcard."""
        yield from self._exact
        yield from (name for name in self._below if name)


def parents_of(name: str) -> Iterator[str]:
    """``b.c`` and ``c`` for ``a.b.c``."""
    dot = name.find(".")
    while dot >= 0:
        yield name[dot + 1 :]
        dot = name.find(".", dot + 1)
