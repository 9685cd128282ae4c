"""Where a learner stands in the half day: what is ticked, written and verified. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from stockade.errors import UserError
from stockade.evidence.questions import QUESTIONS
from stockade.evidence.review import ANSWER_LIMIT
from stockade.lab.workshop import MINUTES, STEPS

_PATH_LIMIT = 4096


class Progress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a learner stands.

    Attributes:
        done: Keys of the steps that are ticked.
        notes: Texts by the keys of the eight questions.
        evidence: The folder that was given last; empty if none was.
    """

    done: tuple[str, ...] = ()
    notes: dict[str, str] = {}
    evidence: str = ""


def parse_progress(data: bytes) -> Progress:
    """What a store kept.

    Raises:
        UserError: It is not that, or names a step or a question that does not exist.
    """
    return _verified(_decode(data, Progress))


class Change(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page sends: only what has changed, so that two tabs do not undo each other's work.

    Attributes:
        ticks: Steps by key: done or not.
        notes: New texts by the questions' keys.
    """

    ticks: dict[str, bool] = {}
    notes: dict[str, str] = {}


def change_progress(progress: Progress, data: bytes) -> Progress:
    """Progress after what a page sent (`PUT /api/workshop`).

    Raises:
        UserError: It is no change, or names a step or a question that does not exist.
    """
    change = _decode(data, Change)
    _demand_steps(change.ticks)
    ticked = {**dict.fromkeys(progress.done, True), **change.ticks}
    done = tuple(step.key for step in STEPS if ticked.get(step.key))
    notes = {**progress.notes, **change.notes}
    return _verified(Progress(done=done, notes=notes, evidence=progress.evidence))


T = TypeVar("T")


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError("bad-progress", f"this is no progress of a workshop: {error}") from error


def _demand_steps(given: Iterable[str]) -> None:
    if unknown := sorted(set(given) - {step.key for step in STEPS}):
        raise UserError("unknown-step", f"there is no step {unknown[0]!r}")


def _verified(progress: Progress) -> Progress:
    _demand_steps(progress.done)
    if unknown := sorted(progress.notes.keys() - {question.key for question in QUESTIONS}):
        raise UserError("unknown-question", f"there is no question {unknown[0]!r}")
    if long := [key for key, text in progress.notes.items() if len(text) > ANSWER_LIMIT]:
        raise UserError("long-note", f"{long[0]}: more than {ANSWER_LIMIT} characters")
    if len(progress.evidence) > _PATH_LIMIT:
        raise UserError("long-path", f"the folder's path has more than {_PATH_LIMIT} characters")
    return progress


def encode_progress(progress: Progress) -> bytes:
    """For a store; `parse_progress` reads it."""
    return msgspec.json.encode(progress, order="sorted")


def tell_workshop(progress: Progress, has_policy: bool) -> dict[str, Any]:
    """All that the page shows, as `GET /api/workshop` gives it."""
    return {
        "minutes": MINUTES,
        "steps": [
            {**msgspec.to_builtins(step), "number": number, "is_done": step.key in progress.done}
            for number, step in enumerate(STEPS, 1)
        ],
        "questions": [
            {**msgspec.to_builtins(question), "note": progress.notes.get(question.key, "")}
            for question in QUESTIONS
        ],
        "evidence": progress.evidence,
        "missing": list_missing(progress, has_policy),
    }


def list_missing(progress: Progress, has_policy: bool) -> list[str]:
    """What a record of the half day still needs: `policy`, `evidence`, and keys of questions."""
    needs = {"policy": has_policy, "evidence": progress.evidence}
    needs |= {one.key: progress.notes.get(one.key, "").strip() for one in QUESTIONS}
    return [key for key, given in needs.items() if not given]
