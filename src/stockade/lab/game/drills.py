"""What a drill holds: up to ten events that a learner needs, in an order that follows from a seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, get_args

from stockade.errors import UserError
from stockade.lab.game.book import Book
from stockade.lab.game.dice import Dice
from stockade.lab.game.draw import is_playable, line_of
from stockade.lab.game.rounds import Conflict

DrillKind = Literal["due", "near-pairs", "missed"]
DRILL_KINDS: tuple[DrillKind, ...] = get_args(DrillKind)
LENGTH = 10


def compose_drill(
    book: Book,
    kind: str,
    seed: str,
    *,
    due: Sequence[str],
    missed: Sequence[str],
    seen: Iterable[str],
    waiting: Collection[str] = (),
) -> tuple[str, ...]:
    """The scenarios of a drill.

    Args:
        due: What the schedule wants, the longest due first.
        missed: What was not all right the last time.
        seen: Everything that was ever answered.
        waiting: What an open round still asks for: a drill would tell its key, or that of a near-pair.

    Raises:
        UserError: There is no such kind.
        Conflict: There is nothing to drill.
    """
    if kind == "due":
        chosen = [*due, *missed, *_new(book, seed, frozenset(seen))]
    elif kind == "missed":
        chosen = list(missed)
    elif kind == "near-pairs":
        pairs = _pairs(book, seed)
        chosen = [
            row for pair in pairs if not any(_tells(book, row, waiting) for row in pair) for row in pair
        ]
    else:
        raise UserError("no-such-drill", f"a drill is one of {', '.join(DRILL_KINDS)}")
    known = [row for row in dict.fromkeys(chosen) if book.knows(row) and is_playable(book.find(row))]
    playable = [row for row in known if not _tells(book, row, waiting)]
    if not playable:
        raise Conflict("nothing-to-drill", "there is nothing of this kind to drill yet", "play a round first")
    return tuple(playable[:LENGTH])


def _tells(book: Book, row: str, waiting: Collection[str]) -> bool:
    """After its answer, the key of one of these would be known."""
    return row in waiting or book.find(row).near in waiting


def _new(book: Book, seed: str, seen: frozenset[str]) -> list[str]:
    """What was never answered, the easier tiers first."""
    fresh = [row for row in book.pack.scenarios if row.id not in seen]
    return [row.id for row in sorted(Dice("new", seed).shuffle(fresh), key=lambda row: row.tier)]


def _pairs(book: Book, seed: str) -> list[tuple[str, str]]:
    """Pairs that look alike and have another answer, each event in one of them only."""
    dice = Dice("pairs", seed, book.pack.digest)
    used: set[str] = set()
    pairs = []
    for row in dice.shuffle(book.pack.scenarios):
        near = book.near(row)
        if near is None or {row.id, near.id} & used or row.key == near.key or line_of(row) == line_of(near):
            continue
        if is_playable(row) and is_playable(near):
            used |= {row.id, near.id}
            one, other = dice.shuffle([row, near])
            pairs.append((one.id, other.id))
    return pairs
