"""What the player gets to see, as plain values: `msgspec.to_builtins` of them is the API's JSON."""

from __future__ import annotations

from msgspec import Struct

from stockade.lab.game.background import Background
from stockade.lab.game.book import RestsOn
from stockade.lab.game.hints import Hint
from stockade.lab.game.rounds import Kind, Status
from stockade.lab.game.score import Points, Right


class HintsTaken(Struct, frozen=True):
    """The hints of one event; `next_cost` is None when there is none left."""

    taken: tuple[Hint, ...]
    left: int
    next_cost: int | None


class Event(Struct, frozen=True, kw_only=True):
    """An event before the answer.

    Attributes:
        answers: What the attempted name resolves to, as text.
        shown_ms: Milliseconds since it was first shown; None if it was not, or if that cannot be told.
    """

    index: int
    entry: str
    phase: str
    identity: str
    attempt: str
    answers: tuple[str, ...]
    came_from: str | None
    sni: str | None
    carries: str | None
    stated_reason: str
    background: tuple[Background, ...]
    hints: HintsTaken
    shown_ms: int | None


class AnswerShown(Struct, frozen=True):
    """What was answered, in how many milliseconds (None: cannot be told), with how many hints."""

    decision: str
    risk: str
    control: str
    ms: int | None
    hints: int


class KeyShown(Struct, frozen=True, rename={"place": "class"}):
    """The right answer and the class of the place."""

    decision: str
    risk: str
    control: str
    place: str


class EngineShown(Struct, frozen=True):
    """What the engine says of the line alone."""

    verdict: str
    risk: str
    control: str
    reason: str
    why: str


class NearShown(Struct, frozen=True):
    """The event that looks like this one."""

    scenario: str
    attempt: str
    answers: tuple[str, ...]
    phase: str
    identity: str
    key: KeyShown
    difference: str


class Feedback(Struct, frozen=True, kw_only=True):
    """All about an event, after its answer."""

    index: int
    scenario: str
    answer: AnswerShown
    key: KeyShown
    right: Right
    points: Points
    is_leak: bool
    is_block: bool
    event: str
    technique: str
    cue: str
    why: str
    source: str
    rests_on: RestsOn
    engine: EngineShown
    near: NearShown | None
    live: str
    live_note: str
    streak: int


class EventDone(Event, frozen=True, kw_only=True):
    """An event after its answer."""

    feedback: Feedback


class Summary(Struct, frozen=True, kw_only=True):
    """A round in one line. `grade` and `percent` are there when it is done; a drill has no grade."""

    id: str
    kind: Kind
    tier: int | None
    seed: str
    status: Status
    count: int
    answered: int
    points: int
    percent: float | None
    grade: str | None
    streak: int
    best_streak: int
    current: int | None
    clock_s: int | None
    bank_digest: str
    started_at: str
    ended_at: str | None


class Round(Summary, frozen=True, kw_only=True):
    """A round as it stands: what was answered, and the event whose turn it is."""

    events: tuple[Event, ...]
