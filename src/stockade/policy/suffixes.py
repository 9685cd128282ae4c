"""Which names are suffixes under which strangers live side by side.

``*.com`` and ``*.co.uk`` cover everybody; ``*.github.io`` covers everybody who has a page
there. The data is a snapshot of the Public Suffix List (see the head of the data file);
it is read on the first wildcard and searched as text, which takes a millisecond, where
parsing it would take more than the rest of the start.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

DATA = Path(__file__).parent / "data" / "public_suffixes.txt"

SuffixKind = Literal["public", "shared", "zone"]


class _Lists(Struct, frozen=True):
    public: str
    shared: str


@cache
def _load_lists() -> _Lists:
    text = DATA.read_text(encoding="ascii")
    public, _, shared = text.partition("\nshared:\n")
    return _Lists(public + "\n", "\n" + shared)


def classify_suffix(name: str) -> SuffixKind | None:
    """Say whether a canonical name is a suffix, by the rules of publicsuffix.org.

    Returns:
        ``public`` for registries' suffixes, ``shared`` for those of a service that gives
        names to anybody, ``zone`` for a single label that no list has (``test``,
        ``internal``), None for a name that belongs to somebody.
    """
    lists = _load_lists()
    if _has_rule(lists.public, name):
        return "public"
    if _has_rule(lists.shared, name):
        return "shared"
    return None if "." in name else "zone"


def shared_suffix_below(name: str) -> str | None:
    """A listed suffix below the name (``s3.amazonaws.com`` for ``amazonaws.com``), or None."""
    shared = _load_lists().shared
    end = shared.find(f".{name}\n")
    if end < 0:
        return None
    start = shared.rindex("\n", 0, end) + 1
    return shared[start : end + len(name) + 1].removeprefix("*.")


def _has_rule(rules: str, name: str) -> bool:
    if f"\n!{name}\n" in rules:
        return False
    if f"\n{name}\n" in rules or f"\n*.{name}\n" in rules:  # *.x makes x the suffix of suffixes
        return True
    parent = name.partition(".")[2]
    return bool(parent) and f"\n*.{parent}\n" in rules
