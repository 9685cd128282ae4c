"""docs/guarantees.md: each promise names tests that exist, or says that it is pending."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
ROWS = re.findall(r"^\| (G\d+) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)


def test_promises_are_numbered_once_and_without_gaps() -> None:
    assert [number for number, _, _ in ROWS] == [f"G{n}" for n in range(1, len(ROWS) + 1)]
    assert len(ROWS) > 10


@pytest.mark.parametrize(("number", "promise", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_each_promise_has_tests_that_exist_or_is_pending(number: str, promise: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w./-]+)(?:::(\w+))?`", tests)
    assert named or tests.startswith("*pending*"), f"{number} has neither tests nor *pending*"
    for path, function in named:
        assert (ROOT / path).exists(), f"{number} names {path}"
        if function:
            assert re.search(rf"def {function}\(", (ROOT / path).read_text()), (
                f"{number} names {path}::{function}"
            )


def test_guidance_refers_to_promises_that_exist() -> None:
    numbers = {row[0] for row in ROWS}
    for page in ("guidance.md",):
        used = set(re.findall(r"\bG\d+\b", (ROOT / "docs" / page).read_text()))
        assert used <= numbers
        assert used
