"""Points of one answer, and of a round. Whole numbers only, so that anybody who counts gets the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from stockade.errors import UserError
from stockade.lab.pack.scenario import Key
from stockade.vocabulary import Control, Risk, Verdict

DECISION, CONTROL, RISK, BONUS = 50, 30, 20, 10
FULL = DECISION + CONTROL + RISK
HALF_DECISION = 25  # let through, and rightly so, but by the wrong door
LEAK, BLOCK = -50, -25
HINT_COSTS = (0, 5, 15)


class Answer(Struct, frozen=True):
    """The three parts of an answer."""

    decision: Verdict
    risk: Risk
    control: Control


class Right(Struct, frozen=True):
    """Which parts are right."""

    decision: bool | Literal["half"]
    risk: bool
    control: bool

    @property
    def is_all(self) -> bool:
        return self.decision is True and self.risk and self.control


class Points(Struct, frozen=True):
    """What one answer brought; `hints` is what was paid, as a positive number."""

    decision: int
    risk: int
    control: int
    bonus: int
    hints: int
    total: int


def parse_answer(decision: str, risk: str, control: str) -> Answer:
    """An answer from words.

    Raises:
        UserError: One of them is none of the closed set.
    """
    verdicts = {verdict.word: verdict for verdict in Verdict}
    try:
        return Answer(verdicts[decision], Risk(risk), Control(control))
    except (KeyError, ValueError) as error:
        raise UserError("bad-answer", f"an answer has a decision, a risk and a control: {error}") from error


def judge(key: Key, answer: Answer) -> Right:
    """Which parts of an answer are right."""
    is_half = Verdict.DENY not in (key.verdict, answer.decision)
    return Right(
        decision=True if answer.decision is key.verdict else "half" if is_half else False,
        risk=answer.risk is key.risk,
        control=answer.control is key.control,
    )


def is_leak(key: Key, answer: Answer) -> bool:
    """What had to be denied was let through."""
    return key.verdict is Verdict.DENY and answer.decision is not Verdict.DENY


def is_block(key: Key, answer: Answer) -> bool:
    """What was legitimate was denied."""
    return key.verdict is not Verdict.DENY and answer.decision is Verdict.DENY


def hints_cost(taken: int) -> int:
    return sum(HINT_COSTS[:taken])


def score(key: Key, answer: Answer, *, ms: int | None, clock_s: int | None, hints: int) -> Points:
    """The points of one answer.

    Args:
        ms: Time from the first showing; None if it cannot be told, which brings no bonus.
        clock_s: Time that the bonus is measured by; None without a clock.
        hints: How many hints were taken.
    """
    right = judge(key, answer)
    decision = {True: DECISION, "half": HALF_DECISION}.get(right.decision, 0)
    if is_leak(key, answer):
        decision = LEAK
    elif is_block(key, answer):
        decision = BLOCK
    paid = hints_cost(hints)
    bonus = _bonus(ms, clock_s) if right.is_all and not paid else 0
    risk, control = RISK * right.risk, CONTROL * right.control
    return Points(decision, risk, control, bonus, paid, decision + risk + control + bonus - paid)


def _bonus(ms: int | None, clock_s: int | None) -> int:
    """Up to `BONUS`, in line with the time that is left, rounded down."""
    if ms is None or clock_s is None or ms < 0:
        return 0
    left = clock_s * 1000 - ms
    return BONUS * left // (clock_s * 1000) if left > 0 else 0


def percent(points: int, count: int) -> float:
    """Points of what right answers give, with one decimal, from 0 to 100 (bonus lifts it no further)."""
    full = FULL * count
    if full == 0:
        return 0.0
    return min(1000, (max(0, points) * 1000 + full // 2) // full) / 10


def streaks(all_right: Sequence[bool]) -> tuple[int, int]:
    """How many events in a row have all three right: at the end, and at best."""
    now = best = 0
    for right in all_right:
        now = now + 1 if right else 0
        best = max(best, now)
    return now, best
