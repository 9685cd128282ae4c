"""The record of a half day: signed, bound to policy and evidence, and its numbers computed again."""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stockade.cli import lab_verify
from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import parse_envelope, sign
from stockade.evidence.keys import fingerprint
from stockade.evidence.questions import QUESTIONS
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.workshop_record import Evidence, Played, Replayed, replay_on, workshop_record
from stockade.lab.workshop_verify import Verified, record_lines, record_object, verify_workshop_record

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(31) + b"\1")
BANK = "ba" * 32
POLICY = "version: 1\nrules:\n  - allow: docs.python.org\n"
NUMBERS = Replayed(leaks=1, breakages=70, unwatched=0, right=98, total=171, waiting=2)
EVIDENCE = Evidence(
    statement_sha256="5e" * 32, result="WARNED", counts={"blocked": 17, "leaked": 0}, signed_by="ab" * 32
)
GIVEN: dict[str, Any] = {
    "learner": "A. Learner",
    "made": "2026-12-01T12:00:00Z",
    "software": "stockade 0.1",
    "bank": Played(name="bank", digest=BANK),
    "done": ("record", "read"),
    "policy_text": POLICY,
    "replayed": NUMBERS,
    "evidence": EVIDENCE,
    "answers": {one.key: f"My answer to {one.text}" for one in QUESTIONS},
    "key": KEY,
}


def make(**changed: Any) -> bytes:
    return workshop_record(**{**GIVEN, **changed})


def verify(data: bytes, **changed: Any) -> Verified:
    given: dict[str, Any] = {"replay": lambda text: NUMBERS, "bank_digest": BANK}
    return verify_workshop_record(data, **{**given, **changed})


def signed_anew(change: Any, key: Ed25519PrivateKey = KEY) -> bytes:
    """A record whose signature holds, over a payload that `change` has had its way with."""
    tree = json.loads(parse_envelope(make()).payload)
    change(tree)
    return sign(json.dumps(tree).encode(), key)


def test_a_record_verifies_and_tells_what_was_done() -> None:
    found = verify(make())
    assert found.is_replayed
    assert found.signed_by == fingerprint(KEY.public_key())
    assert found.said.learner == "A. Learner"
    assert found.said.done == ["read", "record"]  # in the order of the half day
    assert found.said.policy.sha256 == hashlib.sha256(POLICY.encode()).hexdigest()
    assert found.said.evidence == EVIDENCE
    assert found.said.answers == GIVEN["answers"]
    assert "1 leaks, 70 breakages" in "\n".join(record_lines(found))


def test_it_is_an_in_toto_statement_about_policy_and_evidence() -> None:
    tree = json.loads(base64.b64decode(json.loads(make())["payload"]))
    assert tree["_type"] == "https://in-toto.io/Statement/v1"
    assert tree["predicateType"] == "urn:stockade:lab-workshop:v1"
    assert {one["name"]: one["digest"]["sha256"] for one in tree["subject"]} == {
        "policy": hashlib.sha256(POLICY.encode()).hexdigest(),
        "evidence": "5e" * 32,
    }


def test_every_changed_byte_is_refused() -> None:
    data = make()
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(IntegrityError):
            verify(changed)


