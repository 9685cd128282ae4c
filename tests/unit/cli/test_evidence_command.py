"""`stockade evidence` and the evidence options of `stockade prove`: what is printed, and the exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from doubles.made_up_proof import seal_proof
from stockade.cli.main import main
from stockade.errors import HostError
from stockade.evidence.keys import fingerprint, load_or_make_key
from stockade.evidence.questions import QUESTIONS

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        return seal_proof(tmp_path_factory.mktemp("sealed") / "evidence").folder


@pytest.fixture(autouse=True)
def own_key(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def unreviewed(folder: Path) -> Path:
    (folder / "review.json").unlink(missing_ok=True)
    return folder


def test_verify_says_whose_key_it_was_and_that_nobody_pinned_it(unreviewed: Path, capsys: Captured) -> None:
    assert main(["evidence", "verify", str(unreviewed)]) == 0
    out = capsys.readouterr().out
    assert "11 files are as they were signed" not in out
    assert "10 files are as they were signed" in out
    assert "key not pinned" in out
    assert "it says: FAILED: 2 blocked, 1 leaked, 1 inconclusive, 1 not-supported" in out
    assert "review: none yet" in out


def test_verify_with_a_key_pins_it_and_refuses_another(unreviewed: Path, capsys: Captured) -> None:
    main(["evidence", "verify", str(unreviewed), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["verifies"], found["key_pinned"], found["faults"]) == (True, False, [])
    assert main(["evidence", "verify", str(unreviewed), "--key", found["signed_by"]]) == 0
    assert "key not pinned" not in capsys.readouterr().out
    assert main(["evidence", "verify", str(unreviewed), "--key", "0" * 64]) == 5
    assert main(["evidence", "verify", str(unreviewed), "--key", "short"]) == 2


def test_verify_names_the_changed_file_and_exits_5(unreviewed: Path, capsys: Captured) -> None:
    path = unreviewed / "junit.xml"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"one-leaked", b"one-LEAKED"))
    try:
        assert main(["evidence", "verify", str(unreviewed)]) == 5
        assert "FAULT junit.xml: its content is not what was signed" in capsys.readouterr().out
        assert main(["evidence", "show", str(unreviewed)]) == 5
        assert main(["evidence", "review", str(unreviewed)]) == 5
    finally:
        path.write_bytes(before)
    assert main(["evidence", "verify", str(unreviewed)]) == 0


def test_a_folder_without_a_signed_record_is_open(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "expectation.json").write_text("{}")
    assert main(["evidence", "verify", str(tmp_path)]) == 6
    assert main(["evidence", "verify", str(tmp_path), "--json"]) == 6
    assert main(["evidence", "show", str(tmp_path)]) == 6
    assert "open" in capsys.readouterr().out


def test_a_folder_that_is_missing_is_the_caller_s_fault(tmp_path: Path) -> None:
    assert main(["evidence", "verify", str(tmp_path / "x")]) == 2
    assert main(["evidence", "show", str(tmp_path / "x")]) == 2


def test_show_prints_the_statement_and_schema_its_schema(unreviewed: Path, capsys: Captured) -> None:
    import jsonschema

    assert main(["evidence", "show", str(unreviewed)]) == 0
    statement = json.loads(capsys.readouterr().out)
    assert main(["evidence", "schema"]) == 0
    jsonschema.validate(statement["predicate"], json.loads(capsys.readouterr().out))


# --- review -----------------------------------------------------------------------------------------


def answers_file(tmp_path: Path) -> Path:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({question.key: f"Because of {question.key}." for question in QUESTIONS}))
    return path


def test_without_answers_a_form_is_printed_that_takes_them(
    unreviewed: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(["evidence", "review", str(unreviewed)]) == 0
    form = capsys.readouterr().out
    for question in QUESTIONS:
        assert f"# {question.text}" in form
    assert not (unreviewed / "review.json").exists()
    path = tmp_path / "form.yaml"
    path.write_text(form)
    assert main(["evidence", "review", str(unreviewed), "--answers", str(path)]) == 2  # nothing is filled in
    path.write_text(form.replace(": |\n  \n", ": |\n  An answer.\n").removesuffix("  \n") + "  An answer.\n")
    assert main(["evidence", "review", str(unreviewed), "--answers", str(path)]) == 0


def test_on_a_terminal_the_questions_are_asked(
    unreviewed: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    typed = "".join(f"first of {question.key}\nsecond\n\n" for question in QUESTIONS)
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert main(["evidence", "review", str(unreviewed)]) == 0
    assert "What if? What if one layer were missing" in capsys.readouterr().err
    main(["evidence", "review", str(unreviewed), "--json"])
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert answers["why-not"] == "first of why-not\nsecond"
    (unreviewed / "review.json").unlink()
    monkeypatch.setattr("sys.stdin", Terminal("\n" * 8))
    assert main(["evidence", "review", str(unreviewed)]) == 2
    assert not (unreviewed / "review.json").exists()


def test_a_review_is_signed_with_the_reviewer_s_key_and_shown(
    unreviewed: Path, tmp_path: Path, capsys: Captured
) -> None:
    answers = ["--answers", str(answers_file(tmp_path)), "--reviewer", "A. Reviewer"]
    assert main(["evidence", "review", str(unreviewed), *answers]) == 0
    capsys.readouterr()
    own = fingerprint(load_or_make_key().public_key())
    assert main(["evidence", "verify", str(unreviewed)]) == 0
    assert "review: by 'A. Reviewer' on 20" in (out := capsys.readouterr().out)
    assert own in out
    assert main(["evidence", "review", str(unreviewed)]) == 0
    assert "What if?\n  Because of what-if." in capsys.readouterr().out
    assert main(["evidence", "review", str(unreviewed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signed_by"] == own


def test_an_earlier_review_is_not_overwritten_without_being_asked(
    unreviewed: Path, tmp_path: Path, capsys: Captured
) -> None:
    answers = ["--answers", str(answers_file(tmp_path))]
    assert main(["evidence", "review", str(unreviewed), *answers]) == 0
    first = (unreviewed / "review.json").read_bytes()
    assert main(["evidence", "review", str(unreviewed), *answers]) == 2
    assert (unreviewed / "review.json").read_bytes() == first
    assert main(["evidence", "review", str(unreviewed), *answers, "--replace", "--reviewer", "B"]) == 0
    assert (unreviewed / "review.json").read_bytes() != first
    (unreviewed / "review.json").write_bytes(b"damaged")
    assert main(["evidence", "verify", str(unreviewed)]) == 5
    assert main(["evidence", "review", str(unreviewed), *answers]) == 5
    assert main(["evidence", "review", str(unreviewed), *answers, "--replace"]) == 0
    assert main(["evidence", "verify", str(unreviewed)]) == 0


# --- prove --out --------------------------------------------------------------------------------------


def test_prove_refuses_a_folder_in_use_before_it_tries_anything(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.prove.proof.run_proof", lambda *_, **__: pytest.fail("it tried"))
    (tmp_path / "kept").write_text("x")
    assert main(["prove", "--only", "metadata-decimal", "--out", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err


def test_prove_refuses_a_key_that_it_cannot_use_before_it_tries_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.prove.proof.run_proof", lambda *_, **__: pytest.fail("it tried"))
    key = ["--sign-key", str(tmp_path / "missing")]
    assert main(["prove", "--only", "metadata-decimal", "--out", str(tmp_path / "new"), *key]) == 2
    assert not (tmp_path / "new").exists()


def test_prove_writes_evidence_of_what_it_saw(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real writer and reader, with a lane that is played: the folder verifies, and the advice works."""
    from doubles.made_up_proof import make_judged, write_files_of_lanes
    from stockade.prove.execution import digest_expectation
    from stockade.prove.trial import Judged, Result

    def play(_: object, evidence: Path, *__: object, **___: object) -> list[Judged]:
        write_files_of_lanes(evidence, digest_expectation(str(evidence)))
        return [make_judged("metadata-decimal", Result.BLOCKED, "why", "gateway: x")]

    monkeypatch.setattr("stockade.prove.proof.run_proof", play)
    out = tmp_path / "new"
    assert main(["prove", "--only", "metadata-decimal", "--out", str(out)]) == 0
    advice = capsys.readouterr().err.splitlines()[-1].removeprefix("stockade: check it with: ").split()
    assert main(advice[1:]) == 0
    assert "the key that you asked for" in capsys.readouterr().out
    main(["evidence", "show", str(out)])
    statement = json.loads(capsys.readouterr().out)
    points = statement["predicate"]["urn:stockade:evidence:v1"]
    assert points["expectation"]["runsThatNameIt"] == 1
    assert statement["predicate"]["result"] == "WARNED"  # a part of the catalogue


@pytest.mark.parametrize("end", [KeyboardInterrupt, HostError("lane-ended", "it ended")])
def test_a_proof_that_comes_to_no_end_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    from doubles.made_up_proof import write_files_of_lanes

    def play(_: object, evidence: Path, *__: object, **___: object) -> None:
        write_files_of_lanes(evidence, "")
        (evidence / "link").symlink_to(tmp_path / "kept")
        raise end

    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    monkeypatch.setattr("stockade.prove.proof.run_proof", play)
    assert main(["prove", "--only", "metadata-decimal", "--out", str(tmp_path / "new")]) != 0
    assert list((tmp_path / "new").iterdir()) == []
    assert (tmp_path / "kept" / "file").exists()
