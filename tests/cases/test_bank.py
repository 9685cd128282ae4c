"""The event bank: every row is decided by its `attempt` line under the bank's own policy.

The bank is the lab's answer key, so a row that the engine calls otherwise is a fault of
one of the two; `docs/bank-corrections.md` says which rows were corrected and why.
"""

from __future__ import annotations

import csv
import shlex
from functools import cache
from ipaddress import ip_address
from pathlib import Path

import pytest

import stockade.lab
from stockade.decision.attempt_line import parse_attempt_line
from stockade.decision.engine import Engine
from stockade.decision.request import Decision
from stockade.policy.load import load_policy
from stockade.vocabulary import Entry, Identity, Phase

BANK = Path(stockade.lab.__file__).parent / "bank"

# pack.yaml: for these the control depends on how the attempt came about, which the line cannot say.
CONTROL_NOT_IN_THE_LINE = {"redirect", "shared-address", "sandbox-bypass-flag", "host-network"}

Row = dict[str, str]


def read_rows() -> list[Row]:
    with (BANK / "scenarios.csv").open(newline="") as file:
        return list(csv.DictReader(file))


ROWS = read_rows()
UNSEEN = [row for row in ROWS if "content inspection" in row["why"]]
SEEN = [row for row in ROWS if "content inspection" not in row["why"]]


@cache
def engine_for(phase: str, identity: str) -> Engine:
    return Engine(load_policy(BANK / "bank-policy.yaml"), Phase(phase), Identity(identity))


def decide(row: Row) -> Decision:
    attempt = parse_attempt_line(shlex.split(row["attempt"]), entry=Entry(row["entry"]))
    answers = tuple(ip_address(answer) for answer in row["answers"].split(";") if answer)
    return engine_for(row["phase"], row["identity"]).decide(attempt, answers or None)


@pytest.mark.parametrize("row", SEEN, ids=[row["id"] for row in SEEN])
def test_the_engine_calls_a_row_as_the_bank_does(row: Row) -> None:
    decision = decide(row)
    called = {
        "verdict": decision.verdict.word,
        "risk": str(decision.risk),
        "class": str(decision.place),
        "control": str(decision.control),
    }
    if row["technique"] in CONTROL_NOT_IN_THE_LINE:
        del called["control"]
    assert called == {key: row[key] for key in called}, f"{row['attempt']}: {decision.why}"


@pytest.mark.parametrize("row", SEEN, ids=[row["id"] for row in SEEN])
def test_a_row_let_through_with_answers_has_a_permit_for_them(row: Row) -> None:
    decision = decide(row)
    assert (decision.permit is not None) == (row["verdict"] != "deny" and bool(row["answers"]))


def test_the_rows_that_wait_for_interception_are_these_and_no_more() -> None:
    assert [row["id"] for row in UNSEEN] == ["E012", "E013", "E058", "E130", "E133"]
    assert len(ROWS) == 171


def test_waiting_rows_are_what_the_line_shows_which_is_the_place_and_a_permitted_request() -> None:
    for row in UNSEEN:
        decision = decide(row)
        assert (decision.verdict.word, str(decision.place)) == ("proxy", row["class"])


def test_the_same_number_never_stands_for_two_rows_and_near_pairs_exist() -> None:
    ids = [row["id"] for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert {row["near"] for row in ROWS if row["near"]} <= set(ids)


# How the attempt came about, where the line cannot say it: with that said, the control fits as well.
@pytest.mark.parametrize(
    ("number", "more"),
    [
        ("E083", {"came_from": "http://shop.local.test/"}),
        ("E134", {"came_from": "http://shop.local.test/"}),
        ("E146", {"came_from": "http://shop.local.test/"}),
        ("E037", {"sni": "code.host.test"}),
    ],
)
def test_with_its_origin_said_the_control_is_the_banks(number: str, more: dict[str, str]) -> None:
    row = next(row for row in ROWS if row["id"] == number)
    attempt = parse_attempt_line(shlex.split(row["attempt"]), **more)
    decision = engine_for(row["phase"], row["identity"]).decide(attempt)
    assert str(decision.control) == row["control"]
    assert (decision.verdict.word, str(decision.risk), str(decision.place)) == (
        row["verdict"],
        row["risk"],
        row["class"],
    )
