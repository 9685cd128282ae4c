"""One round as a state machine: values in, values out.

Events come in order, one at a time. What was answered stays answered: the same answer again changes
nothing, another one is refused. A hint is bought once and never given back.

    open ── the last event is answered ──> done
    open ── leave ──> broken-off
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from stockade.errors import UserError
from stockade.lab.game.moment import Moment, elapsed_ms
from stockade.lab.game.score import HINT_COSTS, Answer
from stockade.lab.game.tiers import Clock, clock_of

Kind = Literal["round", "drill"]
Status = Literal["open", "done", "broken-off"]


class Conflict(UserError):  # noqa: N818  # says what is the matter, as the other families do
    """What was asked does not go together with the state of the round; nothing was changed."""


class Given(Struct, frozen=True):
    """An answer that was given, and the milliseconds it took; None if they cannot be told."""

    answer: Answer
    ms: int | None


class Step(Struct, frozen=True):
    """One event of a round and what the player did with it."""

    scenario: str
    shown: Moment | None = None
    hints: int = 0
    given: Given | None = None


class RoundState(Struct, frozen=True, kw_only=True):
    """A round as it is kept.

    Attributes:
        tier: None in a drill.
        bank: Digest of the pack that it was drawn from.
        clock: The setting when it was begun; a later change is for later rounds.
        started_ms: Wall clock; `ended_ms` likewise, None while open.
    """

    id: str
    kind: Kind
    tier: int | None
    seed: str
    bank: str
    clock: Clock
    steps: tuple[Step, ...]
    started_ms: int
    ended_ms: int | None = None
    is_left: bool = False

    @property
    def current(self) -> int | None:
        """The event whose turn it is; None when the round is over."""
        if self.is_left:
            return None
        return next((index for index, step in enumerate(self.steps) if step.given is None), None)

    @property
    def status(self) -> Status:
        if self.is_left:
            return "broken-off"
        return "done" if self.current is None else "open"

    @property
    def clock_s(self) -> int | None:
        return clock_of(self.tier, self.clock)


def begin(
    number: str,
    kind: Kind,
    tier: int | None,
    seed: str,
    bank: str,
    clock: Clock,
    scenarios: tuple[str, ...],
    now: Moment,
) -> RoundState:
    """A round with nothing answered."""
    return RoundState(
        id=number,
        kind=kind,
        tier=tier,
        seed=seed,
        bank=bank,
        clock=clock,
        steps=tuple(Step(scenario) for scenario in scenarios),
        started_ms=now.wall_ms,
    )


def show(state: RoundState, index: int, now: Moment) -> RoundState:
    """The event is on the player's screen; its time runs from the first showing.

    Raises:
        Conflict: It is not its turn yet.
    """
    step = _step(state, index)
    if step.given is not None or step.shown is not None:
        return state
    _need_turn(state, index)
    return _put(state, index, replace(step, shown=now))


def take_hint(state: RoundState, index: int) -> tuple[RoundState, int]:
    """One hint more for the current event; also says which one (from 1).

    Raises:
        Conflict: There is none left, the event is answered, or it is not its turn.
    """
    step = _step(state, index)
    _need_turn(state, index)
    if step.hints >= len(HINT_COSTS):
        raise Conflict("no-hint-left", f"event {index + 1} has no further hint")
    return _put(state, index, replace(step, hints=step.hints + 1)), step.hints + 1


def give_answer(state: RoundState, index: int, answer: Answer, now: Moment) -> tuple[RoundState, bool]:
    """Take an answer; the second value tells that this very answer had been given before.

    Raises:
        Conflict: The event has another answer already, or it is not its turn.
    """
    step = _step(state, index)
    if step.given is not None:
        if step.given.answer == answer:
            return state, True
        raise Conflict("already-answered", f"event {index + 1} was answered before; the first answer counts")
    _need_turn(state, index)
    answered = _put(state, index, replace(step, given=Given(answer, elapsed_ms(step.shown, now))))
    if answered.current is None:
        answered = replace(answered, ended_ms=max(now.wall_ms, state.started_ms))
    return answered, False


def leave(state: RoundState, now: Moment) -> RoundState:
    """Break the round off; of one that is over nothing changes."""
    if state.status != "open":
        return state
    return replace(state, is_left=True, ended_ms=max(now.wall_ms, state.started_ms))


def _step(state: RoundState, index: int) -> Step:
    if not 0 <= index < len(state.steps):
        raise Conflict("no-such-event", f"this round has {len(state.steps)} events, numbered from 0")
    return state.steps[index]


def _need_turn(state: RoundState, index: int) -> None:
    if state.status != "open":
        raise Conflict("round-over", f"this round is {state.status}")
    if index != state.current:
        answered = state.steps[index].given is not None
        raise Conflict(
            "already-answered" if answered else "not-yet",
            f"event {index + 1} was answered before" if answered else f"event {index + 1} comes later",
        )


def _put(state: RoundState, index: int, step: Step) -> RoundState:
    return replace(state, steps=(*state.steps[:index], step, *state.steps[index + 1 :]))
