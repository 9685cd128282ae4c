"""What a round showed, when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from stockade.lab.game.book import Book
from stockade.lab.game.feedback import present_feedback
from stockade.lab.game.rounds import RoundState
from stockade.lab.game.sensitivity import Sensitivity, measure
from stockade.lab.game.shown import Feedback
from stockade.lab.game.standing import add_up

Axis = Literal["risk", "control", "class"]


class Question(Struct, frozen=True):
    """One of the eight review questions, with what the learner wrote."""

    key: str
    text: str
    help: str
    note: str


# The keys and questions are those of an evidence record; what they ask for here is another thing.
QUESTIONS = (
    (
        "what",
        "What?",
        "What was tried in the event that you missed, in one sentence without the agent's words?",
    ),
    ("why", "Why?", "Why would it have hurt to call it your way: what leaves, or what work stops?"),
    ("how", "How?", "By which part of the line could you have told?"),
    ("what-if", "What if?", "What if that one part were different: would the call still stand?"),
    ("why-not", "Why not?", "Why not the next best control: what would it let through, or block?"),
    (
        "how-proved",
        "How can I prove it?",
        "Which line of the log, and what at the target, shows the call right?",
    ),
    ("where-breaks", "Where can it break?", "Where would the control that you named not be enough?"),
    ("what-learned", "What have I learned?", "What will you look at first the next time?"),
)


class Missed(Struct, frozen=True):
    """A leak or a wrong block in one line."""

    index: int
    scenario: str
    attempt: str
    answered: str
    key: str
    cue: str


class Share(Struct, frozen=True):
    """How many events of one word were all right."""

    axis: Axis
    word: str
    right: int
    total: int


class GapLine(Struct, frozen=True, rename={"origin": "from"}):
    """A line of the gap log."""

    id: int
    text: str
    origin: str
    done: bool


class Overall(Struct, frozen=True):
    """All rounds and drills of the learner."""

    rounds: int
    answered: int
    right: int
    sensitivity: Sensitivity


class Debrief(Struct, frozen=True, kw_only=True):
    """All of it. `grade` and `why_grade` are None for a drill and a round that was broken off."""

    percent: float
    points: int
    grade: str | None
    why_grade: str | None
    leaks: tuple[Missed, ...]
    blocks: tuple[Missed, ...]
    sensitivity: Sensitivity
    by_class: tuple[Share, ...]
    missed: tuple[Feedback, ...]
    questions: tuple[Question, ...]
    gap_log: tuple[GapLine, ...]
    overall: Overall


def debrief(
    book: Book,
    state: RoundState,
    *,
    notes: Mapping[str, str],
    gaps: Iterable[GapLine],
    overall: Overall,
) -> Debrief:
    """What the round showed, with what the learner wrote about it."""
    standing = add_up(book, state)
    told = [present_feedback(book, state, index) for index, step in enumerate(state.steps) if step.given]
    by_index = {one.index: one for one in told}
    return Debrief(
        percent=standing.percent,
        points=standing.points,
        grade=standing.grade,
        why_grade=standing.why_grade,
        leaks=tuple(_tell_missed(book, by_index[index]) for index in standing.leaks),
        blocks=tuple(_tell_missed(book, by_index[index]) for index in standing.blocks),
        sensitivity=measure((one.key.decision == "deny", one.answer.decision == "deny") for one in told),
        by_class=_shares(told),
        missed=tuple(one for one in told if not one.right.is_all),
        questions=tuple(Question(key, text, help, notes.get(key, "")) for key, text, help in QUESTIONS),
        gap_log=tuple(gaps),
        overall=overall,
    )


def _tell_missed(book: Book, one: Feedback) -> Missed:
    attempt = book.find(one.scenario).attempt
    return Missed(one.index, one.scenario, attempt, one.answer.decision, one.key.decision, one.cue)


def _shares(told: list[Feedback]) -> tuple[Share, ...]:
    """By risk, control and class of the key, the worst first."""
    axes: tuple[tuple[Axis, str], ...] = (("risk", "risk"), ("control", "control"), ("class", "place"))
    shares = []
    for axis, field in axes:
        counts: dict[str, list[int]] = {}
        for one in told:
            count = counts.setdefault(getattr(one.key, field), [0, 0])
            count[0] += one.right.is_all
            count[1] += 1
        shares += sorted(
            (Share(axis, word, right, total) for word, (right, total) in counts.items()),
            key=lambda share: (share.right / share.total, share.word),
        )
    return tuple(shares)
