"""The live card can be run, says the same about every row that is tried, and keeps each line where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.lab.live.card import blank_conditions, write_live_card
from stockade.lab.pack.call import Caller
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.pack.scenario import Live
from stockade.policy.load import load_policy, load_policy_text
from stockade.policy.model import Policy
from stockade.policy.runnable import run_refusals


def live_card(folder: Path, text: str, **files: str) -> tuple[Path, Policy]:
    source, into = folder / "source", folder / "live"
    source.mkdir()
    (source / "card.yaml").write_text(text)
    for name, more in files.items():
        (source / f"{name}.yaml").write_text(more)
    path = write_live_card(load_policy(source / "card.yaml"), source, into)
    return path, load_policy(path)


@pytest.fixture(scope="module")
def bank_card(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    bank = shipped_bank()
    return load_policy(write_live_card(bank.policy, bank.folder, tmp_path_factory.mktemp("card")))


def test_the_bank_s_own_card_cannot_be_run_and_its_live_card_can(bank_card: Policy) -> None:
    assert run_refusals(shipped_bank().policy)
    assert not run_refusals(bank_card)


def test_each_part_stands_on_the_line_of_the_card(bank_card: Policy) -> None:
    card = shipped_bank().policy
    for part in ("rules", "rubric", "internal", "catalogue"):
        origins = [one.origin for one in getattr(card, part)]
        assert [one.origin for one in getattr(bank_card, part)] == origins
    assert bank_card.exec == card.exec
    assert (bank_card.limits.connections, bank_card.limits.upload_bytes) == (512, 8 << 30)
    assert (bank_card.limits.memory_bytes, bank_card.limits.processes) == (None, None)


def test_every_row_that_is_tried_is_decided_alike_under_both(bank_card: Policy) -> None:
    on_card, on_live_card = Caller(shipped_bank().policy), Caller(bank_card)
    tried = [one for one in shipped_bank().scenarios if one.live is Live.YES]
    assert len(tried) == 122
    for one in tried:
        card, live = on_card.decide(one), on_live_card.decide(one)
        assert (live.verdict, live.risk, live.control, live.place) == (
            card.verdict,
            card.risk,
            card.control,
            card.place,
        ), one.id


def test_a_row_that_waits_is_decided_otherwise_without_its_conditions(bank_card: Policy) -> None:
    """So it is right not to try it: E007 posts to a place that is open for reading, in TLS."""
    row = shipped_bank().find("E007")
    assert row is not None
    assert Caller(shipped_bank().policy).decide(row).verdict.word == "deny"
    assert Caller(bank_card).decide(row).verdict.word != "deny"


BLOCK = """\
version: 1
rules:
  - methods: [GET]        # first
    proxy: a.test
    paths:
      - /x/**
      - /y/**
  - proxy: b.test
    ports: [80]
    protocol: http
    methods: [GET]
  - {proxy: c.test, methods: [POST], max-body: 1MiB}
  - {methods: [POST], proxy: d.test, why: "methods: [GET]"}
"""


def test_in_every_way_of_writing_only_the_conditions_on_tls_go(tmp_path: Path) -> None:
    path, policy = live_card(tmp_path, BLOCK)
    before = load_policy_text(BLOCK, "card.yaml")
    assert [rule.origin.rpartition(":")[2] for rule in policy.rules] == ["4", "8", "12", "13"]
    assert [rule.host.name for rule in policy.rules] == ["a.test", "b.test", "c.test", "d.test"]
    assert [bool(rule.methods) for rule in policy.rules] == [False, True, False, False]
    assert [bool(rule.methods) for rule in before.rules] == [True, True, True, True]
    assert path.read_text().splitlines()[9:11] == BLOCK.splitlines()[9:11]
    assert path.read_text().count("\n") == BLOCK.count("\n")
    assert policy.rules[3].why == "methods: [GET]"


def test_an_included_file_is_treated_alike_and_keeps_its_name(tmp_path: Path) -> None:
    more = "version: 1\nrules:\n  - proxy: b.test\n    methods: [GET]\n"
    _, policy = live_card(tmp_path, "version: 1\ninclude: [more.yaml]\n", more=more)
    assert [(rule.origin, rule.methods) for rule in policy.rules] == [("more.yaml:3", ())]


def test_limits_that_only_the_sandbox_holds_leave_no_empty_key_behind(tmp_path: Path) -> None:
    _, policy = live_card(tmp_path, "version: 1\nlimits:\n  memory: 1GiB\n  time: 10s\nunknown: deny\n")
    assert (policy.limits.memory_bytes, policy.limits.time_s) == (None, None)
    assert policy.unknown_origin == "card.yaml:5"


def test_a_text_without_anything_to_blank_stays_as_it_is() -> None:
    assert blank_conditions("version: 1\r\nrules: []\r\n", frozenset({1})) == "version: 1\r\nrules: []\r\n"
