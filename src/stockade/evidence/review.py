"""The review: somebody's answers to the eight questions, signed, and bound to one statement.

It lies outside the manifest, since it is written when the record is sealed already. What binds it is
the SHA-256 of the statement that it is about: another statement needs another review.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import parse_envelope, sign, verify_signature
from stockade.evidence.keys import fingerprint, parse_public_key, write_public_key
from stockade.evidence.points import STATEMENT_TYPE, Descriptor
from stockade.evidence.questions import QUESTIONS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

REVIEW_TYPE = "urn:stockade:evidence-review:v1"
ANSWER_LIMIT = 20_000
"""Characters of one answer."""


class Answers(Struct, frozen=True, kw_only=True, rename="camel"):
    """Who answered, when, and what: one text for each question's key."""

    reviewer: str
    reviewed: str
    answers: dict[str, str]
    public_key: str


class ReviewStatement(Struct, frozen=True, kw_only=True):
    """in-toto Statement v1 about the evidence's statement."""

    subject: list[Descriptor]
    predicate: Answers
    type: str = field(name="_type", default=STATEMENT_TYPE)
    predicate_type: str = field(name="predicateType", default=REVIEW_TYPE)


class Review(Struct, frozen=True):
    """A review that verifies."""

    reviewer: str
    reviewed: str
    answers: dict[str, str]
    signed_by: str


def read_answers(path: Path) -> dict[str, str]:
    """Answers from a YAML or JSON file: a mapping of the questions' keys to texts.

    Raises:
        UserError: It is not that.
    """
    import yaml

    try:
        value: Any = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError("no-answers", f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError("bad-answers", f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise UserError("bad-answers", f"{path}: a mapping of questions to answers is needed", _TEMPLATE_HINT)
    return pick_answers({str(key): "" if text is None else str(text) for key, text in value.items()})


_TEMPLATE_HINT = "stockade evidence review DIR prints a form to fill in"


def pick_answers(given: Mapping[str, str]) -> dict[str, str]:
    """All eight, and nothing else.

    Raises:
        UserError: One is missing, empty, too long or not a question.
    """
    keys = [question.key for question in QUESTIONS]
    if unknown := sorted(given.keys() - set(keys)):
        raise UserError(
            "unknown-question", f"there is no question {unknown[0]!r}", f"known: {', '.join(keys)}"
        )
    if missing := [key for key in keys if not given.get(key, "").strip()]:
        raise UserError("missing-answer", f"no answer to: {', '.join(missing)}", _TEMPLATE_HINT)
    if long := [key for key in keys if len(given[key]) > ANSWER_LIMIT]:
        raise UserError("long-answer", f"{long[0]}: more than {ANSWER_LIMIT} characters")
    return {key: given[key].strip() for key in keys}


def sign_review(
    payload: bytes, answers: Mapping[str, str], reviewer: str, reviewed: str, key: Ed25519PrivateKey
) -> bytes:
    """`review.json` for the statement with this payload."""
    statement = ReviewStatement(
        subject=[Descriptor(name="statement", digest={"sha256": hashlib.sha256(payload).hexdigest()})],
        predicate=Answers(
            reviewer=reviewer,
            reviewed=reviewed,
            answers=pick_answers(answers),
            public_key=write_public_key(key.public_key()).decode(),
        ),
    )
    return sign(msgspec.json.encode(statement, order="sorted"), key)


def verify_review(data: bytes, payload: bytes) -> Review:
    """A review, if it is whole, signed by the key that it names, and about this statement.

    Raises:
        IntegrityError: It is not.
    """
    envelope = parse_envelope(data)
    try:
        statement = msgspec.json.decode(envelope.payload, type=ReviewStatement)
    except msgspec.DecodeError as error:
        raise IntegrityError("bad-review", f"this is no review: {error}") from error
    said = statement.predicate
    key = parse_public_key(said.public_key.encode())
    verify_signature(envelope, key)
    if (statement.type, statement.predicate_type) != (STATEMENT_TYPE, REVIEW_TYPE):
        raise IntegrityError("bad-review", f"this is no review but {statement.predicate_type!r}")
    digests = [descriptor.digest.get("sha256") for descriptor in statement.subject]
    if digests != [hashlib.sha256(payload).hexdigest()]:
        raise IntegrityError("other-review", "the review is about another statement")
    try:
        answers = pick_answers(said.answers)
    except UserError as error:
        raise IntegrityError("bad-review", f"the review is not whole: {error.message}") from error
    return Review(said.reviewer, said.reviewed, answers, fingerprint(key))
