"""The judge: `blocked` needs a control that arrived, an attempt that ran, and a refusal on record."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from stockade.prove.judge import describe_arrival, find_refusal, judge, layer_of
from stockade.prove.technique import Group, Layer, Stopped, Technique, Witness
from stockade.prove.trial import Judgement, Result, Trial, Try
from stockade.vocabulary import Risk

ARRIVAL = {"what": "tcp", "address": "169.254.169.254", "port": 80, "bytes": 97, "text": "GET / HTTP/1.1"}
DENIAL = {"reason": "metadata-address", "entry": "transparent", "address": "169.254.169.254"}
CLOSED = {"kind": "run.closed", "complete": True}

CONTROL = Try(is_done=True, allowed_before=True, allowed_after=True, arrived=(ARRIVAL,), exit_code=0)
ATTEMPT = Try(
    is_done=True,
    allowed_before=True,
    allowed_after=True,
    denials=(DENIAL,),
    closing=CLOSED,
    exit_code=0,
)


def technique(*stopped: Stopped, layer: Layer = Layer.GATEWAY) -> Technique:
    return Technique(
        id="example",
        title="An example",
        group=Group.METADATA,
        layer=layer,
        risk=Risk.SSRF,
        references=("CWE-918",),
        arrives=(Witness(what="tcp", address="169.254.169.254"),),
        stopped=stopped or (Stopped(reason=("metadata-address",), entry=("transparent",)),),
    )


def judge_with(
    control: dict[str, Any] | None = None, attempt: dict[str, Any] | None = None, **more: Any
) -> Judgement:
    """The good trial with these fields changed."""
    trial = Trial(
        id="example",
        control=structs.replace(CONTROL, **(control or {})),
        attempt=structs.replace(ATTEMPT, **(attempt or {})),
        **more,
    )
    return judge(technique(), trial)


def test_all_three_together_are_blocked_and_the_refuser_is_named() -> None:
    judgement = judge_with()
    assert judgement.result is Result.BLOCKED
    assert judgement.stopped_by == "gateway: metadata-address"


@pytest.mark.parametrize("heap", ["arrived", "stray"])
def test_whatever_arrived_is_a_leak_even_with_a_refusal_on_record(heap: str) -> None:
    judgement = judge_with(attempt={heap: (ARRIVAL,)})
    assert judgement.result is Result.LEAKED
    assert "169.254.169.254" in judgement.why


@pytest.mark.parametrize(
    "broken",
    [
        {"problem": "it hung"},
        {"is_done": False},
        {"allowed_before": False},
        {"allowed_after": False},
        {"closing": {}},
        {"closing": {**CLOSED, "complete": False}},
        {"exit_code": 104},
        {"denials": ()},
    ],
)
def test_an_arrival_is_a_leak_whatever_else_went_wrong(broken: dict[str, Any]) -> None:
    assert judge_with(attempt={**broken, "arrived": (ARRIVAL,)}).result is Result.LEAKED


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"problem": "it did not end within 20 s"}, "it did not end within 20 s"),
        ({"is_done": False}, "did not run to its end"),
        ({"arrived": ()}, "the control did not arrive"),
        ({"allowed_before": False}, "before it did not work (control)"),
        ({"allowed_after": False}, "after it did not work (control)"),
    ],
)
def test_a_control_that_shows_nothing_is_inconclusive(broken: dict[str, Any], reason: str) -> None:
    judgement = judge_with(control=broken)
    assert judgement.result is Result.INCONCLUSIVE
    assert reason in judgement.why


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"problem": "it printed more than 4 MiB"}, "it printed more than 4 MiB"),
        ({"is_done": False}, "did not run to its end"),
        ({"allowed_before": False}, "before it did not work (attempt)"),
        ({"allowed_after": False}, "after it did not work (attempt)"),
        ({"exit_code": 104}, "ended with code 104"),
        ({"exit_code": None}, "ended with code None"),
        ({"closing": {}, "run": "r1"}, "no last record"),
        ({"closing": {}}, "no ledger of the contained run was found"),
        ({"closing": {**CLOSED, "complete": False, "completeness": "syn 3 = accepted 2"}}, "syn 3"),
        ({"closing": {"kind": "run.closed"}}, "do not agree"),
        ({"denials": ()}, "nobody says why"),
    ],
)
def test_an_attempt_that_shows_nothing_is_inconclusive(broken: dict[str, Any], reason: str) -> None:
    judgement = judge_with(attempt=broken)
    assert judgement.result is Result.INCONCLUSIVE
    assert reason in judgement.why


def test_stray_arrivals_of_the_control_are_no_arrival_of_the_attack() -> None:
    assert judge_with(control={"arrived": (), "stray": (ARRIVAL,)}).result is Result.INCONCLUSIVE


def test_without_the_room_there_are_no_counters_and_with_any_other_layer_off_there_are() -> None:
    uncounted = {"closing": {**CLOSED, "complete": False}}
    assert judge_with(attempt=uncounted, layers_off=("room",)).result is Result.BLOCKED
    assert judge_with(attempt=uncounted, layers_off=("notify",)).result is Result.INCONCLUSIVE
    assert judge_with(attempt={"closing": {}}, layers_off=("room",)).result is Result.INCONCLUSIVE


@pytest.mark.parametrize(
    ("control_after", "attempt_after", "result"),
    [
        (True, False, Result.BLOCKED),
        (True, True, Result.INCONCLUSIVE),
        (False, False, Result.INCONCLUSIVE),
        (False, True, Result.INCONCLUSIVE),
    ],
)
def test_an_attack_that_uses_the_run_up_is_judged_by_the_opposite_afterwards(
    control_after: bool, attempt_after: bool, result: Result
) -> None:
    """An upload limit holds for the run: the permitted request after it is refused too, contained only."""
    trial = Trial(
        id="example",
        control=structs.replace(CONTROL, allowed_after=control_after),
        attempt=structs.replace(ATTEMPT, allowed_after=attempt_after),
    )
    assert judge(structs.replace(technique(), uses_up=True), trial).result is result


def test_what_is_not_supported_is_neither_passed_nor_failed() -> None:
    trial = Trial(id="example", control=Try(), attempt=Try(), not_supported="needs gcc: apt install gcc")
    judgement = judge(technique(), trial)
    assert (judgement.result, judgement.why) == (Result.NOT_SUPPORTED, "needs gcc: apt install gcc")


# --- attribution ---------------------------------------------------------------------------


def refusal(stopped: Stopped, *denials: dict[str, Any], layer: Layer = Layer.GATEWAY) -> str | None:
    return find_refusal(technique(stopped, layer=layer), structs.replace(ATTEMPT, denials=denials))


@pytest.mark.parametrize(
    ("stopped", "is_found"),
    [
        (Stopped(reason=("metadata-address",)), True),
        (Stopped(reason=("not-listed", "metadata-address")), True),
        (Stopped(reason=("not-listed",)), False),
        (Stopped(reason=("metadata-address",), entry=("transparent",)), True),
        (Stopped(reason=("metadata-address",), entry=("socks5",)), False),
        (Stopped(reason=("metadata-address",), layer=("gateway",)), True),
        (Stopped(reason=("metadata-address",), layer=("room",)), False),
        (Stopped(reason=("metadata-address",), where={"address": "169.254.*"}), True),
        (Stopped(reason=("metadata-address",), where={"address": "10.*"}), False),
    ],
)
def test_reason_entry_layer_and_place_of_one_record_have_to_fit(stopped: Stopped, is_found: bool) -> None:
    assert (refusal(stopped, DENIAL) is not None) is is_found


def test_the_parts_are_not_gathered_from_several_records() -> None:
    stopped = Stopped(reason=("metadata-address",), entry=("socks5",))
    other = {"reason": "not-listed", "entry": "socks5"}
    assert refusal(stopped, DENIAL, other) is None
    assert refusal(stopped, DENIAL, other, {**DENIAL, "entry": "socks5"}) is not None


def test_one_of_several_expected_refusals_is_enough() -> None:
    two = technique(Stopped(reason=("malformed-host",)), Stopped(reason=("metadata-address",)))
    assert find_refusal(two, ATTEMPT) == "gateway: metadata-address"


@pytest.mark.parametrize(
    ("denial", "layer"),
    [
        ({"layer": "seccomp", "entry": "socket"}, "seccomp"),
        ({"layer": "notify", "entry": "exec"}, "notify"),
        ({"entry": "udp"}, "room"),
        ({"entry": "dns"}, "gateway"),
        ({"entry": "http-proxy"}, "gateway"),
    ],
)
def test_the_layer_is_the_record_s_own_not_the_one_that_was_hoped_for(
    denial: dict[str, Any], layer: str
) -> None:
    assert layer_of(denial) == layer


def test_a_silent_refusal_is_an_error_that_the_control_does_not_meet() -> None:
    """What fails in the open as well (a missing file, say) shows no refusal."""
    silent = technique(Stopped(silent=("EACCES",)), layer=Layer.VIEW)
    met = structs.replace(ATTEMPT, denials=(), said=({"do": "open", "errno": "EACCES"},))
    open_too = structs.replace(CONTROL, said=({"do": "open", "errno": "EACCES"},))
    assert find_refusal(silent, met, CONTROL) == "view: EACCES"
    assert find_refusal(silent, met, open_too) is None
    assert find_refusal(silent, structs.replace(met, said=()), CONTROL) is None


def test_an_error_of_the_permitted_request_is_no_silent_refusal() -> None:
    silent = technique(Stopped(silent=("ECONNREFUSED",)), layer=Layer.VIEW)
    step = {"do": "talk", "errno": "ECONNREFUSED"}
    permitted = structs.replace(ATTEMPT, denials=(), said=({**step, "allowed": "before"},))
    assert find_refusal(silent, permitted, CONTROL) is None
    assert find_refusal(silent, structs.replace(permitted, said=(step,)), CONTROL) is not None


def test_the_judge_compares_with_the_control_that_was_tried() -> None:
    silent = technique(Stopped(silent=("EACCES",)), layer=Layer.VIEW)
    said = ({"do": "open", "errno": "EACCES"},)
    met = structs.replace(ATTEMPT, denials=(), said=said)
    trial = Trial(id="example", control=CONTROL, attempt=met)
    assert judge(silent, trial).result is Result.BLOCKED
    open_too = structs.replace(trial, control=structs.replace(CONTROL, said=said))
    assert judge(silent, open_too).result is Result.INCONCLUSIVE


def test_a_refusal_that_has_to_be_seen_inside_needs_both() -> None:
    both = Stopped(reason=("metadata-address",), seen=("EPERM",))
    assert refusal(both, DENIAL) is None
    seen = structs.replace(ATTEMPT, said=({"do": "call", "errno": "EPERM"},))
    assert find_refusal(technique(both), seen) is not None
    assert find_refusal(technique(both), structs.replace(seen, denials=())) is None


# --- words -------------------------------------------------------------------------------------


def test_foreign_text_stays_on_one_line_without_control_characters() -> None:
    text = describe_arrival({**ARRIVAL, "text": "a\r\nb\x1b[2J\u202e", "requests": [{"x": 1}]})
    assert text.isprintable()
    assert "requests" not in text
    hostile = judge_with(attempt={"problem": "x\n\x1b]0;title\x07"})
    assert hostile.why.isprintable()
