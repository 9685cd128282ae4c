"""Hints and near-pairs: they help, they differ, and no hint says the verdict."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from doubles.lab_game import DENY, PROXY, bank, make_row
from stockade.lab.game.deciding import does_turn, find_deciding, find_deciding_part
from stockade.lab.game.difference import find_differences, take_apart, tell_difference
from stockade.lab.game.hints import tell_hint
from stockade.lab.pack.scenario import Scenario
from stockade.vocabulary import Control

ROWS = bank().pack.scenarios
PAIRS = [(row, near) for row in ROWS if (near := bank().near(row)) is not None]
# Words that would say how to call it; `card` lines are quoted as they stand and are taken out first.
VERDICT_WORDS = re.compile(
    r"\b(deny|denied|denial|allow|allowed|proxy|proxied|permit\w*|refuse\w*|block\w*|forbid\w*|let through|"
    r"legitimate|harmless|benign|malicious|attack\w*|trick|leak\w*)\b"
)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_no_hint_says_the_verdict(row: Scenario) -> None:
    where, line, controls = (tell_hint(bank(), row, number) for number in (1, 2, 3))
    assert not VERDICT_WORDS.search(where.text)
    assert not VERDICT_WORDS.search(re.sub("“.*”", "", line.text))
    without_controls = re.sub("|".join(map(str, Control)), "", controls.text)
    assert not VERDICT_WORDS.search(without_controls)
    assert [hint.cost for hint in (where, line, controls)] == [0, 5, 15]


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_the_third_hint_names_two_controls_of_which_one_is_right(row: Scenario) -> None:
    text = tell_hint(bank(), row, 3).text
    match = re.fullmatch(r"One of these two is the control that fits: (\S+) or (\S+)\.", text)
    assert match is not None
    named = {Control(match[1]), Control(match[2])}
    assert len(named) == 2
    assert row.key.control in named
    assert tell_hint(bank(), row, 3).text == text


def test_neither_place_nor_verdict_tells_which_of_the_two_is_right() -> None:
    """The right one stands first about as often as second, whatever the verdict."""
    for kind in (True, False):
        rows = [row for row in ROWS if row.is_legitimate is kind]
        first = sum(f": {row.key.control} or" in tell_hint(bank(), row, 3).text for row in rows)
        assert len(rows) / 3 < first < len(rows) * 2 / 3


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("E001", "Line 36 of the card speaks of it: “- allow: docs.python.org"),
        ("E127", "Line 36 of the card speaks of it"),  # another port of the same host
        ("E063", "Line 179 of the card speaks of it"),  # the address decides, and the card names the host
        ("E119", "No line of the card speaks of this program."),
        ("E092", "No line of the card speaks of this socket."),
        ("E061", "No line of the card speaks of this name."),
        ("E008", "No line of the card speaks of this place."),
        ("E021", "Line 264 of the card speaks of it"),  # the catalogue
    ],
)
def test_the_second_hint_is_the_line_of_the_card_or_that_there_is_none(number: str, says: str) -> None:
    assert tell_hint(bank(), bank().find(number), 2).text.startswith(says)


@pytest.mark.parametrize(
    ("number", "part"),
    [
        ("E028", "phase"), ("E027", "phase"), ("E098", "identity"), ("E007", "method"), ("E034", "path"),
        ("E006", "query"), ("E173", "query"), ("E127", "port"), ("E166", "answers"), ("E167", "answers"),
        ("E083", "came_from"), ("E037", "sni"), ("E124", "spelling"), ("E067", "address"), ("E003", "host"),
        ("E001", "host"), ("E121", "program"), ("E160", "arguments"), ("E092", "socket"),
    ],
)  # fmt: skip
def test_the_part_that_decides_is_the_same_for_both_of_a_pair(number: str, part: str) -> None:
    assert find_deciding_part(bank(), bank().find(number)) == part


# Near-pairs


def tell(row: Scenario, near: Scenario) -> str:
    deciding = find_deciding(bank(), row)
    return tell_difference(row, near, deciding.call, deciding.control)


def is_seen(row: Scenario, near: Scenario) -> bool:
    return row.is_seen_by_the_line and near.is_seen_by_the_line


@pytest.mark.parametrize(("row", "near"), PAIRS, ids=[row.id for row, _ in PAIRS])
def test_what_is_said_to_decide_does_decide_by_the_engine(row: Scenario, near: Scenario) -> None:
    """One part is swapped alone; of several, all together turn it and none alone does."""
    call = find_deciding(bank(), row).call
    line = tell(row, near)
    if not is_seen(row, near):
        assert call in ((), ("carries",))
    elif row.key == near.key:
        assert call == ()
    else:
        assert call
        strict, mild = sorted((row, near), key=lambda one: (one.key.verdict, one.id))
        if len(call) > 1:
            assert does_turn(bank(), strict, mild, call)
            assert not any(does_turn(bank(), strict, mild, (part,)) for part in call)
            assert "decide together" in line
        else:
            assert does_turn(bank(), strict, mild, call) or does_turn(bank(), mild, strict, call)
    assert (" decides" in line or " decide " in line) == bool(call)


def test_where_it_came_from_decides_the_control_and_not_the_call() -> None:
    for number, told in {
        "E083": "The host decides the call: 169.254.169.254 here, shop.local.test there. That it was named "
        "by an answer decides the control: http://shop.local.test/ here, none there.",
        "E037": "The host decides the call: gist.host.test here, code.host.test there. The name in the "
        "TLS hello decides the control:",
        "E134": "The host decides: docs.python.org here, collect.example there.",
        "E101": "The phase and the path decide together. The phase: scoring here, setup there;",
        "E098": "The phase and who asks decide together.",
    }.items():
        row = bank().find(number)
        assert tell(row, bank().find(row.near)).startswith(told)


@pytest.mark.parametrize(("row", "near"), PAIRS, ids=[row.id for row, _ in PAIRS])
def test_each_near_pair_has_one_readable_line(row: Scenario, near: Scenario) -> None:
    line = tell(row, near)
    assert "\n" not in line
    assert 40 < len(line) < 560
    assert line[0].isupper()
    assert line.endswith(".")
    if row.key.verdict is not near.key.verdict:
        assert f"Call {row.key.verdict.shown} here, {near.key.verdict.shown} there" in line


def test_no_two_pairs_have_the_same_line() -> None:
    lines = [tell(row, near) for row, near in PAIRS]
    assert len(lines) == len(ROWS)
    assert len(set(lines)) == len(lines)


def test_the_part_that_decides_comes_first() -> None:
    row, near = bank().find("E108"), bank().find("E033")
    assert tell(row, near) == (
        "The phase decides: scoring here, work there. Call deny here, proxy+log there; risk "
        "eval-contamination here, benign there; control phase-policy here, logging-proxy there."
    )
    row, near = bank().find("E127"), bank().find("E206")
    assert tell_difference(row, near, ("port",)).startswith("The port decides: 8443 here, 443 there. Also")


def test_a_place_that_only_the_catalogue_names_has_a_line_on_the_card() -> None:
    """E037's host stands nowhere but in the catalogue, among the paste sites."""
    text = tell_hint(bank(), bank().find("E037"), 2).text
    assert text.startswith("Line ")
    assert "class: paste" in text
    assert "gist.host.test" in text


