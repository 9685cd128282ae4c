"""Attacks through the browser, tried by a lane of the proof: blocked, and leaked with a layer off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stockade.errors import ContainmentError
from stockade.prove import open_browser
from stockade.prove.judge import judge
from stockade.prove.lane import Lane
from stockade.prove.technique import load_catalogue
from stockade.prove.trial import Order, Result

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.needs("world", "userns", "bwrap", "room", "chromium"),
]

CATALOGUE = {technique.id: technique for technique in load_catalogue()}


@pytest.fixture(scope="module")
def lane() -> Iterator[Lane]:
    lane = Lane()
    yield lane
    lane.close()


@pytest.mark.parametrize(
    ("attack", "stopped_by"),
    [
        ("browser-page-text-metadata", "gateway: metadata-address"),
        ("browser-webrtc-stun", "room: literal-address"),
        ("browser-file", "view: ERR_FILE_NOT_FOUND"),
        ("browser-terminal", "notify: program-not-listed"),
    ],
)
def test_it_is_blocked_and_the_transcript_shows_that_the_agent_tried(
    lane: Lane, tmp_path: Path, attack: str, stopped_by: str
) -> None:
    trial = lane.perform(Order(id=attack, evidence=str(tmp_path)))
    judgement = judge(CATALOGUE[attack], trial)
    assert (judgement.result, judgement.stopped_by) == (Result.BLOCKED, stopped_by), judgement.why
    assert trial.control.arrived
    for one in (trial.control, trial.attempt):
        transcript = json.loads((tmp_path / one.files["transcript"]).read_text())
        assert len(transcript["steps"]) == len(one.said) - 1
        for name in ("before", "after"):
            assert (tmp_path / one.files[name]).read_bytes().startswith(b"\x89PNG")
    assert trial.attempt.run == transcript["run"]


@pytest.mark.parametrize("attack", ["browser-fetch", "browser-devtools"])
def test_without_the_room_it_arrives(lane: Lane, tmp_path: Path, attack: str) -> None:
    order = Order(id=attack, evidence=str(tmp_path), layers_off=("room",))
    trial = lane.perform(order)
    assert trial.attempt.arrived
    assert judge(CATALOGUE[attack], trial).result is Result.LEAKED


def test_a_browser_without_containment_starts_nowhere_but_in_the_range(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse() -> None:
        raise ContainmentError("not-sealed", "there is a way out")

    monkeypatch.setattr(open_browser, "sealed_proof", refuse)
    with pytest.raises(ContainmentError, match="not-sealed"):
        open_browser.OpenPlace(tmp_path)
