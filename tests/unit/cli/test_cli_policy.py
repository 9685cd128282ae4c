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
    assert out.endswith(f"{policy}: 1 warning, 1 note\n")  # the note: without `exec:` nothing else runs


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


def test_show_says_what_exec_means(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(text: str) -> str:
        policy.write_text(f"version: 1\n{text}")
        assert main(["policy", "show", str(policy)]) == 0
        return capsys.readouterr().out

    bare = shown("rules: []\n")
    assert "only the launched command may run" in bare
    assert "include: [exec/coding]" in bare
    assert "every program may run; code jit; Unix sockets refused" in shown("exec: {mode: any}\n")
    listed = shown("include: [exec/python]\nexec: {allow: [git, /usr/lib/git-core/*]}\n")
    assert "what is listed may run; code closed; Unix sockets permitted; libraries .venv" in listed
    assert "policy.yaml  git /usr/lib/git-core/*\n" in listed
    assert "preset:exec/python  python3 python pip3 pip uname\n" in listed


def test_show_gives_the_line_of_each_program_and_diff_tells_them_apart(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy.write_text("version: 1\nexec:\n  allow:\n    - git\n    - make\n")
    assert main(["policy", "show", "--json", str(policy)]) == 0
    assert json.loads(capsys.readouterr().out)["origins"]["exec.allow"] == ["policy.yaml:4", "policy.yaml:5"]
    other = policy.with_name("other.yaml")
    other.write_text("version: 1\nexec: {allow: [make], code: jit}\n")
    assert main(["policy", "diff", str(policy), str(other)]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert lines == [
        "- policy.yaml:4: exec.allow: git",
        "- policy.yaml:3: exec: mode listed, code closed, unix-sockets false",
        "+ other.yaml:2: exec: mode listed, code jit, unix-sockets false",
    ]


def test_lint_says_what_a_run_would_refuse(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside_tls = "  - {proxy: api.test, methods: [GET]}\n"
    policy.write_text(GOOD + inside_tls + "limits: {memory: 2GiB}\n")
    assert main(["policy", "lint", str(policy), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [row for row in found if row["origin"] == "policy.yaml:6"] == []  # that is for the host to say
    assert [row["code"] for row in found if row["origin"] == "policy.yaml:5"] == ["inspection-needed"]


def test_a_folder_is_named_in_its_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["policy", "lint", "."]) == 2
    assert capsys.readouterr().out.startswith(".: error: file-not-regular: ")


@pytest.mark.parametrize(
    ("rule", "remedy"),
    [
        ("allow: docs.test:8443", "`ports: [8443]` with `protocol:`"),
        ("allow: docs.test:443", "`ports: [443]`\n"),
        ("allow: https://docs.test/a", "`paths: [/a]`; an allow rule cannot see paths"),
        ("allow: docs.test, port: [1]", "is no key of a rule"),
    ],
)
def test_a_remedy_leads_to_a_file_that_loads(
    policy: Path, rule: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    policy.write_text(f"version: 1\nrules:\n  - {rule.replace(', ', chr(10) + '    ')}\n")
    assert main(["policy", "lint", str(policy)]) == 2
    assert remedy in capsys.readouterr().out


def test_a_missing_key_is_shown_as_it_may_look(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy.write_text("version: 1\ninternal:\n  - {host: app.test, networks: [10.20.0.0/24]}\n")
    assert main(["policy", "lint", str(policy)]) == 2
    assert "write ports: [443]" in capsys.readouterr().out
