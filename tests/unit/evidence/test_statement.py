"""The nine points: what they say of a proof, in a form that other tools read."""

from __future__ import annotations

import hashlib
import json
import resource
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from doubles.made_up_proof import RUN, make_circumstances, make_judged, make_proof, make_technique
from stockade.errors import HostError, InternalError, UserError
from stockade.evidence.envelope import parse_envelope
from stockade.evidence.keys import load_or_make_key
from stockade.evidence.manifest import list_files
from stockade.evidence.record import OpenRecord
from stockade.evidence.schema import make_schema
from stockade.evidence.statement import make_claim, summarize, tell_reproduction
from stockade.prove.technique import Layer
from stockade.prove.trial import Result

POINTS = [
    "claim", "subject", "environment", "procedure", "expectation", "observation", "verdict", "integrity",
    "reproduction",
]  # fmt: skip


@pytest.fixture(scope="session")
def statement(sealed_once: Path) -> Any:
    return json.loads(parse_envelope((sealed_once / "evidence.json").read_bytes()).payload)


@pytest.fixture(scope="session")
def points(statement: Any) -> Any:
    return statement["predicate"]["urn:stockade:evidence:v1"]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_statement_is_an_in_toto_test_result(statement: Any) -> None:
    """Field names and values of in-toto's Statement v1 and test-result v0.1."""
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    predicate = statement["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["passedTests"] == ["one-blocked", "one-browser"]
    assert predicate["failedTests"] == ["one-leaked", "one-odd"]
    assert {entry["name"] for entry in predicate["configuration"]} == {"policy", "catalogue"}


def test_it_has_the_nine_points(points: Any) -> None:
    assert sorted(points) == sorted(POINTS)


def test_the_predicate_fits_the_published_schema(statement: Any) -> None:
    schema = make_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(statement["predicate"], schema)
    published = Path(__file__).parents[3] / "docs" / "reference" / "evidence.schema.json"
    assert json.loads(published.read_text()) == schema


@pytest.mark.parametrize("point", POINTS)
def test_the_schema_refuses_a_record_without_one_of_the_points(statement: Any, point: str) -> None:
    changed = json.loads(json.dumps(statement["predicate"]))
    del changed["urn:stockade:evidence:v1"][point]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, make_schema())


def test_the_schema_refuses_a_result_that_nobody_knows(statement: Any) -> None:
    changed = json.loads(json.dumps(statement["predicate"]))
    changed["urn:stockade:evidence:v1"]["verdict"]["cases"][0]["result"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, make_schema())


def test_subjects_name_each_file_and_what_was_tested(statement: Any, sealed_once: Path) -> None:
    named = {entry["name"]: entry["digest"] for entry in statement["subject"]}
    for path in sealed_once.rglob("*"):
        if path.is_file() and path.name != "evidence.json":
            assert named[f"evidence/{path.relative_to(sealed_once)}"] == {"sha256": digest(path)}
    tested = {name for name in named if name.startswith("under-test/")}
    assert {"under-test/code", "under-test/policy", "under-test/catalogue"} <= tested


def test_what_could_not_be_tried_is_no_part_of_the_claim(points: Any) -> None:
    assert points["claim"]["sentence"].startswith("Attack techniques tried: 4.")
    assert points["verdict"]["counts"] == {"blocked": 2, "leaked": 1, "inconclusive": 1, "not-supported": 1}


def test_the_claim_names_layers_and_threats() -> None:
    techniques = [make_technique("a", layer=Layer.ROOM, references=("CWE-918", "RFC 1")), make_technique("b")]
    judged = [make_judged("a", Result.BLOCKED, ""), make_judged("b", Result.NOT_SUPPORTED, "no")]
    claim = make_claim(techniques, judged)
    assert (claim.layers, claim.threats) == (["room"], ["CWE-918", "RFC 1", "metadata-credentials"])


@pytest.mark.parametrize(
    ("circumstances", "word"),
    [
        ({"is_passed": True}, "PASSED"),
        ({"is_passed": True, "is_whole": False}, "WARNED"),
        ({"is_passed": True, "layers_off": ("room",)}, "WARNED"),
        ({"is_passed": False}, "FAILED"),
        ({"is_passed": False, "is_whole": False}, "FAILED"),
    ],
)
def test_only_the_whole_catalogue_with_all_layers_passes(circumstances: Any, word: str) -> None:
    assert summarize(make_circumstances(**circumstances)) == word


def test_the_expectation_was_there_before_the_runs(points: Any, sealed_once: Path) -> None:
    expectation = points["expectation"]
    assert expectation["sha256"] == digest(sealed_once / "expectation.json")
    assert (expectation["runs"], expectation["runsThatNameIt"]) == (1, 1)
    written = json.loads((sealed_once / "expectation.json").read_text())
    assert [one["id"] for one in written["techniques"]] == [one.id for one in make_proof()[0]]
    first = written["techniques"][0]
    assert (first["layer"], first["refusal"]) == ("gateway", ["reason metadata-address"])
    assert first["worked_if_seen"] == [{"what": "tcp", "address": "169.254.169.254"}]
    assert "result" not in (sealed_once / "expectation.json").read_text()


def test_a_ledger_that_does_not_name_the_expectation_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doubles.made_up_proof import write_files_of_lanes

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    techniques, judged = make_proof()
    record = OpenRecord(tmp_path / "evidence", techniques, policy="version: 1\n")
    write_files_of_lanes(tmp_path / "evidence", "0" * 64)
    record.seal(judged, make_circumstances())
    payload = parse_envelope((tmp_path / "evidence" / "evidence.json").read_bytes()).payload
    expectation = json.loads(payload)["predicate"]["urn:stockade:evidence:v1"]["expectation"]
    assert (expectation["runs"], expectation["runsThatNameIt"]) == (1, 0)


