"""Reviews: eight answers, signed, bound to one statement, and never a reason for evidence to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import parse_envelope, sign
from stockade.evidence.keys import fingerprint
from stockade.evidence.questions import QUESTIONS
from stockade.evidence.review import ANSWER_LIMIT, pick_answers, read_answers, sign_review, verify_review
from stockade.evidence.verify import verify_evidence

ANSWERS = {question.key: f"My answer to {question.text}" for question in QUESTIONS}
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
NOW = "2026-12-01T10:00:00.000Z"


def put_review(folder: Path, payload: bytes | None = None) -> None:
    payload = payload or parse_envelope((folder / "evidence.json").read_bytes()).payload
    (folder / "review.json").write_bytes(sign_review(payload, ANSWERS, "A. Reviewer", NOW, KEY))


def test_a_review_verifies_and_says_who_answered(sealed: Path) -> None:
    assert verify_evidence(sealed).review is None
    put_review(sealed)
    report = verify_evidence(sealed)
    assert report.exit_code == 0
    assert report.review is not None
    assert (report.review.reviewer, report.review.answers) == ("A. Reviewer", ANSWERS)
    assert report.review.signed_by == fingerprint(KEY.public_key()) != report.signed_by


def test_every_changed_byte_of_a_review_is_found(sealed: Path) -> None:
    put_review(sealed)
    data = (sealed / "review.json").read_bytes()
    for place in range(0, len(data), 7):
        changed = bytearray(data)
        changed[place] ^= 1
        (sealed / "review.json").write_bytes(changed)
        assert [fault.file for fault in verify_evidence(sealed).faults] == ["review.json"], place
    (sealed / "review.json").write_bytes(data)
    assert verify_evidence(sealed).exit_code == 0


def test_a_review_of_another_statement_is_refused(sealed: Path) -> None:
    put_review(sealed, b"another statement")
    (fault,) = verify_evidence(sealed).faults
    assert (fault.file, fault.problem) == ("review.json", "the review is about another statement")


def test_the_evidence_itself_is_no_review(sealed: Path) -> None:
    (sealed / "review.json").write_bytes((sealed / "evidence.json").read_bytes())
    assert [fault.file for fault in verify_evidence(sealed).faults] == ["review.json"]


def test_a_signed_review_of_another_type_or_with_a_missing_answer_is_refused() -> None:
    data = sign_review(b"payload", ANSWERS, "A", NOW, KEY)
    assert verify_review(data, b"payload").reviewer == "A"
    value = json.loads(parse_envelope(data).payload)
    for change in ({"predicateType": "https://example.com/x"}, {"_type": "x"}):
        with pytest.raises(IntegrityError, match="no review"):
            verify_review(sign(json.dumps({**value, **change}).encode(), KEY), b"payload")
    del value["predicate"]["answers"]["why"]
    with pytest.raises(IntegrityError, match="why"):
        verify_review(sign(json.dumps(value).encode(), KEY), b"payload")


def test_answers_come_from_yaml_or_json(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    path.write_text(json.dumps(ANSWERS))
    assert read_answers(path) == ANSWERS
    path.write_text("".join(f"{key}: |\n  {text}\n" for key, text in ANSWERS.items()))
    assert read_answers(path) == ANSWERS


@pytest.mark.parametrize("text", ["", "[]", "a: [", "what: x\n", "\0"])
def test_an_answers_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answers"
    path.write_text(text)
    with pytest.raises(UserError):
        read_answers(path)


def test_all_eight_are_needed_and_nothing_else() -> None:
    assert pick_answers(ANSWERS) == ANSWERS
    for key in ANSWERS:
        with pytest.raises(UserError, match=key):
            pick_answers({**ANSWERS, key: " \n"})
    with pytest.raises(UserError, match="who"):
        pick_answers({**ANSWERS, "who": "me"})
    pick_answers({**ANSWERS, "why": "x" * ANSWER_LIMIT})
    with pytest.raises(UserError, match="why"):
        pick_answers({**ANSWERS, "why": "x" * (ANSWER_LIMIT + 1)})
