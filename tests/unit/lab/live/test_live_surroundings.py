"""What stands around a try: one odd row of a pack neither ends the bench nor counts as a leak."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from doubles.lab_game import ALLOW, DENY, make_pack, make_row
from stockade.lab.live.surroundings import WITNESS, known_addresses, place_stand_in, zone_for
from stockade.vocabulary import Entry

ADDRESS = "203.0.113.9"
POLICY = make_pack([]).policy


@pytest.mark.parametrize("program", ["a" * 300, "README.md/tool", "bin/../../out", "/bin/nosuch", "~/x"])
def test_a_name_that_no_file_of_ours_can_have_has_no_stand_in(tmp_path: Path, program: str) -> None:
    (tmp_path / "README.md").write_text("")
    place_stand_in(tmp_path, make_row("A", DENY, f"exec {program}", entry=Entry.EXEC))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "README.md"]


@pytest.mark.parametrize("program", [WITNESS, f"./{WITNESS}", f".//{WITNESS}", f"./././{WITNESS}"])
def test_a_stand_in_is_no_witness_that_it_ran(tmp_path: Path, program: str) -> None:
    place_stand_in(tmp_path, make_row("A", DENY, f"exec {program}", entry=Entry.EXEC))
    assert not (tmp_path / WITNESS).exists()
    place_stand_in(tmp_path, make_row("B", DENY, "exec ./other", entry=Entry.EXEC))
    assert (tmp_path / "other").exists()


def test_a_name_question_may_say_what_its_name_answers() -> None:
    row = make_row("A", ALLOW, "dns docs.some.test AAAA", answers=(ip_address(ADDRESS),), entry=Entry.DNS)
    assert known_addresses([row]) == {"docs.some.test": (ADDRESS,)}
    assert zone_for(row, POLICY, {})["docs.some.test"] == {"a": [ADDRESS], "aaaa": []}


@pytest.mark.parametrize(
    "attempt", ["dns docs.some.test NOSUCH", f"GET https://docs.some.test:{'9' * 5000}/"]
)
def test_a_row_that_cannot_be_tried_takes_nothing_from_the_others(attempt: str) -> None:
    odd = make_row("A", ALLOW, attempt, answers=(ip_address(ADDRESS),))
    good = make_row("B", ALLOW, "GET https://docs.some.test/", answers=(ip_address(ADDRESS),))
    assert known_addresses([odd, good]) == {"docs.some.test": (ADDRESS,)}


def test_answers_of_a_program_are_of_no_account() -> None:
    row = make_row("A", ALLOW, "exec git log", answers=(ip_address(ADDRESS),), entry=Entry.EXEC)
    assert ADDRESS not in str(zone_for(row, POLICY, known_addresses([row])))
