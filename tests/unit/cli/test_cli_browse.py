"""`stockade browse`: its options and what it says when something is missing. No browser is started here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stockade.browser import places, session
from stockade.browser.transcript import Transcript
from stockade.cli.browse import AGENTS
from stockade.cli.main import main


def test_a_missing_browser_is_named_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "BROWSERS", ("/nowhere/chromium",))
    assert main(["browse", "http://a.test/"]) == 3
    assert "apt install chromium" in capsys.readouterr().err


def test_a_missing_playwright_is_named_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "BROWSERS", ("/bin/sh",))
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    assert main(["browse", "--out", str(tmp_path / "out"), "http://a.test/"]) == 3
    assert "pip install 'stockade[browser]'" in capsys.readouterr().err


def test_an_agent_that_is_a_model_needs_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "BROWSERS", ("/bin/sh",))
    assert main(["browse", "--agent", "openai", "http://a.test/"]) == 2
    assert "--model NAME" in capsys.readouterr().err


def test_a_transcript_is_not_overwritten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(places, "BROWSERS", ("/bin/sh",))
    (tmp_path / "transcript.json").write_text("{}")
    assert main(["browse", "--out", str(tmp_path), "http://a.test/"]) == 2
    assert "out-exists" in capsys.readouterr().err
    assert (tmp_path / "transcript.json").read_text() == "{}"


@pytest.mark.parametrize("policy", [[], ["-p", "browse.yaml"]])
def test_the_end_of_a_session_names_its_record_and_a_policy_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], policy: list[str]
) -> None:
    ended = Transcript(
        prompt="", agent="obedient", run="R", terminal_run="", steps=(), pictures={}, ended="done"
    )
    monkeypatch.setattr(session, "browse", lambda *_: ended)
    assert main(["browse", *policy, "http://a.test/"]) == 0
    said = capsys.readouterr().err
    assert "stockade log --run R --verdict deny" in said
    assert ("no policy was given" in said) is (not policy)


def test_the_command_and_the_session_know_the_same_agents() -> None:
    assert session.AGENTS == AGENTS


@pytest.mark.parametrize("url", ["ftp://files.test/a", "file:///etc/passwd", "allowed.test", ""])
def test_only_the_address_of_a_page_is_opened(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["browse", url]) == 2
    assert "bad-url" in capsys.readouterr().err
