"""System calls that the sandbox's filter refused, as decisions and as records."""

from __future__ import annotations

import pytest
from decision_texts import engine_of

from stockade.cli.log import describe_attempt
from stockade.decision.commands import RefusedCall
from stockade.decision.request import Attempt, Decision
from stockade.gateway.journal import attempt_fields, target_text
from stockade.vocabulary import Entry, Protocol, Reason, Verdict

TRIED = Attempt(entry=Entry.EXEC, protocol=Protocol.EXEC, call="ptrace(PTRACE_ATTACH, 7)")
WHY = "one process would take over another"


def refuse(reason: Reason, permit: str | None = None, text: str = "rules: []") -> Decision:
    return engine_of(text).refuse_call(TRIED, RefusedCall("process-access", reason, WHY, permit))


@pytest.mark.parametrize(
    ("reason", "control"),
    [
        (Reason.SYSTEM_CALL_REFUSED, "namespace-isolation"),
        (Reason.CODE_IN_MEMORY, "exec-deny"),
        (Reason.CONTROL_SOCKET, "no-control-sockets"),
        (Reason.SOCKET_FAMILY_REFUSED, "namespace-isolation"),
    ],
)
def test_a_refused_call_is_tampering_with_the_boundary_under_its_own_control(
    reason: Reason, control: str
) -> None:
    decision = refuse(reason)
    assert (decision.verdict, decision.reason) == (Verdict.DENY, reason)
    assert (str(decision.risk), str(decision.place)) == ("boundary-tampering", "local")
    assert str(decision.control) == control
    assert decision.rule == "filter:process-access"


def test_a_refused_way_off_the_machine_has_the_labels_of_its_attempt_line() -> None:
    """As `decide socket icmp:ADDR` calls it (E053 of the event bank): a raw socket carries any bytes out."""
    raw = RefusedCall("internet-protocols", Reason.SOCKET_FAMILY_REFUSED, WHY, leads_out=True)
    decision = engine_of("rules: []").refuse_call(TRIED, raw)
    assert (str(decision.risk), str(decision.place)) == ("exfiltration", "unknown")
    assert str(decision.control) == "namespace-isolation"


def test_no_policy_lets_a_refused_call_through() -> None:
    assert refuse(Reason.SYSTEM_CALL_REFUSED, text="exec: {mode: any}").verdict is Verdict.DENY


def test_the_sentence_names_the_call_and_why_and_what_would_permit_it() -> None:
    closed = refuse(Reason.SYSTEM_CALL_REFUSED).why
    assert closed == f"ptrace(PTRACE_ATTACH, 7) is refused: {WHY}; no rule can open it."
    opened = refuse(Reason.CODE_IN_MEMORY, "exec: {code: jit}").why
    assert opened == f"ptrace(PTRACE_ATTACH, 7) is refused: {WHY}; to permit it, add `exec: {{code: jit}}`."


def test_a_record_names_the_call_and_a_command_s_record_names_none() -> None:
    decision = refuse(Reason.SYSTEM_CALL_REFUSED)
    record = attempt_fields(TRIED, decision)
    assert (record["call"], record["entry"], record["rule"]) == (TRIED.call, "exec", "filter:process-access")
    assert target_text(TRIED) == TRIED.call
    assert describe_attempt(record) == "call ptrace(PTRACE_ATTACH, 7)"
    command = Attempt(entry=Entry.EXEC, protocol=Protocol.EXEC, argv=("id", "-u"))
    record = attempt_fields(command, decision)
    assert "call" not in record
    assert describe_attempt(record) == "run id -u"