def test_lines_that_are_alike_say_what_is_inside() -> None:
    foreign, own = bank().find("E012"), bank().find("E176")
    assert tell(foreign, own).startswith("What it carries decides: ")
    unsaid = (replace(row, carries=None) for row in (foreign, own))
    assert tell_difference(*unsaid).startswith(
        "The lines are alike; here the request brings its own x-api-key, there an upload"
    )


def test_a_line_is_taken_apart_by_shape() -> None:
    row = make_row("X", DENY, "GET http://[fd00::1]:8080/a/b?c=d", sni="x.test")
    parts = {part: text for part, text in take_apart(row).items() if text}
    assert parts == {
        "phase": "work", "identity": "agent", "entry": "transparent", "kind": "a request", "method": "GET",
        "scheme": "http", "host": "[fd00::1]", "port": "8080", "path": "/a/b", "query": "c=d",
        "sni": "x.test",
    }  # fmt: skip
    assert take_apart(make_row("X", DENY, "tcp h.test 22"))["port"] == "22"
    assert take_apart(make_row("X", DENY, "dns h.test"))["type"] == "A"
    assert take_apart(make_row("X", DENY, "exec git push -f"))["arguments"] == "push -f"
    assert take_apart(make_row("X", DENY, "GET https://h.test/"))["port"] == "443"


def test_each_part_that_differs_is_found_alone() -> None:
    base = make_row("A", PROXY, "GET https://h.test/a?b=1")
    for part, other in {
        "method": "POST https://h.test/a?b=1",
        "scheme": "GET wss://h.test/a?b=1",
        "host": "GET https://g.test/a?b=1",
        "port": "GET https://h.test:444/a?b=1",
        "path": "GET https://h.test/A?b=1",
        "query": "GET https://h.test/a?b=2",
    }.items():
        found = find_differences(base, make_row("B", DENY, other))
        assert [one.part for one in found] == [part]
