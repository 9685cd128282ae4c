"""`stockade lab check` as a person or a script calls it; what is tried for real stands in tests/kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stockade.cli.main import main

POLICY = "version: 1\nrules:\n  - {allow: docs.test, class: docs}\n"
PACK = """\
version: 1
name: One event
policy: policy.yaml
scenarios:
  - {id: A1, attempt: GET https://docs.test/, verdict: allow, risk: benign, control: allowlist-exact,
     class: docs, event: e, cue: c, why: w}
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "pack.yaml"
    path.write_text(PACK)
    return path


def test_the_shipped_bank_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "check", "--no-live"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "171 of 171 scenarios" in lines[0]
    assert lines[1] == "waiting for a control, not tried: 49"
    assert lines[-1] == "all agree with their keys; nothing was tried for real"


def test_a_pack_that_agrees(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "check", "--no-live", str(pack)]) == 0
    assert "One event: 1 of 1 scenarios" in capsys.readouterr().out


def test_a_key_that_differs_is_code_2_and_says_which_part(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack.write_text(PACK.replace("risk: benign", "risk: ssrf"))
    assert main(["lab", "check", "--no-live", str(pack)]) == 2
    out = capsys.readouterr().out
    assert "the engine calls the risk benign, the key ssrf" in out
    assert "different: 1" in out


def test_a_pack_that_does_not_load_is_code_2_with_file_and_line(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack.write_text(PACK.replace("verdict: allow", "verdict: alow"))
    assert main(["lab", "check", str(pack)]) == 2
    assert "pack.yaml:5: pack-value: verdict" in capsys.readouterr().err


def test_the_result_as_one_object(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "check", "--no-live", "--json", str(pack)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["code"], report["standings"], report["name"]) == (0, {"agrees": 1}, "One event")
    assert [row["id"] for row in report["rows"]] == ["A1"]


def test_only_chosen_rows_are_checked_and_an_unknown_number_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["lab", "check", "--no-live", "--only", "E001", "--only", "E007"]) == 0
    assert "2 of 171 scenarios" in capsys.readouterr().out
    assert main(["lab", "check", "--no-live", "--only", "E01"]) == 2


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "check", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Stockade scenario pack"


def test_a_host_without_a_range_is_code_3_and_says_what_still_works(
    pack: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "stockade.lab.live.client.bench_command", lambda _: ("/bin/sh", "-c", "echo range: no >&2; exit 3")
    )
    assert main(["lab", "check", str(pack)]) == 3
    said = capsys.readouterr().err
    assert "range: no" in said
    assert "--no-live" in said
