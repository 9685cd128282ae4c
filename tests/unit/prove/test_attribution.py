"""Which of several refusals a technique means, and what counts as arrived."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stockade.prove.judge import find_refusal, judge
from stockade.prove.technique import Group, Layer, Stopped, Technique, Witness
from stockade.prove.trial import Result, Trial, Try
from stockade.prove.witnesses import fits
from stockade.vocabulary import Risk

LOOK_UP = {"reason": "control-socket", "entry": "socket", "call": "socket(AF_UNIX, SOCK_STREAM, 0)"}
DATAGRAM = {**LOOK_UP, "call": "socket(AF_UNIX, SOCK_DGRAM, 0)", "layer": "seccomp"}


def technique(*stopped: Stopped, **more: Any) -> Technique:
    return Technique(
        id="some-attack",
        title="an attack",
        group=Group.ROADS,
        layer=Layer.SECCOMP,
        risk=Risk.BOUNDARY_TAMPERING,
        references=("CWE-1",),
        arrives=(Witness(what="tcp"),),
        stopped=stopped,
        **more,
    )


def attempt(*denials: dict[str, Any], **more: Any) -> Try:
    worked = {
        "is_done": True,
        "allowed_before": True,
        "allowed_after": True,
        "exit_code": 0,
        "closing": {"complete": True},
    }
    return Try(denials=denials, **{**worked, **more})


def test_a_record_of_the_same_reason_for_something_else_is_not_the_refusal() -> None:
    """The C library's own look-up of names asks for a Unix socket in each run (nscd)."""
    meant = technique(Stopped(reason=("control-socket",), where={"call": "socket(AF_UNIX, SOCK_DGRAM*"}))
    assert find_refusal(meant, attempt(LOOK_UP)) is None
    assert find_refusal(meant, attempt(LOOK_UP, DATAGRAM)) == "seccomp: control-socket"


def test_a_key_that_the_record_lacks_does_not_match() -> None:
    meant = technique(Stopped(where={"address": "10.9.0.2"}))
    assert find_refusal(meant, attempt(LOOK_UP)) is None


def test_the_step_inside_has_to_have_met_the_error_where_that_is_asked() -> None:
    meant = technique(Stopped(reason=("control-socket",), seen=("EAFNOSUPPORT",)))
    assert find_refusal(meant, attempt(LOOK_UP)) is None
    assert find_refusal(meant, attempt(LOOK_UP, said=({"errno": "ENOENT"},))) is None
    assert find_refusal(meant, attempt(LOOK_UP, said=({"errno": "EAFNOSUPPORT"},))) is not None


@pytest.mark.parametrize(("uses_up", "after"), [(False, True), (True, False)])
def test_an_attack_that_uses_up_the_run_has_to_leave_nothing_and_any_other_all(
    uses_up: bool, after: bool
) -> None:
    control = attempt(arrived=({"what": "tcp"},))
    kind = technique(Stopped(reason=("control-socket",)), uses_up=uses_up)
    good = Trial(id="some-attack", control=control, attempt=attempt(LOOK_UP, allowed_after=after))
    bad = msgspec.structs.replace(good, attempt=attempt(LOOK_UP, allowed_after=not after))
    assert judge(kind, good).result is Result.BLOCKED
    assert judge(kind, bad).result is Result.INCONCLUSIVE


@pytest.mark.parametrize(("size", "arrived"), [(1024, False), (1025, True)])
def test_a_body_up_to_the_limit_is_no_arrival(size: int, arrived: bool) -> None:
    witness = Witness(what="request", name="paste.test", more_bytes=1024)
    seen = {"what": "request", "name": "paste.test", "body_bytes": size}
    assert fits(witness, seen) is arrived
