"""`stockade policy`: data on standard output, exit 0 with warnings, 2 with errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stockade.cli.main import main

GOOD = "version: 1\nrules:\n  - {allow: docs.python.org, class: docs}\n  - allow: '*.github.io'\n"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    return path


def test_lint_with_warnings_exits_0_and_names_file_line_and_code(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "lint", str(policy)]) == 0
    out = capsys.readouterr().out
    assert "policy.yaml:4: warning: wildcard-shared: " in out
    assert out.endswith(f"{policy}: 1 warning\n")


def test_lint_with_errors_exits_2_and_names_all(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy.write_text('version: 1\nrulse: []\nrules:\n  - allow: "*.com"\n')
    assert main(["policy", "lint", str(policy), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["error"] == 2
    assert [(row["code"], row["origin"]) for row in found["findings"]] == [
        ("unknown-key", "policy.yaml:2"),
        ("wildcard-too-broad", "policy.yaml:4"),
    ]


def test_show_gives_a_document_that_loads_to_the_same_digest(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "show", str(policy), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["origins"]["rules"] == ["policy.yaml:3", "policy.yaml:4"]
    copy = tmp_path / "copy.yaml"
    copy.write_text(json.dumps(shown["policy"]))
    assert main(["policy", "show", str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == shown["digest"]


def test_show_prints_every_rule_with_its_origin(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show", str(policy)]) == 0
    out = capsys.readouterr().out
    assert "policy.yaml:3" in out
    assert "digest " in out
    assert "docs.python.org" in out


def test_show_of_a_broken_file_exits_2(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy.write_text("version: 9\n")
    assert main(["policy", "show", str(policy)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "policy.yaml:1: version-unknown" in captured.err


def test_diff_names_what_was_added_and_removed(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        "version: 1\nrules:\n  - {allow: docs.python.org, class: docs}\n  - deny: paste.example\n"
    )
    assert main(["policy", "diff", str(policy), str(other), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["value"]["allow"] for row in found["removed"]] == ["*.github.io"]
    assert [row["value"]["deny"] for row in found["added"]] == ["paste.example"]
    assert main(["policy", "diff", str(policy), str(policy)]) == 0
    assert "the same policy" in capsys.readouterr().out


def test_schema_and_presets_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert main(["policy", "presets", "--json"]) == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert {"python-docs", "exec/browser", "exec/python", "exec/coding", "rubric/harness2"} <= set(names)
    assert main(["policy", "presets", "python-docs"]) == 0
    assert "docs.python.org" in capsys.readouterr().out
    assert main(["policy", "presets", "../../etc/passwd"]) == 2


def test_a_preset_can_be_shown_and_linted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "lint", "preset:rubric/harness2"]) == 0
    assert main(["policy", "show", "preset:exec/browser"]) == 0
    assert "/usr/lib/chromium/chromium" in capsys.readouterr().out
