"""A round for the player's eyes.

Before the answer an event shows what a gateway's operator would see, and nothing that stands only in the
bank: no number, no words for what happens, no technique, cue, key or near-pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import asdict

from stockade.lab.game.background import draw_background
from stockade.lab.game.book import Book
from stockade.lab.game.feedback import present_feedback
from stockade.lab.game.hints import tell_hint
from stockade.lab.game.moment import Moment, elapsed_ms
from stockade.lab.game.rounds import RoundState
from stockade.lab.game.score import HINT_COSTS, streaks
from stockade.lab.game.shown import Event, EventDone, HintsTaken, Round, Summary
from stockade.lab.game.standing import add_up, all_right
from stockade.lab.game.tiers import find_tier
from stockade.lab.pack.scenario import Scenario


def tell_time(ms: int) -> str:
    """Wall clock milliseconds as RFC 3339 in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def present_event(book: Book, state: RoundState, index: int, now: Moment) -> Event:
    """One event of a round, with its feedback if it is answered."""
    step = state.steps[index]
    row = book.find(step.scenario)
    noise = 0 if state.tier is None else find_tier(state.tier).noise
    scenarios = tuple(one.scenario for one in state.steps)
    event = Event(
        index=index,
        entry=str(row.entry),
        phase=str(row.phase),
        identity=str(row.identity),
        attempt=row.attempt,
        answers=tuple(map(str, row.answers)),
        came_from=row.came_from,
        sni=row.sni,
        carries=row.carries,
        stated_reason=row.stated_reason,
        background=draw_background(book, scenarios, index, state.seed, noise),
        hints=present_hints(book, row, step.hints),
        shown_ms=step.given.ms if step.given else elapsed_ms(step.shown, now),
    )
    if step.given is None:
        return event
    return EventDone(**asdict(event), feedback=present_feedback(book, state, index))


def present_hints(book: Book, row: Scenario, taken: int) -> HintsTaken:
    costs = HINT_COSTS[taken:]
    hints = tuple(tell_hint(book, row, number) for number in range(1, taken + 1))
    return HintsTaken(hints, len(costs), costs[0] if costs else None)


def present_summary(book: Book, state: RoundState) -> Summary:
    """The round in one line."""
    standing = add_up(book, state)
    streak, best = streaks(all_right(book, state))
    return Summary(
        id=state.id,
        kind=state.kind,
        tier=state.tier,
        seed=state.seed,
        status=state.status,
        count=len(state.steps),
        answered=sum(step.given is not None for step in state.steps),
        points=standing.points,
        percent=standing.percent if state.status == "done" else None,
        grade=standing.grade,
        streak=streak,
        best_streak=best,
        current=state.current,
        clock_s=state.clock_s,
        bank_digest=state.bank,
        started_at=tell_time(state.started_ms),
        ended_at=None if state.ended_ms is None else tell_time(state.ended_ms),
    )


def present_round(book: Book, state: RoundState, now: Moment) -> Round:
    """The whole round: each answered event with its feedback, then the one whose turn it is."""
    seen: Sequence[int] = [
        index for index, step in enumerate(state.steps) if step.given or index == state.current
    ]
    events = tuple(present_event(book, state, index, now) for index in seen)
    return Round(**asdict(present_summary(book, state)), events=events)
