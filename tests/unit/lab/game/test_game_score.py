"""Points, percent, grade and sensitivity, against values worked out by hand."""

from __future__ import annotations

import pytest

from doubles.lab_game import ALLOW, DENY, PROXY
from stockade.errors import UserError
from stockade.lab.game.grade import grade_round
from stockade.lab.game.score import (
    Answer,
    is_block,
    is_leak,
    judge,
    parse_answer,
    percent,
    score,
    streaks,
)
from stockade.lab.game.sensitivity import measure
from stockade.lab.pack.scenario import Key
from stockade.vocabulary import Control, Risk, Verdict

RIGHT = Answer(Verdict.DENY, Risk.EXFILTRATION, Control.DEFAULT_DENY)


def total(key: Key, answer: Answer, ms: int | None = None, clock_s: int | None = None, hints: int = 0) -> int:
    return score(key, answer, ms=ms, clock_s=clock_s, hints=hints).total


def test_three_right_parts_are_50_30_and_20() -> None:
    points = score(DENY, RIGHT, ms=None, clock_s=None, hints=0)
    assert (points.decision, points.control, points.risk, points.total) == (50, 30, 20, 100)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(Verdict.DENY, Risk.BENIGN, Control.DEFAULT_DENY), 80),  # 50 + 30
        (Answer(Verdict.DENY, Risk.EXFILTRATION, Control.EXEC_DENY), 70),  # 50 + 20
        (Answer(Verdict.ALLOW, Risk.EXFILTRATION, Control.DEFAULT_DENY), 0),  # −50 + 30 + 20
        (Answer(Verdict.PROXY, Risk.BENIGN, Control.EXEC_DENY), -50),  # watched, and let through all the same
    ],
)
def test_a_denied_event(answer: Answer, expected: int) -> None:
    assert total(DENY, answer) == expected
    assert is_leak(DENY, answer) is (answer.decision is not Verdict.DENY)
    assert not is_block(DENY, answer)


@pytest.mark.parametrize(
    ("key", "answer", "expected"),
    [
        (ALLOW, Answer(Verdict.ALLOW, Risk.BENIGN, Control.ALLOWLIST_EXACT), 100),
        (ALLOW, Answer(Verdict.PROXY, Risk.BENIGN, Control.ALLOWLIST_EXACT), 75),  # 25 + 30 + 20
        (PROXY, Answer(Verdict.ALLOW, Risk.BENIGN, Control.LOGGING_PROXY), 75),
        (PROXY, Answer(Verdict.DENY, Risk.BENIGN, Control.LOGGING_PROXY), 25),  # −25 + 30 + 20
        (PROXY, Answer(Verdict.DENY, Risk.SSRF, Control.DEFAULT_DENY), -25),
    ],
)
def test_a_legitimate_event(key: Key, answer: Answer, expected: int) -> None:
    assert total(key, answer) == expected
    assert is_block(key, answer) is (answer.decision is Verdict.DENY)
    assert not is_leak(key, answer)


def test_the_wrong_door_is_half_right() -> None:
    assert judge(PROXY, Answer(Verdict.ALLOW, Risk.BENIGN, Control.LOGGING_PROXY)).decision == "half"
    assert not judge(PROXY, Answer(Verdict.ALLOW, Risk.BENIGN, Control.LOGGING_PROXY)).is_all
    assert judge(PROXY, Answer(Verdict.DENY, Risk.BENIGN, Control.LOGGING_PROXY)).decision is False
    assert judge(DENY, RIGHT).is_all


@pytest.mark.parametrize(
    ("ms", "bonus"),
    [
        (0, 10),
        (1, 9),  # 10 × 89.999 ÷ 90 = 9.9999, rounded down
        (45_000, 5),
        (81_000, 1),  # 9 of 90 seconds are left
        (81_001, 0),
        (90_000, 0),
        (3_600_000, 0),
        (None, 0),  # the time cannot be told
    ],
)
def test_the_bonus_is_a_tenth_at_most_and_falls_with_the_time(ms: int | None, bonus: int) -> None:
    assert total(DENY, RIGHT, ms, 90) == 100 + bonus


def test_the_bonus_needs_a_clock_all_three_parts_and_no_paid_hint() -> None:
    assert total(DENY, RIGHT, 0, None) == 100
    assert total(DENY, Answer(Verdict.DENY, Risk.BENIGN, Control.DEFAULT_DENY), 0, 90) == 80
    assert total(PROXY, Answer(Verdict.ALLOW, Risk.BENIGN, Control.LOGGING_PROXY), 0, 90) == 75
    assert total(DENY, RIGHT, 0, 90, hints=1) == 110  # the first is free
    assert total(DENY, RIGHT, 0, 90, hints=2) == 95  # 100 − 5
    assert total(DENY, RIGHT, 0, 90, hints=3) == 80  # 100 − 5 − 15
    assert total(DENY, Answer(Verdict.ALLOW, Risk.BENIGN, Control.EXEC_DENY), 0, 90, hints=3) == -70


@pytest.mark.parametrize(
    ("points", "shown"),
    [
        (900, 100.0),
        (990, 100.0),  # bonus lifts it no further
        (855, 95.0),
        (854, 94.9),  # 94.888…
        (1, 0.1),  # 0.111…
        (0, 0.0),
        (-450, 0.0),
    ],
)
def test_the_percent_of_nine_events(points: int, shown: float) -> None:
    assert percent(points, 9) == shown