@pytest.mark.parametrize(
    "data", [b"", b"{}", make()[:-1], make() + b"\n", sign(b"{}", KEY), sign(b"\xff", KEY)]
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        verify(data)


def test_another_key_than_the_one_named_is_refused_and_a_pinned_one_is_asked_for() -> None:
    with pytest.raises(IntegrityError):
        verify(signed_anew(lambda tree: None, OTHER))
    assert verify(make(), pinned=fingerprint(KEY.public_key())).signed_by
    with pytest.raises(IntegrityError, match="asked for"):
        verify(make(), pinned=fingerprint(OTHER.public_key()))


def test_numbers_that_the_policy_does_not_give_are_refused() -> None:
    better = msgspec.structs.replace(NUMBERS, leaks=0, breakages=0, right=169)
    with pytest.raises(IntegrityError, match="1 leaks and 70 breakages, and not 0 and 0"):
        verify(make(replayed=better))


def test_with_another_bank_it_says_that_nothing_was_computed_again() -> None:
    found = verify(make(), bank_digest="00" * 32, replay=lambda text: pytest.fail("another bank"))
    assert not found.is_replayed
    assert "not computed again" in "\n".join(record_lines(found))


def test_a_policy_that_does_not_load_is_refused() -> None:
    def replay(text: str) -> Replayed:
        raise UserError("bad-policy", "line 1")

    with pytest.raises(IntegrityError, match="does not load"):
        verify(make(), replay=replay)


def put(*path: Any, value: Any) -> Any:
    def change(tree: Any) -> None:
        for name in path[:-1]:
            tree = tree[name]
        tree[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("_type", value="https://in-toto.io/Statement/v0.1"),
        put("predicateType", value="urn:stockade:evidence-review:v1"),
        put("subject", value=[]),
        put("subject", 1, "digest", "sha256", value="00" * 32),
        put("predicate", "policy", "text", value="version: 1\n"),
        put("predicate", "done", value=["record", "read"]),
        put("predicate", "done", value=["fly"]),
        put("predicate", "answers", "why", value=""),
        put("predicate", "answers", value={}),
        put("predicate", "extra", value=1),
    ],
)
def test_a_signed_record_that_does_not_hang_together_is_refused(change: Any) -> None:
    assert verify(signed_anew(lambda tree: None))  # signed anew and unchanged it is taken
    with pytest.raises(IntegrityError):
        verify(signed_anew(change))


@pytest.mark.parametrize(
    "changed",
    [
        {"learner": " "},
        {"learner": "x" * 201},
        {"policy_text": " \n"},
        {"policy_text": "#" * ((256 << 10) + 1)},
        {"answers": {**GIVEN["answers"], "why": " "}},
        {"answers": {}},
    ],
)
def test_a_half_day_with_a_part_missing_gives_no_record(changed: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        make(**changed)


def test_nothing_foreign_reaches_a_terminal() -> None:
    evidence = msgspec.structs.replace(EVIDENCE, result="\x1b[2J", counts={"\x1b]0;x\x07": 1})
    lines = record_lines(verify(make(learner="\x1b[31mred", made="\x1b[1m", evidence=evidence)))
    assert "\x1b" not in "\n".join(lines)


def _small_pack(folder: Path) -> Path:
    (folder / "card.yaml").write_text("version: 1\n")
    row = {
        "id": "A1", "attempt": "exec id", "verdict": "deny", "risk": "benign", "control": "exec-deny",
        "class": "local", "event": "Runs id", "cue": "id", "why": "It is not listed.",
    }  # fmt: skip
    pack = {"version": 1, "name": "One", "policy": "card.yaml", "scenarios": [row]}
    (folder / "pack.yaml").write_text(json.dumps(pack))
    return folder / "pack.yaml"


def test_the_shipped_bank_is_replayed_and_a_record_made_with_it_verifies_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = shipped_bank()
    replay = replay_on(bank)
    replayed = replay(POLICY)
    assert replayed.total + replayed.waiting == 171  # the bank's rows
    assert replayed.right + replayed.leaks + replayed.breakages + replayed.unwatched == replayed.total
    file = tmp_path / "half-day.json"

    def run(**options: Any) -> int:
        usual = {"file": file, "key": None, "own_pack": None, "json": True}
        return lab_verify.run(argparse.Namespace(**{**usual, **options}))

    file.write_bytes(make(bank=Played(name=bank.name, digest=bank.digest), replayed=replayed))
    assert run(json=False) == 0
    assert "computed again" in capsys.readouterr().out
    assert run(own_pack=bank.file, json=False) == 0
    assert "(computed again)" in capsys.readouterr().out
    assert run(own_pack=_small_pack(tmp_path)) == 5
    assert json.loads(capsys.readouterr().out)["code"] == "other-bank"
    assert run(key=fingerprint(KEY.public_key())) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verifies"], told["key_pinned"], told["learner"]) == (True, True, "A. Learner")
    data = file.read_bytes()
    file.write_bytes(data[:300] + bytes([data[300] ^ 1]) + data[301:])
    assert run() == 5
    better = msgspec.structs.replace(replayed, leaks=0, breakages=0)
    file.write_bytes(make(bank=Played(name=bank.name, digest=bank.digest), replayed=better))
    assert run() == 5
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["code"] == "wrong-numbers"


def test_an_object_for_programs_has_all_but_the_key() -> None:
    told = record_object(verify(make()))
    json.dumps(told)
    assert told["policy"]["replay"]["leaks"] == 1
    assert "publicKey" not in told
