"""The game's promises, for any seed, tier and answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.lab_game import (
    START,
    allow_all,
    bank,
    begin_round,
    deny_all,
    perfect,
    play,
    proxy_all,
    rule_engine,
)
from stockade.lab.game.feedback import present_feedback
from stockade.lab.game.rounds import give_answer
from stockade.lab.game.score import Answer, hints_cost, percent, score
from stockade.lab.game.standing import add_up
from stockade.lab.pack.scenario import Key
from stockade.vocabulary import Control, PlaceClass, Risk, Verdict

SEEDS = st.from_regex(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,31}", fullmatch=True)
TIERS = st.sampled_from([1, 2, 3, 4])
ANSWERS = st.builds(Answer, st.sampled_from(Verdict), st.sampled_from(Risk), st.sampled_from(Control))
KEYS = st.builds(
    Key,
    st.sampled_from(Verdict),
    st.sampled_from(Risk),
    st.sampled_from(Control),
    st.sampled_from(PlaceClass),
)


@settings(max_examples=60)
@given(SEEDS, TIERS)
def test_who_always_says_the_same_gets_a_d_even_with_every_reason_right(seed: str, tier: int) -> None:
    for player in (allow_all, deny_all, proxy_all):
        standing = add_up(bank(), play(bank(), begin_round(bank(), seed, tier), player, ms=0))
        assert standing.grade == "D", player


@settings(max_examples=60)
@given(SEEDS, TIERS)
def test_who_knows_all_gets_an_s(seed: str, tier: int) -> None:
    standing = add_up(bank(), play(bank(), begin_round(bank(), seed, tier), perfect))
    assert (standing.grade, standing.leaks, standing.blocks, standing.percent) == ("S", (), (), 100.0)


@settings(max_examples=60)
@given(SEEDS, TIERS)
def test_an_agent_that_reads_the_line_by_the_card_makes_no_wrong_call(seed: str, tier: int) -> None:
    """The engine as a player; it may miss the control where how an attempt came about is the point.

    It cannot look inside, so where that decides it may be wrong as well.
    """
    state = play(bank(), begin_round(bank(), seed, tier), rule_engine)
    standing = add_up(bank(), state)
    inside = {step.scenario for step in state.steps if not bank().find(step.scenario).is_seen_by_the_line}
    assert {state.steps[index].scenario for index in standing.leaks} <= inside
    assert standing.blocks == ()
    assert inside or standing.grade == "S"
    for index, step in enumerate(state.steps):
        if step.scenario in inside:
            continue
        right = present_feedback(bank(), state, index).right
        assert right.decision is True
        assert right.risk
        assert right.control or not bank().find(step.scenario).is_control_in_the_line


@given(
    KEYS, ANSWERS, st.none() | st.integers(-1000, 10**7), st.none() | st.integers(1, 1000), st.integers(0, 3)
)
def test_points_stay_within_their_bounds(
    key: Key, answer: Answer, ms: int | None, clock_s: int | None, hints: int
) -> None:
    points = score(key, answer, ms=ms, clock_s=clock_s, hints=hints)
    assert points.total == points.decision + points.risk + points.control + points.bonus - points.hints
    assert -70 <= points.total <= 110
    assert 0 <= points.bonus <= 10
    assert points.hints == hints_cost(hints)
    if points.bonus:
        assert (points.decision, points.risk, points.control, points.hints) == (50, 20, 30, 0)


@given(KEYS, ANSWERS, st.integers(0, 3))
def test_a_hint_never_pays_and_time_never_costs(key: Key, answer: Answer, hints: int) -> None:
    def total(ms: int, taken: int) -> int:
        return score(key, answer, ms=ms, clock_s=60, hints=taken).total

    assert total(0, hints) <= total(0, 0)
    assert total(60_000, hints) <= total(59_000, hints) <= total(0, hints)


@given(st.integers(-1000, 2000), st.integers(1, 10))
def test_a_percent_has_one_decimal_and_lies_between_0_and_100(points: int, count: int) -> None:
    share = percent(points, count)
    assert 0 <= share <= 100
    assert round(share, 1) == share
    assert percent(points + 1, count) >= share


@settings(max_examples=30)
@given(st.lists(ANSWERS, min_size=9, max_size=9), st.lists(ANSWERS, min_size=9, max_size=9))
def test_no_second_answer_changes_anything(first: list[Answer], second: list[Answer]) -> None:
    from stockade.lab.game.rounds import Conflict

    state = begin_round(bank(), "twice", 2)
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        state, _ = give_answer(state, index, one, START)
        before = add_up(bank(), state).points
        if one == other:
            assert give_answer(state, index, other, START) == (state, True)
        else:
            with pytest.raises(Conflict, match="already-answered"):
                give_answer(state, index, other, START)
        assert add_up(bank(), state).points == before
