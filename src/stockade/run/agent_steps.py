"""Steps of an agent that drives something in the room from outside, such as a browser: as records of the run.

The driver asks over the control socket and acts only after the answer, so a step is on record
before it is done. What it says is checked for shape alone: it is the operator's program, and
what it passes on (addresses, texts of pages) is foreign and cleaned like all foreign text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from stockade.errors import UserError
from stockade.ledger.record import STEP, STEP_OUTCOME, clean_text

if TYPE_CHECKING:
    from stockade.run.session import Session

_ACTION = re.compile(r"[a-z][a-z-]{0,31}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
CAME_LIMIT = 600


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent is about to do.

    Attributes:
        action: A word, such as `open` or `click`.
        number: Of the step in its session, from 1.
        address: Of the page that the agent saw.
        screenshot: SHA-256 (hexadecimal) of the picture that the agent saw; None if there is none yet.
        target: What the action is about: an address, a link's text, a field's name.
        text_bytes: How much is typed; the text itself is not kept.
        argv: Of a command.
    """

    action: str
    number: int
    address: str = ""
    screenshot: str | None = None
    target: str = ""
    text_bytes: int | None = None
    argv: tuple[str, ...] | None = None

    def to_fields(self) -> dict[str, object]:
        fields = msgspec.structs.asdict(self)
        return {key: value for key, value in fields.items() if value is not None}


class StepOutcome(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of it: `of` is the step's record, `came` a sentence, the rest what the agent sees now."""

    of: int
    came: str
    address: str = ""
    screenshot: str | None = None


def record_step(session: Session, request: dict[str, Any], done: Callable[[dict[str, Any]], None]) -> None:
    """Append a step, or what came of one; `done` is told the record's number when it is durable.

    Raises:
        UserError: The request is no step.
    """
    asked = {key: value for key, value in request.items() if key != "do"}
    try:
        if request["do"] == "step":
            step = msgspec.convert(asked, Step)
            _judge(
                _ACTION.fullmatch(step.action), f"{clean_text(step.action, 40)!r} is no word for an action"
            )
            _judge(step.screenshot is None or _DIGEST.fullmatch(step.screenshot), "a digest has 64 digits")
            kind, fields = STEP, step.to_fields()
        else:
            outcome = msgspec.convert(asked, StepOutcome)
            _judge(outcome.of in session.steps, f"record {outcome.of} is no step without an outcome")
            _judge(
                outcome.screenshot is None or _DIGEST.fullmatch(outcome.screenshot), "a digest has 64 digits"
            )
            session.steps.discard(outcome.of)
            kind, fields = STEP_OUTCOME, msgspec.structs.asdict(outcome)
            fields["came"] = clean_text(outcome.came, CAME_LIMIT)
    except msgspec.ValidationError as error:
        raise UserError("bad-step", f"not a step: {error}") from error
    seq = session.ledger.append(kind, fields, lambda seq: done({"seq": seq}))
    if kind == STEP:
        session.steps.add(seq)


def _judge(holds: object, problem: str) -> None:
    if not holds:
        raise UserError("bad-step", problem)