def test_observation_counts_both_controls(points: Any) -> None:
    observation = points["observation"]
    assert (observation["arrivedInTheOpen"], observation["arrivedContained"]) == (5, 1)
    blocked = observation["cases"][0]
    assert blocked["control"]["arrived"] == 1
    assert blocked["attempt"]["arrived"] == 0
    assert blocked["attempt"]["refusals"] == 1 + 4 + 1  # one record stands for itself and three equal ones
    assert blocked["attempt"]["kernelAgrees"] is True


def test_verdicts_say_what_is_not_covered_and_when_they_end(points: Any) -> None:
    verdict = points["verdict"]
    assert verdict["cases"][0]["notCovered"] == "Other spellings."
    assert verdict["validUntil"] == "2027-02-28"  # 30 November and 90 days
    assert verdict["limits"]
    assert verdict["knownBypasses"]


def test_each_ledger_file_is_digested_and_the_record_says_that_it_is_not_signed(
    points: Any, sealed_once: Path
) -> None:
    integrity = points["integrity"]
    (ledger,) = integrity["ledgers"]
    assert ledger["sha256"] == digest(sealed_once / "ledger" / RUN / "records.jsonl")
    assert (ledger["run"], ledger["records"], ledger["isClosed"]) == (RUN, 2, True)
    assert integrity["ledgerIsSigned"] is False
    assert "not signed" in integrity["note"]


def test_no_model_is_said_to_have_refused_anything(points: Any) -> None:
    assert "none refused anything" in points["procedure"]["model"]
    assert "obedient agent" in points["procedure"]["driver"]


def test_the_review_has_its_eight_questions(points: Any) -> None:
    assert [one["text"] for one in points["reproduction"]["questions"]] == [
        "What?", "Why?", "How?", "What if?", "Why not?", "How can I prove it?", "Where can it break?",
        "What have I learned?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (("stockade", "prove", "--out", "D", "--only", "dns"), "stockade prove --out NEW_DIR --only dns"),
        (("stockade", "prove", "--out=D"), "stockade prove --out=NEW_DIR"),
    ],
)
def test_the_command_to_do_it_again_writes_to_another_folder(command: tuple[str, ...], again: str) -> None:
    assert " ".join(tell_reproduction(make_circumstances(command=command)).again) == again


# --- the same again, and what stops it -------------------------------------------------------------


def test_equal_values_give_equal_bytes(sealed_once: Path) -> None:
    from stockade.evidence.ledgers import read_ledgers
    from stockade.evidence.points import Statement
    from stockade.evidence.statement import Found, build_statement, encode_statement

    signed = parse_envelope((sealed_once / "evidence.json").read_bytes()).payload
    points = msgspec.json.decode(signed, type=Statement).predicate.points
    techniques, judged = make_proof()

    def build() -> bytes:
        return encode_statement(
            build_statement(
                Found(
                    techniques=tuple(techniques),
                    judged=tuple(judged),
                    circumstances=make_circumstances(),
                    subject=points.subject,
                    environment=points.environment,
                    ledgers=tuple(read_ledgers(sealed_once)),
                    files=list_files(sealed_once),
                    expectation_file="expectation.json",
                    signer=points.integrity.signer,
                )
            )
        )

    first = build()
    assert first == build()
    told, again = json.loads(signed), json.loads(first)
    for one in (told, again):  # the record's own times are of when it was opened
        del one["predicate"]["urn:stockade:evidence:v1"]["procedure"]
    assert told == again


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    full = tmp_path / "full"
    full.mkdir()
    (full / "x").write_text("")
    with pytest.raises(UserError, match="not empty"):
        OpenRecord(full, [], policy="")
    (full / "x").unlink()
    OpenRecord(full, [], policy="")


def test_of_two_proofs_that_open_one_folder_the_second_leaves_the_first_s_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    OpenRecord(tmp_path / "evidence", [], policy="first")
    monkeypatch.setattr("stockade.evidence.record._take_folder", lambda _folder: None)  # both saw it empty
    with pytest.raises(UserError, match="not empty"):
        OpenRecord(tmp_path / "evidence", [], policy="second")
    assert (tmp_path / "evidence" / "policy.yaml").read_text() == "first"


@pytest.mark.parametrize("room_bytes", [100, 5000])
def test_where_there_is_no_room_the_operator_is_told_and_nothing_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    """A limit on a file's size (setrlimit(2), EFBIG) stands for a full disk; the first file has some 2 kB."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    techniques, judged = make_proof()
    load_or_make_key()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, before[1]))
    try:
        with pytest.raises(HostError, match="cannot write"):
            OpenRecord(tmp_path / "evidence", techniques, policy="").seal(judged, make_circumstances())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "evidence" / "evidence.json").exists()
    if room_bytes == 100:
        assert list((tmp_path / "evidence").iterdir()) == []


def test_a_link_in_the_folder_is_not_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    record = OpenRecord(tmp_path / "evidence", make_proof()[0], policy="")
    (tmp_path / "evidence" / "link").symlink_to("/etc/hostname")
    with pytest.raises(InternalError, match="link"):
        record.seal(make_proof()[1], make_circumstances())
    assert not (tmp_path / "evidence" / "evidence.json").exists()


def test_an_expectation_that_was_changed_after_the_fact_is_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    record = OpenRecord(tmp_path / "evidence", make_proof()[0], policy="")
    (tmp_path / "evidence" / "expectation.json").write_text("{}")
    with pytest.raises(InternalError, match="changed"):
        record.seal(make_proof()[1], make_circumstances())
    assert not (tmp_path / "evidence" / "evidence.json").exists()
