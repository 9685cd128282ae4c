"""Drills: what is due, what was missed, and pairs that look alike."""

from __future__ import annotations

import pytest

from doubles.lab_game import bank
from stockade.errors import UserError
from stockade.lab.game.draw import draw_round
from stockade.lab.game.drills import LENGTH, compose_drill
from stockade.lab.game.rounds import Conflict


def compose(kind: str, seed: str = "s", **known: tuple[str, ...]) -> tuple[str, ...]:
    return compose_drill(bank(), kind, seed, **({"due": (), "missed": (), "seen": ()} | known))  # type: ignore[arg-type]


def test_what_is_due_comes_first_then_what_was_missed_then_new_ones() -> None:
    drill = compose("due", due=("E003", "E001"), missed=("E001", "E008"), seen=("E001", "E003", "E008"))
    assert drill[:3] == ("E003", "E001", "E008")
    assert len(drill) == len(set(drill)) == LENGTH
    assert [bank().find(one).tier for one in drill[3:]] == [1] * 7


def test_who_has_seen_everything_and_has_nothing_due_has_no_drill() -> None:
    everything = tuple(row.id for row in bank().pack.scenarios)
    with pytest.raises(Conflict, match="nothing-to-drill"):
        compose("due", seen=everything)
    with pytest.raises(Conflict, match="nothing-to-drill"):
        compose("missed")
    assert compose("missed", missed=("E008",)) == ("E008",)


def test_pairs_stand_in_a_row_and_their_answers_differ() -> None:
    for seed in map(str, range(30)):
        drill = compose("near-pairs", seed)
        assert len(drill) == LENGTH
        for one, other in zip(drill[::2], drill[1::2], strict=True):
            first, second = bank().find(one), bank().find(other)
            assert first.near == other or second.near == one
            assert first.key != second.key
    assert compose("near-pairs", "a") != compose("near-pairs", "b")
    assert compose("near-pairs", "a") == compose("near-pairs", "a")


def test_which_of_a_pair_comes_first_does_not_tell() -> None:
    firsts = [bank().find(compose("near-pairs", str(seed))[0]).is_legitimate for seed in range(60)]
    assert 15 < sum(firsts) < 45


@pytest.mark.parametrize("kind", ["due", "near-pairs", "missed"])
def test_a_drill_tells_no_key_that_an_open_round_still_asks_for(kind: str) -> None:
    everything = tuple(row.id for row in bank().pack.scenarios)
    for seed in map(str, range(10)):
        waiting = draw_round(bank().pack, seed, 3)
        drill = compose(kind, seed, missed=everything, waiting=waiting)
        assert len(drill) == LENGTH
        assert not {*drill, *(bank().find(one).near for one in drill)} & set(waiting)


def test_a_kind_that_there_is_not_is_refused_and_what_the_pack_lost_is_left_out() -> None:
    with pytest.raises(UserError, match="no-such-drill"):
        compose("all")
    assert compose("missed", missed=("E999", "E008")) == ("E008",)  # gone, there
