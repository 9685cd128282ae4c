"""When a learner sees an event again: FSRS, with its chance switched off and the time as an argument."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from stockade.lab.game.score import Right

if TYPE_CHECKING:
    from fsrs import Scheduler

_SOON = (timedelta(minutes=10),)


class Recall(IntEnum):
    """How well an event was known; the numbers are those of `fsrs.Rating`."""

    AGAIN = 1
    HARD = 2
    GOOD = 3


class Planned(Struct, frozen=True):
    """A card as it is kept, and when it is due."""

    card: str
    due_ms: int


def rate(right: Right, hints: int) -> Recall:
    """A wrong decision begins anew; a wrong reason, the wrong door or a hint is hard; else good."""
    if right.decision is False:
        return Recall.AGAIN
    return Recall.GOOD if right.is_all and not hints else Recall.HARD


def plan(card: str | None, recall: Recall, now_ms: int) -> Planned:
    """What follows from one answer.

    Args:
        card: As kept before; None for an event that was never answered.
        now_ms: Wall clock. One that was set back counts as the time of the last answer.
    """
    from fsrs import Card, Rating

    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    known = Card(card_id=0, due=now) if card is None else Card.from_json(card)
    if known.last_review is not None:
        now = max(now, known.last_review)
    planned, _ = _scheduler(recall).review_card(known, Rating(recall), now)
    return Planned(json.dumps(planned.to_dict(), sort_keys=True), int(planned.due.timestamp() * 1000))


def _scheduler(recall: Recall) -> Scheduler:
    """FSRS with its published parameters; without fuzz the same answers give the same plan.

    What was called wrong comes again soon; what was called right is due in days, from the first time on.
    """
    from fsrs import Scheduler

    steps = _SOON if recall is Recall.AGAIN else ()
    return Scheduler(learning_steps=steps, relearning_steps=steps, enable_fuzzing=False)