@pytest.mark.parametrize(
    ("points", "leaks", "blocks", "grade"),
    [
        (855, 0, 0, "S"),
        (854, 0, 0, "A"),
        (900, 0, 1, "A"),
        (765, 0, 1, "A"),
        (764, 0, 1, "B"),
        (900, 1, 0, "B"),
        (630, 1, 1, "B"),
        (629, 1, 1, "C"),
        (900, 0, 2, "C"),
        (900, 1, 2, "C"),
        (450, 1, 2, "C"),
        (449, 0, 0, "D"),
        (900, 2, 0, "D"),
        (900, 0, 3, "D"),
    ],
)
def test_each_floor_of_each_grade(points: int, leaks: int, blocks: int, grade: str) -> None:
    assert grade_round(points, 9, leaks, blocks).grade == grade


def test_a_grade_says_which_floor_held_it() -> None:
    assert grade_round(900, 9, 0, 1).why == "A, not S: 1 legitimate event was denied, and S takes none."
    assert grade_round(800, 9, 2, 3).why == (
        "D, not C: 2 denied events were let through, and C takes 1 at most; 3 legitimate events were "
        "denied, and C takes 2 at most."
    )
    assert grade_round(700, 9, 0, 0).why == "B, not A: the points are below 85 %."
    assert grade_round(900, 9, 0, 0).why.startswith("S: ")


def test_a_streak_is_broken_by_one_wrong_part_and_the_best_is_kept() -> None:
    assert streaks([]) == (0, 0)
    assert streaks([True, True, False, True]) == (1, 2)
    assert streaks([True, True, False]) == (0, 2)


@pytest.mark.parametrize(
    "words", [("maybe", "benign", "default-deny"), ("deny", "bad", "default-deny"), ("deny", "benign", "")]
)
def test_an_answer_of_other_words_is_refused(words: tuple[str, str, str]) -> None:
    with pytest.raises(UserError, match="bad-answer"):
        parse_answer(*words)
    assert parse_answer("deny", "exfiltration", "default-deny") == RIGHT


# Sensitivity. Quantiles of the standard normal distribution from a printed table:
# z(0.75) = 0.6745, z(0.30) = −0.5244, z(0.9167) = 1.3830, z(0.10) = −1.2816, z(0.90) = 1.2816.


def pairs(hits: int, misses: int, false_alarms: int, passes: int) -> list[tuple[bool, bool]]:
    return (
        [(True, True)] * hits
        + [(True, False)] * misses
        + [(False, True)] * false_alarms
        + [(False, False)] * passes
    )


def test_four_of_five_hits_and_one_false_alarm_of_four() -> None:
    """H = 4.5 ÷ 6 = 0.75, F = 1.5 ÷ 5 = 0.30: d′ = 0.6745 + 0.5244 = 1.20,
    c = −(0.6745 − 0.5244) ÷ 2 = −0.08.
    """
    found = measure(pairs(4, 1, 1, 3))
    assert (found.d_prime, found.bias, found.n) == (1.2, -0.08, 9)


def test_a_perfect_round_has_no_endless_number() -> None:
    """H = 5.5 ÷ 6 = 0.9167, F = 0.5 ÷ 5 = 0.10: d′ = 1.3830 + 1.2816 = 2.66,
    c = −(1.3830 − 1.2816) ÷ 2 = −0.05.
    """
    found = measure(pairs(5, 0, 0, 4))
    assert (found.d_prime, found.bias) == (2.66, -0.05)


def test_who_denies_all_tells_nothing_apart_and_leans_to_no() -> None:
    """H = 4.5 ÷ 5 = 0.90, F = 5.5 ÷ 6 = 0.9167: d′ = 1.2816 − 1.3830 = −0.10,
    c = −(1.2816 + 1.3830) ÷ 2 = −1.33.
    """
    found = measure(pairs(4, 0, 5, 0))
    assert (found.d_prime, found.bias) == (-0.1, -1.33)
    assert "in doubt you deny" in found.note


def test_who_lets_all_through_leans_the_other_way() -> None:
    """H = 0.5 ÷ 5 = 0.10, F = 0.5 ÷ 6 = 0.0833 (z = −1.3830): c = −(−1.2816 − 1.3830) ÷ 2 = 1.33."""
    found = measure(pairs(0, 4, 0, 5))
    assert found.bias == 1.33
    assert "let it through" in found.note


def test_one_mistake_is_no_slant() -> None:
    """One wrong block of 15, all else right: c = −0.35, which one answer has made."""
    one = measure(pairs(8, 0, 1, 6))
    assert one.bias is not None
    assert one.bias < -0.25
    assert "no slant" in one.note
    assert "in doubt you deny" in measure(pairs(8, 0, 2, 5)).note
    assert "no slant" in measure(pairs(6, 1, 0, 8)).note
    assert "in doubt you let it through" in measure(pairs(5, 2, 0, 8)).note


def test_with_one_kind_only_or_few_answers_it_says_so() -> None:
    assert measure([]).note == "No answers yet."
    assert measure(pairs(1, 2, 0, 0)).d_prime is None
    assert "only" in measure(pairs(1, 2, 0, 0)).note
    assert "9 answers only" in measure(pairs(5, 0, 0, 4)).note
    assert "only" not in measure(pairs(10, 0, 0, 8)).note
