"""What a round adds up to so far."""

from __future__ import annotations

from msgspec import Struct

from stockade.lab.game.book import Book
from stockade.lab.game.grade import grade_round
from stockade.lab.game.rounds import RoundState
from stockade.lab.game.score import Points, is_block, is_leak, judge, percent, score


def points_of(book: Book, state: RoundState, index: int) -> Points | None:
    """Points of an answered event, None before."""
    step = state.steps[index]
    if step.given is None:
        return None
    key = book.find(step.scenario).key
    return score(key, step.given.answer, ms=step.given.ms, clock_s=state.clock_s, hints=step.hints)


def all_right(book: Book, state: RoundState) -> list[bool]:
    """For each answered event in order, whether all three parts are right."""
    return [
        judge(book.find(step.scenario).key, step.given.answer).is_all for step in state.steps if step.given
    ]


class Standing(Struct, frozen=True):
    """What a round adds up to so far."""

    points: int
    percent: float
    leaks: tuple[int, ...]
    blocks: tuple[int, ...]
    grade: str | None
    why_grade: str | None


def add_up(book: Book, state: RoundState) -> Standing:
    """Points, leaks and blocks (by index), and the grade of a round that is done."""
    answered = [(index, step.given.answer) for index, step in enumerate(state.steps) if step.given]
    keys = [book.find(step.scenario).key for step in state.steps]
    points = sum(one.total for index, _ in answered if (one := points_of(book, state, index)) is not None)
    leaks = tuple(index for index, answer in answered if is_leak(keys[index], answer))
    blocks = tuple(index for index, answer in answered if is_block(keys[index], answer))
    count = len(state.steps)
    share = percent(points, count)
    if state.kind == "round" and state.status == "done":
        told = grade_round(points, count, len(leaks), len(blocks))
        return Standing(points, share, leaks, blocks, told.grade, told.why)
    return Standing(points, share, leaks, blocks, None, None)
