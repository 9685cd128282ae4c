"""A lane: what goes wrong in one trial costs that trial alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.prove.judge import judge
from stockade.prove.lane import Lane, find_missing
from stockade.prove.technique import load_catalogue
from stockade.prove.trial import Order, Result

CATALOGUE = {technique.id: technique for technique in load_catalogue()}


class BrokenLane(Lane):
    """Knows the catalogue and has nothing to try it in."""

    def __init__(self, folder: Path) -> None:
        self._catalogue = CATALOGUE
        self._base = folder


@pytest.mark.parametrize("name", ["metadata-decimal", "browser-fetch"])
def test_a_fault_while_one_is_tried_is_told_in_its_trial_and_the_lane_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.prove.lane.find_missing", lambda needs: None)
    trial = BrokenLane(tmp_path).perform(Order(id=name, evidence=str(tmp_path)))
    judgement = judge(CATALOGUE[name], trial)
    if trial.not_supported is not None:  # no browser on this machine: said before anything is tried
        assert judgement.result is Result.NOT_SUPPORTED
        return
    assert judgement.result is Result.INCONCLUSIVE
    assert "AttributeError" in judgement.why
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_supported_is_not_tried(tmp_path: Path) -> None:
    waiting = next((one for one in CATALOGUE.values() if one.not_supported), None)
    if waiting is None:
        pytest.skip("everything in the catalogue is supported")
    trial = BrokenLane(tmp_path).perform(Order(id=waiting.id, evidence=str(tmp_path)))
    assert trial.not_supported == waiting.not_supported


def test_a_program_that_is_missing_is_named_with_how_to_get_it() -> None:
    assert find_missing(("sh",)) is None
    assert find_missing(("sh", "no-such-program")) == "needs no-such-program: apt install no-such-program"
