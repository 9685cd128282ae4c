"""`lab check` with a bench that says what a test wants: which differences fail, and with which code."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from stockade.errors import UserError
from stockade.lab.check import Standing, check_rows, choose_rows, exit_code
from stockade.lab.live.card import write_live_card
from stockade.lab.live.result import LiveResult, State
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.policy.load import load_policy
from stockade.policy.model import Policy
from stockade.vocabulary import Control, Verdict

BANK = shipped_bank()


class Saying:
    """A bench that agrees with each key, but for what a test changes."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self.tried: list[str] = []

    def try_scenario(self, scenario: Scenario) -> LiveResult:
        self.tried.append(scenario.id)
        key = scenario.key
        record = {"verdict": key.verdict.word, "risk": key.risk, "control": key.control, "class": key.place}
        arrived = () if key.verdict is Verdict.DENY else ({"what": "connection"},)
        agreed = LiveResult(
            state=State.DONE,
            scenario=scenario.id,
            record=record,
            arrived=arrived,
            agrees=dict.fromkeys(record, True),
            closing={"complete": True},
        )
        return replace(agreed, **self._changes)


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return load_policy(write_live_card(BANK.policy, BANK.folder, tmp_path_factory.mktemp("card")))


def row(number: str, **changes: Any) -> Scenario:
    found = BANK.find(number)
    assert found is not None
    return replace(found, **changes)


def rekeyed(number: str, **parts: Any) -> Scenario:
    key = row(number).key
    fields = {name: getattr(key, name) for name in ("verdict", "risk", "control", "place")}
    return row(number, key=Key(**{**fields, **parts}))


def test_a_row_that_agrees_passes_and_only_rows_to_try_are_tried(card: Policy) -> None:
    bench = Saying()
    rows = check_rows(BANK, [row("E001"), row("E067"), row("E007")], card, bench)
    assert [one.standing for one in rows] == [Standing.AGREES, Standing.AGREES, Standing.WAITS]
    assert bench.tried == ["E001", "E067"]
    assert exit_code(rows) == 0


def test_a_wrong_key_fails_by_the_engine_alone(card: Policy) -> None:
    (checked,) = check_rows(BANK, [rekeyed("E001", verdict=Verdict.DENY)], card, None)
    assert checked.standing is Standing.DIFFERS
    assert "the engine calls the verdict allow, the key deny" in checked.problems[0]
    assert exit_code([checked]) == 2


def test_a_wrong_control_fails_where_the_line_shows_it_and_only_there(card: Policy) -> None:
    shown, hidden = check_rows(
        BANK,
        [rekeyed("E001", control=Control.DEFAULT_DENY), rekeyed("E160", control=Control.DEFAULT_DENY)],
        card,
        None,
    )
    assert (shown.standing, hidden.standing) == (Standing.DIFFERS, Standing.AGREES)


def test_words_about_content_excuse_no_key_that_a_look_inside_cannot_make(card: Policy) -> None:
    """A look inside can refuse what is proxied; it opens nothing, and an `allow` is never looked into."""
    words = {"why": "It turns on content inspection.", "live": Live.CONTENT}
    allowed, listed, denied = row("E001"), row("E012", **words), row("E003", **words)
    rows = [
        replace(allowed, **words, key=replace(allowed.key, verdict=Verdict.DENY)),
        replace(denied, key=replace(denied.key, verdict=Verdict.ALLOW)),
        listed,
        replace(listed, key=replace(listed.key, verdict=Verdict.ALLOW)),
    ]
    checked = check_rows(BANK, rows, card, None)
    differs, waits = Standing.DIFFERS, Standing.WAITS
    assert [one.standing for one in checked] == [differs, differs, waits, differs]
    assert "a look inside decides only what the card proxies" in checked[0].problems[0]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"technique": "redirect"}, "say `from`"),
        ({"technique": "shared-address"}, "say `sni`"),
        ({"technique": "host-network", "live": Live.NO}, "`live` has to be yes"),
        ({"live": Live.CONTENT}, "nothing of it needs a look inside TLS"),
    ],
)
def test_a_part_that_nothing_would_compare_fails(card: Policy, changes: dict[str, Any], problem: str) -> None:
    (checked,) = check_rows(BANK, [row("E001", **changes)], card, None)
    assert checked.standing is Standing.DIFFERS
    assert problem in checked.problems[0]


@pytest.mark.parametrize("part", ["verdict", "risk", "control", "class"])
def test_a_ledger_that_says_otherwise_fails(card: Policy, part: str) -> None:
    agrees = dict.fromkeys(("verdict", "risk", "control", "class"), True)
    (checked,) = check_rows(BANK, [row("E067")], card, Saying(agrees={**agrees, part: False}))
    assert checked.standing is Standing.DIFFERS
    assert f"the ledger calls the {part}" in checked.problems[0]
    (checked,) = check_rows(BANK, [row("E067")], card, Saying(agrees={**agrees, "control": None}))
    assert checked.standing is Standing.AGREES


