"""Nine events by seed: the same everywhere, near half of them legitimate, none twice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from doubles.lab_game import ALLOW, DENY, bank, make_pack, make_row
from stockade.errors import UserError
from stockade.lab.game.dice import Dice
from stockade.lab.game.draw import are_near, draw_round, line_of, parse_seed
from stockade.lab.game.tiers import CLOCKS, TIERS, clock_of

SEEDS = [str(number) for number in range(120)]


def test_a_throw_is_sha_256_of_the_words_and_of_how_often_it_was_thrown() -> None:
    dice = Dice("a", "b")
    # printf 'a\x1fb\x1e1' | sha256sum
    assert dice.below(1 << 256) == 0x5480A180C052F01153725944B166E4EAF78BEF7F7C66ABA9EBBB71E32492D084
    # printf 'a\x1fb\x1e2' | sha256sum, whose last byte is f2
    assert dice.below(256) == 0xF2


def test_a_shuffle_keeps_everything_and_leaves_its_argument_alone() -> None:
    items = list(range(50))
    mixed = Dice("x").shuffle(items)
    assert sorted(mixed) == items != mixed
    assert items == list(range(50))


def test_one_seed_gives_these_events_for_ever() -> None:
    """Frozen: signed results are counted by drawing again. A new draw takes a new number of rules."""
    assert draw_round(make_pack(), "golden", 3) == GOLDEN


GOLDEN = ("L37", "L24", "D36", "D31", "L34", "D30", "L29", "L20", "D32")


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_order_of_sets_plays_no_part(hash_seed: str) -> None:
    script = (
        "from doubles.lab_game import bank, begin_round, START\n"
        "from stockade.lab.game.present import present_round\n"
        "from stockade.lab.game.drills import compose_drill\n"
        "book = bank()\n"
        "print([present_round(book, begin_round(book, 's', tier), START) for tier in (1, 2, 3, 4)])\n"
        "print(compose_drill(book, 'near-pairs', 's', due=(), missed=(), seen=()))\n"
        "print(compose_drill(book, 'due', 's', due=(), missed=(), seen=('E001', 'E003')))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "tests"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    first = _OUTPUTS.setdefault("first", done.stdout)
    assert done.stdout == first
    assert len(first) > 1000


_OUTPUTS: dict[str, str] = {}


@pytest.mark.parametrize("tier", [1, 2, 3, 4])
def test_each_round_has_nine_events_of_which_four_or_five_are_legitimate(tier: int) -> None:
    book = bank()
    counts = set()
    for seed in SEEDS:
        rows = [book.find(number) for number in draw_round(book.pack, seed, tier)]
        assert len({row.id for row in rows}) == len(rows) == 9
        assert len({line_of(row) for row in rows}) == 9
        counts.add(sum(row.is_legitimate for row in rows))
        assert max(row.tier for row in rows) == tier
        assert sum(row.tier == tier for row in rows) >= 5
    assert counts == {4, 5}


@pytest.mark.parametrize("tier", [1, 2, 3, 4])
def test_a_round_shows_many_kinds(tier: int) -> None:
    book = bank()
    for seed in SEEDS:
        rows = [book.find(number) for number in draw_round(book.pack, seed, tier)]
        assert len({row.key.control for row in rows}) >= 5
        assert len({row.key.place for row in rows}) >= 5
        assert len({row.key.risk for row in rows if not row.is_legitimate}) >= 2


def test_whatever_the_line_shows_or_the_pack_says_of_the_inside_is_drawn_some_time() -> None:
    book = bank()
    seen = {
        number
        for tier in (1, 2, 3, 4)
        for seed in range(250)
        for number in draw_round(book.pack, str(seed), tier)
    }
    assert seen == {row.id for row in book.pack.scenarios}


def test_what_needs_a_look_inside_is_not_asked_where_nobody_says_what_it_shows() -> None:
    """The player sees the line, and the line does not show what decides; with `carries` it is seen."""
    said = bank().pack
    unsaid = replace(said, scenarios=tuple(replace(row, carries=None) for row in said.scenarios))
    inside = {"E012", "E013", "E058", "E130", "E133"}
    for pack, asked in ((unsaid, set()), (said, inside)):
        drawn = {number for tier in (2, 3, 4) for seed in SEEDS for number in draw_round(pack, seed, tier)}
        assert inside & drawn == asked


def test_events_of_one_line_all_say_what_they_carry_if_one_does() -> None:
    """Else the line of text itself would tell them apart."""
    rows = bank().pack.scenarios
    carried = {row.attempt for row in rows if row.carries}
    assert [row.id for row in rows if row.attempt in carried and not row.carries] == []


@pytest.mark.parametrize(("tier", "often"), [(1, False), (2, True), (3, True), (4, True)])
def test_now_and_then_an_event_meets_the_one_that_looks_like_it(tier: int, often: bool) -> None:
    book = bank()
    with_pair = 0
    for seed in SEEDS:
        rows = [book.find(number) for number in draw_round(book.pack, seed, tier)]
        with_pair += any(
            are_near(one, other) and one.is_legitimate is not other.is_legitimate
            for one in rows
            for other in rows
        )
    if often:
        assert len(SEEDS) // 5 < with_pair < len(SEEDS)


def test_another_seed_tier_or_pack_is_another_round() -> None:
    first = draw_round(make_pack(), "a", 2)
    assert draw_round(make_pack(), "a", 2) == first
    assert draw_round(make_pack(), "b", 2) != first
    assert draw_round(make_pack(), "a", 3) != first
    assert draw_round(make_pack(digest="1" * 64), "a", 2) != first


def test_a_pack_that_is_too_small_is_refused_and_one_that_is_just_large_enough_is_not() -> None:
    rows = [make_row(f"L{one}", ALLOW, f"GET https://docs.some.test/{one}") for one in range(5)]
    rows += [make_row(f"D{one}", DENY, f"GET https://other{one}.example/") for one in range(5)]
    for seed in SEEDS:
        assert len(draw_round(make_pack(rows), seed, 4)) == 9  # of another tier than was asked for
    same_line = [*rows[1:], make_row("L9", ALLOW, rows[1].attempt)]
    for small in (make_pack(rows[1:]), make_pack(same_line)):
        with pytest.raises(UserError, match="pack-too-small"):
            draw_round(small, seed_with_five_legitimate(), 1)


def seed_with_five_legitimate() -> str:
    """A seed of which a large enough pack gives five; whether four or five does not hang on the rows."""
    pack = make_pack()
    by_id = {row.id: row for row in pack.scenarios}
    return next(
        seed for seed in SEEDS if sum(by_id[one].is_legitimate for one in draw_round(pack, seed, 1)) == 5
    )


@pytest.mark.parametrize("text", ["a", "2026-11", " spaced ", "x" * 32, "0"])
def test_a_seed_that_can_be_told(text: str) -> None:
    assert parse_seed(text) == text.strip()


@pytest.mark.parametrize("text", ["", " ", "a b", "x" * 33, "ä", "-x", "<b>", "a\n b"])
def test_a_seed_that_cannot_be_told_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="bad-seed"):
        parse_seed(text)


def test_the_clock_of_each_tier() -> None:
    """The founder's table: none, 90, 60 and 40 seconds; noise 0, 3, 6 and 10 lines."""
    assert [(tier.clock_s, tier.noise) for tier in TIERS] == [(None, 0), (90, 3), (60, 6), (40, 10)]
    table = {clock: [clock_of(tier, clock) for tier in (None, 1, 2, 3, 4)] for clock in CLOCKS}
    assert table == {
        "on": [None, None, 90, 60, 40],
        "double": [None, None, 180, 120, 80],
        "off": [None] * 5,
    }
    with pytest.raises(UserError, match="no-such-tier"):
        clock_of(5, "on")
