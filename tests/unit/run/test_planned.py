"""The plan as one object: all of what lines for people leave out, and nothing that JSON cannot hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stockade.cli.main import main

pytestmark = pytest.mark.needs("bwrap")


def test_every_program_with_its_reason_and_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    policy = tmp_path / "p.yaml"
    policy.write_text("version: 1\ninclude: [exec/python]\nexec: {allow: [ls, no-such-program]}\n")
    asked = ["run", "--dry-run", "--json", "-p", str(policy), "--env", "ODD=\udcff", "--", "cat", "x"]
    assert main(asked) == 0
    plan = json.loads(capsysbinary.readouterr().out)
    assert (plan["argv"], plan["folder"]) == (["cat", "x"], str(tmp_path / "work"))
    commands = plan["commands"]
    assert (commands["code"], commands["unix_sockets"], commands["missing"]) == (
        "closed",
        True,
        ["no-such-program"],
    )
    by_why = {program["why"]: program for program in commands["programs"]}
    assert by_why["launched"]["path"] == str(Path("/usr/bin/cat").resolve())
    assert by_why["exec: ls"]["origin"] == "p.yaml:3"
    assert by_why["exec: python3"]["origin"].startswith("preset:exec/python:")
    assert "/usr/lib" in commands["code_from"]
    assert {"kind": "ro-bind", "target": "/usr", "source": "/usr"}.items() <= plan["view"][0].items()
    assert plan["environment"]["ODD"] == "\ufffd"


def test_the_object_is_of_a_plan_and_not_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--json", "--", "true"]) == 102
    said = capsys.readouterr().err
    assert "json-without-plan" in said
    assert "--report" in said