def test_what_is_refused_and_arrives_all_the_same_is_told_apart_from_a_wrong_key(card: Policy) -> None:
    (checked,) = check_rows(BANK, [row("E067")], card, Saying(leaked=("a connection arrived",)))
    assert (checked.standing, exit_code([checked])) == (Standing.LEAKED, 4)
    wrong = check_rows(BANK, [rekeyed("E001", verdict=Verdict.DENY)], card, None)
    assert exit_code([checked, *wrong]) == 4


def test_what_is_let_through_and_never_arrives_fails(card: Policy) -> None:
    (checked,) = check_rows(BANK, [row("E001")], card, Saying(arrived=()))
    assert checked.problems == ("live: let through, and nothing arrived",)
    (checked,) = check_rows(BANK, [row("E203")], card, Saying(arrived=(), ran=True))
    assert checked.standing is Standing.AGREES


def test_a_try_that_says_nothing_fails_and_one_that_this_host_cannot_make_is_told(card: Policy) -> None:
    (failed,) = check_rows(BANK, [row("E001")], card, Saying(state=State.FAILED, why="it hung"))
    assert (failed.standing, failed.problems) == (Standing.DIFFERS, ("live: it hung",))
    (absent,) = check_rows(BANK, [row("E201")], card, Saying(state=State.UNAVAILABLE, why="no gcc"))
    assert (absent.standing, exit_code([absent])) == (Standing.NOT_TRIED, 3)


def test_a_row_that_only_a_look_inside_decides_may_not_say_that_it_can_be_tried(card: Policy) -> None:
    bench = Saying()
    (checked,) = check_rows(BANK, [row("E007", live=Live.YES)], card, bench)
    assert checked.standing is Standing.DIFFERS
    assert "`live` has to be content" in checked.problems[0]
    (checked,) = check_rows(BANK, [row("E012", live=Live.YES)], card, bench)
    assert any("its key needs a look inside" in problem for problem in checked.problems)


# What waits, with the control that it waits for: all of them need the gateway to open TLS.
WAITING = {
    "E006": "size-rate-quota", "E007": "operation-scope", "E009": "logging-proxy", "E011": "logging-proxy",
    "E012": "credential-broker", "E013": "credential-broker", "E016": "logging-proxy",
    "E020": "vetted-mirror-pinned", "E022": "vetted-mirror-pinned", "E029": "vetted-mirror-pinned",
    "E030": "vetted-mirror-pinned", "E033": "logging-proxy", "E034": "operation-scope",
    "E035": "logging-proxy", "E036": "operation-scope", "E040": "operation-scope", "E046": "logging-proxy",
    "E051": "logging-proxy", "E055": "operation-scope", "E058": "logging-proxy", "E096": "logging-proxy",
    "E100": "separate-identity", "E102": "logging-proxy", "E110": "separate-identity",
    "E130": "size-rate-quota", "E131": "logging-proxy", "E132": "logging-proxy", "E133": "operation-scope",
    "E137": "logging-proxy", "E139": "vetted-mirror-pinned", "E157": "logging-proxy", "E171": "logging-proxy",
    "E172": "logging-proxy", "E173": "logging-proxy", "E175": "logging-proxy", "E176": "logging-proxy",
    "E177": "logging-proxy", "E178": "logging-proxy", "E179": "vetted-mirror-pinned",
    "E180": "vetted-mirror-pinned", "E182": "vetted-mirror-pinned", "E183": "logging-proxy",
    "E185": "logging-proxy", "E187": "logging-proxy", "E188": "logging-proxy", "E189": "logging-proxy",
    "E190": "logging-proxy", "E204": "logging-proxy", "E205": "separate-identity",
}  # fmt: skip


def test_the_rows_that_wait_are_these_49_and_each_says_for_which_control_and_why(card: Policy) -> None:
    rows = check_rows(BANK, BANK.scenarios, card, None)
    waiting = {one.id: one.waiting for one in rows if one.waiting is not None}
    assert {number: one.control for number, one in waiting.items() if one} == WAITING
    assert len(WAITING) == 49
    for one in waiting.values():
        assert one is not None
        assert one.why.startswith("bank-policy.yaml:")
        assert " limits " in one.why


def test_the_engine_agrees_with_every_key_of_the_bank(card: Policy) -> None:
    assert exit_code(check_rows(BANK, BANK.scenarios, card, None)) == 0


def test_rows_are_chosen_by_their_numbers() -> None:
    assert [one.id for one in choose_rows(BANK, ["E067", "E001"])] == ["E001", "E067"]
    assert len(choose_rows(BANK, [])) == 171
    with pytest.raises(UserError, match="E999"):
        choose_rows(BANK, ["E999"])
