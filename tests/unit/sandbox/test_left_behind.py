"""The review after a run: what it names when it cannot see everything."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from stockade.sandbox import left_behind
from stockade.sandbox.left_behind import Before, review
from stockade.sandbox.survey import survey


def test_a_folder_with_more_names_than_we_look_at_is_named_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A worker may hide something behind a million files.
    for number in range(6):
        (tmp_path / str(number)).write_text("")
    before = Before(run_id="test", protected=frozenset())
    assert review(str(tmp_path), before) == []
    monkeypatch.setattr(left_behind, "survey", partial(survey, limit=5))
    assert review(str(tmp_path), before) == [str(tmp_path)]
