"""docs/reports.md: every public report has a row, and its tests are those that bear its number."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
# The collected cases (2026-11-30), by kind. Numbers that are missing were merged into others there.
CASES = {
    "POLICY": "001 003 004 005 007 009 010 012 014 016 017",
    "NAME": "018 020 021 022 025 027 028 029",
    "ADDR": "030 033 034 037 038 039 041 042 043",
    "DNS": "044 045 046 048 049 051 052 055 057 058",
    "HTTP": "060 062 064 065 067 068 069 071 073 074 075",
    "BYPASS-PATH": "076 077 079 080 082 083 084 085 088",
    "CLIENT": "089 091 093 094 095 097",
    "STREAM": "098 099 101 102 104 107 108",
    "RESOURCE": "109 110 111 113",
    "PROCESS": "114 116 118 119 121 122",
    "ESCAPE": "123 124 125 126 128 130 131 132 134",
    "CONTROL": "136 138 139",
    "EXEC": "141 142 144 145",
    "STARTUP": "147 148 149 150 153 154",
    "BROWSER": "155 157 158",
    "LOG": "160 161 163 164 166 167",
    "EVAL": "169 170 171 174 175",
}
KINDS = {f"R{number}": kind for kind, numbers in CASES.items() for number in numbers.split()}
ROWS = re.findall(
    r"^\| (R\d+) \| ([A-Z-]+) \| (.+?) \| (.+?) \| (.+?) \|$",
    (ROOT / "docs" / "reports.md").read_text(),
    re.MULTILINE,
)


@cache
def numbered_tests() -> dict[str, set[str]]:
    """The tests of the tree by the numbers in their names: ``attacks/test_x.py::test_r017_…``."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in TESTS.rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE):
            for number in re.findall(r"_r(\d{3})(?=_|$)", name):
                found[f"R{number}"].add(f"{file.relative_to(TESTS)}::{name}")
    return found


def test_every_case_has_one_row_under_its_kind() -> None:
    assert len(ROWS) == len(KINDS) == 117
    assert {number: kind for number, kind, *_ in ROWS} == KINDS


def test_no_test_bears_a_number_that_no_case_has() -> None:
    assert set(numbered_tests()) - set(KINDS) == set()


@pytest.mark.parametrize(("number", "last"), [(row[0], row[4]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_row_names_exactly_the_tests_of_its_number_or_what_it_waits_for(number: str, last: str) -> None:
    named = set(re.findall(r"`([\w/.]+::\w+)`", last))
    there = numbered_tests().get(number, set())
    assert named - there == set(), f"{number} names tests that are not there (or without the number)"
    assert there - named == set(), f"add to the row of {number}: " + "".join(
        f"<br>`{test}`" for test in sorted(there - named)
    )
    assert named or re.search(r"[Ww]aits for: |Does not apply: ", last), (
        f"{number} has no tests and no reason"
    )
