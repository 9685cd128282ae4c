"""What the page tells of a step and of a refusal: who did what, and what came of it."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.made_up_proof import DENIAL
from stockade.evidence.views import Step, cut, describe_refusals, describe_steps, describe_witness
from stockade.prove.technique import Stopped, Witness


@pytest.mark.parametrize(
    ("said", "step"),
    [
        (
            {"do": "talk", "to": "evil.test port 80 GET /", "reply": "HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello"},
            Step("answered", "talk evil.test port 80 GET /", "HTTP/1.1 200 OK  hello"),
        ),
        (
            {"do": "talk", "to": "x", "reply": "HTTP/1.1 403 Forbidden\r\n\r\nno"},
            Step("refused", "talk x", "HTTP/1.1 403 Forbidden  no"),
        ),
        (
            {"do": "udp", "to": "x", "error": "OSError", "errno": "EPERM", "detail": "not permitted"},
            Step("refused", "udp x", "EPERM: OSError: not permitted"),
        ),
        (
            {"do": "run", "argv": ["/bin/sh", "-c", "id"], "code": 0, "out": "uid=0"},
            Step("answered", "run /bin/sh -c id", "code 0, out uid=0"),
        ),
        (
            {"do": "click", "action": "click", "target": "Continue", "came": "clicked"},
            Step("answered", "click Continue", "clicked"),
        ),
        (
            {"do": "open", "action": "open", "url": "http://evil.test/", "came": "", "error": "ERR_FAILED"},
            Step("refused", "open http://evil.test/", "ERR_FAILED"),
        ),
        (
            {"allowed": "before", "do": "talk", "reply": "HTTP/1.1 200 OK"},
            Step("answered", "permitted request before", "HTTP/1.1 200 OK"),
        ),
        ({"broken": "Traceback"}, Step("refused", "the attack itself failed", "Traceback")),
        ({}, Step("answered", "said", "no answer")),
    ],
)  # fmt: skip
def test_a_step_says_what_was_done_and_what_came_of_it(said: dict[str, Any], step: Step) -> None:
    assert describe_steps([said, {"done": True}]) == [step]


def test_many_steps_are_cut_and_said_to_be() -> None:
    steps = describe_steps([{"do": "ask"}] * 70)
    assert len(steps) == 61
    assert steps[-1].did == "… and 10 more steps"
    assert len(describe_steps([{"do": "ask"}] * 60)) == 60


def test_expected_refusals_come_first_and_equal_ones_are_counted() -> None:
    other = {**DENIAL, "reason": "not-listed"}
    expected, rest = describe_refusals(
        [Stopped(reason=("metadata-address",))], [other, DENIAL, {**DENIAL, "repeated": 3}]
    )
    assert (expected.reason, expected.count, expected.is_expected) == ("metadata-address", 5, True)
    assert (rest.reason, rest.count, rest.is_expected) == ("not-listed", 1, False)


@pytest.mark.parametrize(
    ("record", "target"),
    [
        ({"call": "socket(AF_VSOCK)"}, "socket(AF_VSOCK)"),
        ({"program": "/bin/sh"}, "/bin/sh"),
        ({"name": "evil.test", "port": 53, "query_type": "A"}, "evil.test:53 A"),
        ({"address": "10.0.0.1", "port": 80, "method": "GET", "path": "/x"}, "GET 10.0.0.1:80 /x"),
        ({"raw": "0x7f.1", "port": 80}, "0x7f.1:80"),
        ({}, ""),
    ],
)
def test_a_refusal_names_what_was_refused(record: dict[str, Any], target: str) -> None:
    (refusal,) = describe_refusals([], [record])
    assert refusal.what == target


def test_a_witness_is_told_in_words() -> None:
    witness = Witness(what="tcp", address="169.254.169.254", port=80, text="secret")
    assert describe_witness(witness) == "tcp at 169.254.169.254 port 80 with secret"
    assert describe_witness(Witness(what="command")) == "command"


def test_long_text_says_how_much_is_left_out() -> None:
    assert cut("x" * 600) == "x" * 600
    assert cut("x" * 601) == "x" * 600 + "… (1 more)"
