"""`stockade decide` as a person or a script calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockade.cli.main import main

POLICY = """\
version: 1
rules:
  - {allow: docs.test, class: docs}
  - {allow: setup.test, phases: [setup]}
  - {allow: judge.test, identities: [grader]}
exec: {allow: [python3]}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


def decided(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["decide", "--json", *words]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_metadata_is_denied_without_any_policy(capsys: pytest.CaptureFixture[str]) -> None:
    answer = decided(capsys, "GET", "http://169.254.169.254/latest/meta-data/")
    assert (answer["verdict"], answer["risk"]) == ("deny", "metadata-credentials")


def test_a_name_is_judged_alone_without_an_address(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = decided(capsys, "-p", policy, "GET", "https://docs.test/")
    assert (answer["verdict"], answer["address"], answer["name"]) == ("allow", None, "docs.test")


def test_the_answer_has_the_keys_of_a_record(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys = (
        "verdict risk control reason rule class phase identity entry name address port method path why policy"
    )
    answer = decided(capsys, "-p", policy, "GET", "https://docs.test/a")
    assert set(keys.split()) <= set(answer)
    assert answer["rule"] == "policy.yaml:3"
    assert (answer["class"], answer["path"], answer["port"]) == ("docs", "/a", 443)


def test_every_address_is_judged(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = ("GET", "https://docs.test/")
    public = decided(capsys, "-p", policy, "--address", "93.184.216.34", *line)
    assert (public["verdict"], public["address"]) == ("allow", "93.184.216.34")
    mixed = decided(capsys, "-p", policy, "--address", "93.184.216.34", "--address", "10.0.0.1", *line)
    assert (mixed["verdict"], mixed["address"], mixed["reason"]) == ("deny", "10.0.0.1", "private-address")


def test_options_may_stand_behind_the_attempt_but_not_behind_a_command(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = decided(capsys, "-p", policy, "GET", "https://setup.test/", "--phase", "setup")
    assert behind["verdict"] == "allow"
    command = decided(capsys, "-p", policy, "exec", "python3", "--phase", "setup", "--json")
    assert command["argv"] == ["python3", "--phase", "setup", "--json"]
    assert command["phase"] == "work"


def test_two_hyphens_may_part_options_from_the_attempt(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decided(capsys, "-p", policy, "--", "dns", "docs.test")["entry"] == "dns"


def test_phase_and_identity_count(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert decided(capsys, "-p", policy, "GET", "https://setup.test/")["reason"] == "wrong-phase"
    grader = decided(capsys, "-p", policy, "--identity", "grader", "GET", "https://judge.test/")
    assert (grader["verdict"], grader["identity"]) == ("allow", "grader")


def test_other_names_and_the_hop_before_count(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = ("GET", "https://docs.test/")
    mismatch = decided(capsys, "-p", policy, "--sni", "evil.test", *line)
    assert (mismatch["reason"], mismatch["sni"]) == ("name-mismatch", "evil.test")
    assert decided(capsys, "-p", policy, "--host", "evil.test", *line)["reason"] == "name-mismatch"
    hop = decided(capsys, "-p", policy, "--from", "https://a.test/", *line)
    assert (hop["verdict"], hop["control"]) == ("allow", "recheck-redirects")


def test_the_exit_code_tells_the_verdict_only_if_asked(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decide", "-p", policy, "GET", "https://evil.test/"]) == 0
    assert main(["decide", "-p", policy, "--exit-code", "GET", "https://evil.test/"]) == 10
    assert main(["decide", "-p", policy, "--exit-code", "GET", "https://docs.test/"]) == 0
    capsys.readouterr()


def test_the_text_says_verdict_reason_rule_and_why(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["decide", "-p", policy, "GET", "https://evil.test/"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("deny")
    assert 2 <= len(lines) <= 5
    text = "\n".join(lines)
    for part in ("evil.test", "not-listed", "builtin:default-deny", "- allow: evil.test"):
        assert part in text


@pytest.mark.parametrize(
    "words",
    [
        ["decide"],
        ["decide", "GET"],
        ["decide", "--address", "ten", "GET", "http://a.test/"],
        ["decide", "--from", "nowhere", "GET", "http://a.test/"],
        ["decide", "-p", "/nonexistent.yaml", "GET", "http://a.test/"],
    ],
)
def test_input_that_cannot_be_used_exits_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().out == ""


def test_an_ssh_rule_answers_for_the_bare_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nrules: [{allow: git.test, ports: [22], protocol: ssh}]\n")
    assert decided(capsys, "-p", str(path), "tcp", "git.test", "22")["verdict"] == "allow"


def test_the_text_says_what_was_not_judged(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> str:
        main(["decide", "-p", policy, *words])
        return capsys.readouterr().out

    assert "class  docs" in shown("GET", "https://docs.test/")
    assert "--address ADDR" in shown("GET", "https://docs.test/")
    assert "note" not in shown("--address", "93.184.216.34", "GET", "https://docs.test/")
    assert "note" not in shown("dns", "docs.test")
    assert "code     closed" in shown("exec", "no-such-program")
    assert "the name alone was judged" in shown("exec", "no-such-program")
    assert "the name alone was judged" not in shown("exec", "/bin/sh")
    assert "is permitted; this is about what it starts" in shown("exec", "/bin/sh")


def script(path: Path, line: str) -> Path:
    path.write_text(f"{line}\n")
    path.chmod(0o755)
    return path


def test_a_command_is_judged_by_its_file_as_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link to a listed program is that program; a copy by its name is not."""
    monkeypatch.chdir(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nexec: {allow: [cat], code: jit}\n")
    (tmp_path / "link").symlink_to("/bin/cat")
    (tmp_path / "cat").write_bytes(Path("/bin/cat").read_bytes())
    (tmp_path / "cat").chmod(0o755)
    linked = decided(capsys, "-p", str(policy), "exec", "./link", "x")
    assert (linked["verdict"], linked["argv"], linked["rule"]) == ("allow", ["./link", "x"], "policy.yaml:2")
    assert (linked["file"], linked["code"]) == (str(Path("/bin/cat").resolve()), "jit")
    copied = decided(capsys, "-p", str(policy), "exec", "./cat", "x")
    assert (copied["verdict"], copied["risk"]) == ("deny", "boundary-tampering")
    assert copied["file"] == str(tmp_path / "cat")


def test_a_script_is_named_with_its_interpreter_and_what_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script(tmp_path / "s.sh", "#!/bin/sh -e")
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nexec: {allow: [sh]}\n")
    refused = decided(capsys, "-p", str(policy), "exec", "./s.sh")
    assert (refused["verdict"], refused["interpreter"]) == ("deny", "/bin/sh -e")
    assert f"run it as `sh -e ./s.sh`, or add `exec: {{allow: [{tmp_path}/s.sh]}}`" in refused["why"]
    policy.write_text(f"version: 1\nexec: {{allow: [{tmp_path}/s.sh]}}\n")
    assert decided(capsys, "-p", str(policy), "exec", "./s.sh")["verdict"] == "allow"
    assert decided(capsys, "-p", str(policy), "exec", "sh", "-c", "id")["verdict"] == "allow"
    main(["decide", "-p", str(policy), "exec", "./s.sh"])
    assert "script   for /bin/sh -e" in capsys.readouterr().out


def test_a_listed_pattern_covers_files_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a/one", "a/two", "b/one"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        script(tmp_path / name, "#!/bin/cat")
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\nexec: {{allow: ['{tmp_path}/*/one']}}\n")
    verdicts = [
        decided(capsys, "-p", str(policy), "exec", str(tmp_path / name))["verdict"]
        for name in ("a/one", "b/one", "a/two")
    ]
    assert verdicts == ["allow", "allow", "deny"]
