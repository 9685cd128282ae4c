"""What is said about an event after its answer."""

from __future__ import annotations

from functools import lru_cache

from stockade.lab.game.book import Book
from stockade.lab.game.deciding import find_deciding
from stockade.lab.game.difference import tell_difference
from stockade.lab.game.engine_words import tell_engine
from stockade.lab.game.rounds import Given, RoundState
from stockade.lab.game.score import is_block, is_leak, judge, streaks
from stockade.lab.game.shown import AnswerShown, EngineShown, Feedback, KeyShown, NearShown
from stockade.lab.game.standing import all_right, points_of
from stockade.lab.pack.scenario import Live, Scenario

LIVE_NOTES = {
    Live.YES: "",
    Live.CONTENT: "To decide this for real the gateway has to open TLS, which this version does not: "
    "a real try is refused before the request is read.",
    Live.NO: "Nothing leaves here, so there is nothing to try for real.",
}
NOT_IN_THE_LINE = "The line alone does not show what decides here; the key rests on a look inside."


def present_feedback(book: Book, state: RoundState, index: int) -> Feedback:
    """All about an answered event."""
    step = state.steps[index]
    row, given, points = book.find(step.scenario), step.given, points_of(book, state, index)
    assert given is not None
    assert points is not None
    decision = book.decide(row)
    return Feedback(
        index=index,
        scenario=row.id,
        answer=_show_answer(given, step.hints),
        key=_show_key(row),
        right=judge(row.key, given.answer),
        points=points,
        is_leak=is_leak(row.key, given.answer),
        is_block=is_block(row.key, given.answer),
        event=row.event,
        technique=row.technique,
        cue=row.cue,
        why=row.why,
        source=row.source,
        rests_on=book.rests_on(row),
        engine=EngineShown(
            decision.verdict.word,
            str(decision.risk),
            str(decision.control),
            str(decision.reason),
            tell_engine(book, row, given.answer),
        ),
        near=_show_near_unless_ahead(book, state, row),
        live=str(row.live),
        live_note=LIVE_NOTES[row.live]
        if row.is_seen_by_the_line
        else f"{NOT_IN_THE_LINE} {LIVE_NOTES[row.live]}",
        streak=streaks(all_right(book, state)[: index + 1])[0],
    )


def _show_answer(given: Given, hints: int) -> AnswerShown:
    answer = given.answer
    return AnswerShown(answer.decision.word, str(answer.risk), str(answer.control), given.ms, hints)


def _show_key(row: Scenario) -> KeyShown:
    key = row.key
    return KeyShown(key.verdict.word, str(key.risk), str(key.control), str(key.place))


def _show_near_unless_ahead(book: Book, state: RoundState, row: Scenario) -> NearShown | None:
    """The near-pair with its key, unless this very round or drill still asks for that key."""
    near = book.near(row)
    ahead = {step.scenario for step in state.steps if step.given is None} if state.status == "open" else ()
    return None if near is None or near.id in ahead else _show_near(book, row.id)


@lru_cache(maxsize=1024)  # the same for everybody, and the dearest part of an answer
def _show_near(book: Book, number: str) -> NearShown | None:
    row = book.find(number)
    near = book.near(row)
    if near is None:
        return None
    deciding = find_deciding(book, row)
    return NearShown(
        near.id,
        near.attempt,
        tuple(map(str, near.answers)),
        str(near.phase),
        str(near.identity),
        _show_key(near),
        tell_difference(row, near, deciding.call, deciding.control),
    )
