"""Of an attack through the browser: each run behind it has to be closed, and whole."""

from __future__ import annotations

from typing import Any

import pytest

from stockade.prove.browser_execution import choose_closing


def closed(run: str, complete: bool = True) -> dict[str, Any]:
    return {"kind": "run.closed", "run": run, "complete": complete}


@pytest.mark.parametrize(
    ("records", "chosen"),
    [
        ([closed("terminal"), closed("browser")], closed("browser")),
        ([closed("terminal")], {}),
        ([closed("browser")], {}),
        ([], {}),
        ([closed("terminal", complete=False), closed("browser")], closed("terminal", complete=False)),
        ([closed("terminal"), closed("browser", complete=False)], closed("browser", complete=False)),
    ],
)
def test_the_record_of_both_runs_has_to_be_whole(
    records: list[dict[str, Any]], chosen: dict[str, Any]
) -> None:
    attempts = [{"kind": "attempt", "run": "browser"}, *records]
    assert choose_closing(["browser", "terminal"], attempts) == chosen


def test_without_a_terminal_the_browser_s_record_is_enough() -> None:
    assert choose_closing(["browser"], [closed("browser")]) == closed("browser")
    assert choose_closing([], []) == {}
