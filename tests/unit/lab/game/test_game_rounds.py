"""The states of a round: in order, once, and with a clock that nobody can set to advantage."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from doubles.lab_game import START, at, begin_round, make_pack, perfect, play
from stockade.lab.game.book import Book
from stockade.lab.game.moment import Moment, elapsed_ms
from stockade.lab.game.rounds import Conflict, RoundState, give_answer, leave, show, take_hint
from stockade.lab.game.score import Answer
from stockade.lab.game.standing import points_of
from stockade.vocabulary import Control, Risk, Verdict

ANSWER = Answer(Verdict.DENY, Risk.EXFILTRATION, Control.DEFAULT_DENY)
OTHER = Answer(Verdict.ALLOW, Risk.BENIGN, Control.ALLOWLIST_EXACT)
BOOK = Book(make_pack())


@pytest.fixture
def fresh() -> RoundState:
    return begin_round(BOOK, tier=2)


def refused(code: str) -> AbstractContextManager[object]:
    return pytest.raises(Conflict, match=f"^{code}:")


def test_events_are_answered_in_order_until_none_is_left(fresh: RoundState) -> None:
    assert (fresh.current, fresh.status, fresh.ended_ms) == (0, "open", None)
    with refused("not-yet"):
        give_answer(fresh, 1, ANSWER, START)
    state = fresh
    for index in range(9):
        assert state.current == index
        state, again = give_answer(state, index, ANSWER, at(index))
        assert not again
    assert (state.current, state.status, state.ended_ms) == (None, "done", at(8).wall_ms)


def test_the_same_answer_again_changes_nothing_and_another_is_refused(fresh: RoundState) -> None:
    state, _ = give_answer(fresh, 0, ANSWER, START)
    assert give_answer(state, 0, ANSWER, at(5000)) == (state, True)
    with refused("already-answered"):
        give_answer(state, 0, OTHER, START)


@pytest.mark.parametrize("index", [-1, 9, 1000])
def test_an_event_that_is_not_there(fresh: RoundState, index: int) -> None:
    with refused("no-such-event"):
        give_answer(fresh, index, ANSWER, START)
    with refused("no-such-event"):
        show(fresh, index, START)


def test_hints_are_three_for_the_current_event_and_for_no_other(fresh: RoundState) -> None:
    state = fresh
    for number in (1, 2, 3):
        state, taken = take_hint(state, 0)
        assert taken == number
    with refused("no-hint-left"):
        take_hint(state, 0)
    with refused("not-yet"):
        take_hint(state, 1)
    state, _ = give_answer(state, 0, ANSWER, START)
    with refused("already-answered"):
        take_hint(state, 0)


def test_a_round_that_was_left_takes_nothing_more(fresh: RoundState) -> None:
    state, _ = give_answer(fresh, 0, ANSWER, START)
    state = leave(state, at(1000))
    assert (state.status, state.current, state.ended_ms) == ("broken-off", None, at(1000).wall_ms)
    assert give_answer(state, 0, ANSWER, START) == (state, True)
    for act in (
        lambda: give_answer(state, 1, ANSWER, START),
        lambda: take_hint(state, 1),
        lambda: show(state, 1, START),
    ):
        with refused("round-over"):
            act()
    assert leave(state, at(9000)) == state


def test_a_finished_round_cannot_be_left() -> None:
    done = play(BOOK, begin_round(BOOK), perfect)
    assert leave(done, at(1)) == done


def test_the_time_runs_from_the_first_showing(fresh: RoundState) -> None:
    state = show(fresh, 0, at(0))
    state = show(state, 0, at(4000))  # a reload
    state, _ = give_answer(state, 0, ANSWER, at(6000))
    given = state.steps[0].given
    assert given is not None
    assert given.ms == 6000
    assert show(state, 0, at(9000)) == state


def test_what_was_never_shown_has_no_time_and_no_bonus(fresh: RoundState) -> None:
    state, _ = give_answer(fresh, 0, perfect(BOOK.find(fresh.steps[0].scenario), BOOK), at(0))
    assert state.steps[0].given is not None
    assert state.steps[0].given.ms is None
    points = points_of(BOOK, state, 0)
    assert points is not None
    assert (points.bonus, points.total) == (0, 100)


def test_elapsed_time_by_the_clock_that_nobody_can_set() -> None:
    shown = Moment(wall_ms=1_000_000, mono_ms=500, start="one")
    set_back = Moment(wall_ms=10, mono_ms=2_500, start="one")
    assert elapsed_ms(shown, set_back) == 2_000
    set_forward = Moment(wall_ms=9_999_999, mono_ms=501, start="one")
    assert elapsed_ms(shown, set_forward) == 1


def test_across_a_restart_the_wall_clock_counts_unless_it_went_back() -> None:
    shown = Moment(wall_ms=1_000_000, mono_ms=900_000, start="one")
    assert elapsed_ms(shown, Moment(1_030_000, 5, "two")) == 30_000
    assert elapsed_ms(shown, Moment(999_999, 5, "two")) is None
    assert elapsed_ms(None, shown) is None


def test_a_clock_set_back_over_a_restart_brings_no_bonus(fresh: RoundState) -> None:
    right = perfect(BOOK.find(fresh.steps[0].scenario), BOOK)
    shown = show(fresh, 0, START)
    back, _ = give_answer(shown, 0, right, at(-3_600_000, start="second start"))
    on, _ = give_answer(shown, 0, right, at(0))
    before, after = points_of(BOOK, on, 0), points_of(BOOK, back, 0)
    assert before is not None
    assert after is not None
    assert (before.bonus, after.bonus) == (10, 0)


def test_a_round_never_ends_before_it_began(fresh: RoundState) -> None:
    assert leave(fresh, at(-5000)).ended_ms == START.wall_ms
