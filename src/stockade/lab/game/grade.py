"""The grade of a round: a share of the points, with floors on leaks and on wrong blocks.

Each of the two trivial players wins one rate and loses the other, so a grade asks for both.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.lab.game.score import FULL


class Floor(Struct, frozen=True):
    """What a grade takes at least."""

    grade: str
    percent: int
    leaks: int
    blocks: int


FLOORS = (Floor("S", 95, 0, 0), Floor("A", 85, 0, 1), Floor("B", 70, 1, 1), Floor("C", 50, 1, 2))
LOWEST = "D"


class Grade(Struct, frozen=True):
    """A grade and, in one sentence, what kept it from the next better one."""

    grade: str
    why: str


def grade_round(points: int, count: int, leaks: int, blocks: int) -> Grade:
    """The best grade of which every floor is reached."""
    better = None
    for floor in FLOORS:
        missing = _missing(floor, points, count, leaks, blocks)
        if not missing:
            return Grade(floor.grade, _say(floor.grade, better))
        better = (floor, missing)
    return Grade(LOWEST, _say(LOWEST, better))


def _say(grade: str, better: tuple[Floor, list[str]] | None) -> str:
    if better is None:
        return "S: nothing leaked, nothing needed was denied, and 95 % of the points or more."
    floor, missing = better
    return f"{grade}, not {floor.grade}: {'; '.join(missing)}."


def _missing(floor: Floor, points: int, count: int, leaks: int, blocks: int) -> list[str]:
    missing = []
    if leaks > floor.leaks:
        missing.append(
            f"{_count(leaks, 'denied event')} let through, and {floor.grade} takes {_most(floor.leaks)}"
        )
    if blocks > floor.blocks:
        missing.append(
            f"{_count(blocks, 'legitimate event')} denied, and {floor.grade} takes {_most(floor.blocks)}"
        )
    if points * 100 < floor.percent * FULL * count:
        missing.append(f"the points are below {floor.percent} %")
    return missing


def _count(number: int, what: str) -> str:
    return f"{number} {what} was" if number == 1 else f"{number} {what}s were"


def _most(number: int) -> str:
    return "none" if number == 0 else f"{number} at most"
