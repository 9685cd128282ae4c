"""Whether the record of a half day is whole, signed, and follows from what is in it; what it says."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import parse_envelope, verify_by_named_key
from stockade.evidence.points import STATEMENT_TYPE
from stockade.evidence.review import pick_answers
from stockade.lab.workshop import STEPS
from stockade.lab.workshop_record import (
    WORKSHOP_TYPE,
    HalfDay,
    Replay,
    Replayed,
    WorkshopStatement,
    list_subjects,
)


class Verified(Struct, frozen=True):
    """A record that verifies.

    Attributes:
        is_replayed: The numbers were computed again; else the bank is not the one that is here.
        is_pinned: The key is the one that was asked for.
    """

    said: HalfDay
    signed_by: str
    is_replayed: bool
    is_pinned: bool


def verify_workshop_record(
    data: bytes, *, replay: Replay, bank_digest: str, pinned: str | None = None
) -> Verified:
    """A record, if it is whole, signed by the key that it names, and its numbers are right.

    Args:
        replay: Replays the bank that is here under a policy's text.
        bank_digest: That bank's digest.
        pinned: Fingerprint of the key that must have signed.

    Raises:
        IntegrityError: It is not.
    """
    envelope = parse_envelope(data)
    try:
        statement = msgspec.json.decode(envelope.payload, type=WorkshopStatement)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError("bad-record", f"this is no record of a workshop: {error}") from error
    said = statement.predicate
    signed_by = verify_by_named_key(envelope, said.public_key, pinned)
    if (statement.type, statement.predicate_type) != (STATEMENT_TYPE, WORKSHOP_TYPE):
        raise IntegrityError(
            "bad-record", f"this is no record of a workshop but {statement.predicate_type!r}"
        )
    _verify_shape(statement)
    is_here = said.bank.digest == bank_digest
    if is_here and (found := _replay_again(replay, said.policy.text)) != said.policy.replay:
        raise IntegrityError(
            "wrong-numbers",
            f"its policy gives {found.leaks} leaks and {found.breakages} breakages, and not "
            f"{said.policy.replay.leaks} and {said.policy.replay.breakages}",
        )
    return Verified(said, signed_by, is_here, pinned is not None)


def _verify_shape(statement: WorkshopStatement) -> None:
    said = statement.predicate
    if said.policy.sha256 != hashlib.sha256(said.policy.text.encode()).hexdigest():
        raise IntegrityError("bad-record", "the policy's digest is not that of its text")
    if statement.subject != list_subjects(said):
        raise IntegrityError("bad-record", "what it is about is not what it tells of")
    if said.done != [step.key for step in STEPS if step.key in said.done]:
        raise IntegrityError("bad-record", "its steps are not those of the half day")
    try:
        answers = pick_answers(said.answers)
    except UserError as error:
        raise IntegrityError("bad-record", error.message) from error
    if answers != said.answers:
        raise IntegrityError("bad-record", "an answer is not written as it is signed")


def _replay_again(replay: Replay, text: str) -> Replayed:
    try:
        return replay(text)
    except UserError as error:
        raise IntegrityError("wrong-numbers", f"its policy does not load: {error.message}") from error


def record_object(found: Verified) -> dict[str, Any]:
    """What a verified record says, for programs."""
    said: dict[str, Any] = msgspec.to_builtins(found.said)
    del said["publicKey"]
    return {
        "verifies": True,
        "signed_by": found.signed_by,
        "key_pinned": found.is_pinned,
        "replayed": found.is_replayed,
        **said,
    }


def record_lines(found: Verified) -> list[str]:
    """What a verified record says, for people; whatever in it is foreign is shown escaped."""
    said, replayed = found.said, found.said.policy.replay
    pinned = "the key that you asked for" if found.is_pinned else "key not pinned"
    how = (
        "computed again"
        if found.is_replayed
        else "not computed again: another pack was played, say which by --pack PACK"
    )
    counts = ", ".join(f"{count} {_plain(word)}" for word, count in sorted(said.evidence.counts.items()))
    return [
        f"a half day of {said.learner!a}, written {_plain(said.made)}",
        f"signed by {found.signed_by}, {pinned}",
        f"policy {said.policy.sha256[:16]}…: {replayed.leaks} leaks, {replayed.breakages} breakages, "
        f"{replayed.right} of {replayed.total} right ({how})",
        f"evidence {_plain(said.evidence.statement_sha256[:16])}…: {_plain(said.evidence.result)}: {counts}",
        f"steps ticked: {len(said.done)} of {len(STEPS)}; eight questions answered",
    ]


def _plain(text: str) -> str:
    return ascii(text)[1:-1]
