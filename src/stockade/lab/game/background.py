"""Other traffic of the same executor, beside an event: noise that was decided already.

It is drawn from rows of the same phase and identity; never with a line that the round asks about, in
whatever phase, so that no answer stands beside its question. The verdicts are the engine's.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from stockade.lab.game.book import Book
from stockade.lab.game.dice import Dice
from stockade.lab.game.draw import are_near
from stockade.lab.pack.scenario import Scenario

_SHOWN = 160  # characters of an attempt; an event's own line is never cut
_NINE_O_CLOCK_MS = 9 * 3600 * 1000
_EVENT_MS = 120_000


class Background(Struct, frozen=True):
    """A line of the log beside an event; its time is scenery, and only its order means something."""

    time: str
    text: str
    verdict: str
    shown: str
    reason: str
    risk: str
    place: str


@lru_cache(maxsize=512)  # a page asks for a round again and again, and what it asks for never changes
def draw_background(
    book: Book, round_scenarios: tuple[str, ...], index: int, seed: str, count: int
) -> tuple[Background, ...]:
    """`count` lines for one event of a round, in the order of their times."""
    event = book.find(round_scenarios[index])
    dice = Dice("background", seed, str(index), event.id, book.pack.digest)
    asked = {book.find(number).attempt for number in round_scenarios}
    rows = _choose(book, event, asked, dice, count)
    time = _NINE_O_CLOCK_MS + index * _EVENT_MS + dice.below(1000)
    lines = []
    for row in rows:
        time += 200 + dice.below(_EVENT_MS // (len(rows) + 1) - 200)
        lines.append(_line(book, row, time))
    return tuple(lines)


def _choose(book: Book, event: Scenario, asked: Collection[str], dice: Dice, count: int) -> list[Scenario]:
    """First rows of the same phase and identity; if they are too few, others as they would be judged here."""
    others = [
        row
        for row in book.pack.scenarios
        if row.attempt not in asked and row.is_seen_by_the_line and not are_near(row, event)
    ]
    here = (event.phase, event.identity)
    same = dice.sample([row for row in others if (row.phase, row.identity) == here], count)
    if len(same) < count:
        rest = [row for row in others if (row.phase, row.identity) != here]
        moved = dice.sample(rest, count - len(same))
        same += [replace(row, phase=event.phase, identity=event.identity) for row in moved]
    return dice.shuffle(same)


def _line(book: Book, row: Scenario, time_ms: int) -> Background:
    decision = book.caller.decide(row)
    text = row.attempt if len(row.attempt) <= _SHOWN else row.attempt[: _SHOWN - 1] + "…"
    return Background(
        _clock(time_ms),
        text,
        decision.verdict.word,
        decision.verdict.shown,
        str(decision.reason),
        str(decision.risk),
        str(decision.place),
    )


def _clock(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"
