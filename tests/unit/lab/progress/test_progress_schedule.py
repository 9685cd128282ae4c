"""When an event comes again: by FSRS, with chance switched off and time handed in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from doubles.lab_game import START, at, bank
from stockade.lab.game.score import Right
from stockade.lab.progress.schedule import Recall, plan, rate
from stockade.lab.progress.store import Store, open_store

NOW = START.wall_ms
MINUTE, DAY = 60_000, 86_400_000
ALL_RIGHT = Right(True, True, True)


@pytest.mark.parametrize(
    ("right", "hints", "recall"),
    [
        (ALL_RIGHT, 0, Recall.GOOD),
        (ALL_RIGHT, 1, Recall.HARD),
        (Right(True, False, True), 0, Recall.HARD),
        (Right(True, True, False), 0, Recall.HARD),
        (Right("half", True, True), 0, Recall.HARD),
        (Right(False, True, True), 0, Recall.AGAIN),
        (Right(False, False, False), 3, Recall.AGAIN),
    ],
)
def test_how_an_answer_is_rated(right: Right, hints: int, recall: Recall) -> None:
    assert rate(right, hints) is recall


def test_the_numbers_are_those_of_the_package() -> None:
    from fsrs import Rating

    assert {one.name.title(): int(one) for one in Recall}.items() <= {r.name: int(r) for r in Rating}.items()


def test_a_wrong_call_comes_again_in_ten_minutes_and_a_right_one_in_days() -> None:
    missed = plan(None, Recall.AGAIN, NOW)
    assert missed.due_ms == NOW + 10 * MINUTE
    assert plan(missed.card, Recall.GOOD, missed.due_ms).due_ms >= missed.due_ms + DAY
    assert plan(None, Recall.HARD, NOW).due_ms >= NOW + DAY
    first = plan(None, Recall.GOOD, NOW)
    assert first.due_ms >= NOW + 2 * DAY
    forgotten = plan(first.card, Recall.AGAIN, first.due_ms)
    assert forgotten.due_ms == first.due_ms + 10 * MINUTE
    assert plan(forgotten.card, Recall.HARD, forgotten.due_ms).due_ms >= forgotten.due_ms + DAY
    second = plan(first.card, Recall.GOOD, first.due_ms)
    assert second.due_ms >= first.due_ms + DAY
    third = plan(second.card, Recall.GOOD, second.due_ms)
    assert third.due_ms - second.due_ms > second.due_ms - first.due_ms


def test_the_same_answers_give_the_same_plan() -> None:
    """The package adds chance by default, which would part two machines that play the same."""

    def history() -> str:
        card, now = None, NOW
        for recall in (Recall.GOOD, Recall.GOOD, Recall.GOOD, Recall.HARD, Recall.GOOD, Recall.GOOD):
            planned = plan(card, recall, now)
            card, now = planned.card, planned.due_ms
        return f"{card} {now}"

    assert len({history() for _ in range(20)}) == 1


def test_the_time_of_the_machine_plays_no_part() -> None:
    planned = plan(None, Recall.GOOD, NOW)
    card = json.loads(planned.card)
    assert datetime.fromisoformat(card["last_review"]) == datetime.fromtimestamp(NOW / 1000, UTC)
    assert datetime.fromisoformat(card["due"]) - datetime.fromisoformat(card["last_review"]) == timedelta(
        days=2
    )


def test_a_clock_set_back_counts_as_the_time_of_the_last_answer() -> None:
    first = plan(None, Recall.GOOD, NOW)
    back = plan(first.card, Recall.GOOD, NOW - 30 * DAY)
    assert back == plan(first.card, Recall.GOOD, NOW)


@pytest.fixture
def store() -> Store:
    return open_store(None, bank().pack)


def test_answers_of_rounds_feed_the_drill(store: Store) -> None:
    me = store.people.enter("you", START).id
    number = store.play.begin_round(me, 1, "feed", START).id
    steps = store.play.state(me, number).steps
    missed = []
    for index, step in enumerate(steps):
        key = store.book.find(step.scenario).key
        words = (key.verdict.word, str(key.risk), str(key.control))
        if index in (2, 5):
            missed.append(step.scenario)
            words = ("allow" if words[0] == "deny" else "deny", *words[1:])
        store.play.answer(me, number, index, words, at(index))
    assert store.review.due_count(me, at(100)) == 0
    soon, in_days = at(10 * MINUTE + 100), at(4 * DAY)
    assert store.review.known(me, soon).due == tuple(missed)
    assert store.review.known(me, soon).missed == tuple(reversed(missed))
    assert store.review.due_count(me, at(12 * 60 * MINUTE)) == 2  # what was right is not due the same day
    assert store.review.due_count(me, in_days) == 9
    drill = store.play.begin_drill(me, "due", soon)
    assert [step.scenario for step in store.play.state(me, drill.id).steps][:2] == missed
    drill = store.play.begin_drill(me, "missed", soon)
    assert drill.count == 2
    cards = {card.scenario: card for card in store.review.progress(me, soon).cards}
    assert [card.is_due for card in cards.values()].count(True) == 2
    assert (cards[missed[0]].seen, cards[missed[0]].missed) == (1, 1)


def test_what_was_mended_is_missed_no_longer(store: Store) -> None:
    me = store.people.enter("you", START).id
    number = store.play.begin_round(me, 1, "mend", START).id
    first = store.play.state(me, number).steps[0].scenario
    key = store.book.find(first).key
    store.play.answer(
        me, number, 0, ("deny" if key.verdict else "allow", str(key.risk), str(key.control)), START
    )
    assert store.review.known(me, START).missed == (first,)
    drill = store.play.begin_drill(me, "missed", at(MINUTE * 2))
    store.play.answer(me, drill.id, 0, (key.verdict.word, str(key.risk), str(key.control)), at(MINUTE * 2))
    assert store.review.known(me, START).missed == ()
    assert [one.missed for one in store.review.progress(me, START).most_missed] == [1]
