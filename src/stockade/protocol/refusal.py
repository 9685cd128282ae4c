"""How a refusal sounds: to the worker in its own protocol, in the record as a decision.

The worker learns the reason and the decision's id, and that this is policy and not a
fault of the network (else it goes looking for ways round). It never learns a path, a
rule's text or what else is permitted: that is in the operator's log.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from stockade.decision.request import Decision
from stockade.errors import ProtocolViolation
from stockade.vocabulary import REASONS, Control, Reason, Risk, Verdict

_STATUS_TEXTS = {
    400: "Bad Request",
    403: "Forbidden",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}
_STATUS_OF = {
    Reason.MALFORMED_REQUEST: 400,
    Reason.NOT_THE_PROTOCOL: 400,
    Reason.FIRST_BYTE_TIMEOUT: 408,
    Reason.BODY_TOO_LARGE: 413,
    Reason.HEAD_TOO_LARGE: 431,
}
# What the flow itself refuses, where the engine would have let the attempt through: risk and control.
_TAKEN_BACK: dict[Reason, tuple[Risk, Control]] = {
    Reason.NAME_MISMATCH: (Risk.EXFILTRATION, Control.NAME_CONSISTENCY),
    Reason.SNI_MISSING: (Risk.EXFILTRATION, Control.NAME_CONSISTENCY),
    Reason.MALFORMED_HOST: (Risk.EXFILTRATION, Control.CANONICALISE_HOST),
    Reason.MALFORMED_TLS: (Risk.EXFILTRATION, Control.SCHEME_AND_PORT_SCOPE),
    Reason.MALFORMED_REQUEST: (Risk.EXFILTRATION, Control.OPERATION_SCOPE),
    Reason.NOT_THE_PROTOCOL: (Risk.BENIGN, Control.SCHEME_AND_PORT_SCOPE),
    Reason.PROTOCOL_NOT_CARRIED: (Risk.EXFILTRATION, Control.SCHEME_AND_PORT_SCOPE),
    Reason.METHOD_NOT_PERMITTED: (Risk.EXFILTRATION, Control.OPERATION_SCOPE),
    Reason.BODY_TOO_LARGE: (Risk.EXFILTRATION, Control.SIZE_RATE_QUOTA),
    Reason.UPLOAD_LIMIT: (Risk.EXFILTRATION, Control.SIZE_RATE_QUOTA),
    Reason.HEAD_TOO_LARGE: (Risk.EXFILTRATION, Control.SIZE_RATE_QUOTA),
    Reason.FIRST_BYTE_TIMEOUT: (Risk.BENIGN, Control.SIZE_RATE_QUOTA),
    Reason.ADDRESS_NOT_JUDGED: (Risk.SSRF, Control.CHECK_RESOLVED_ADDRESS),
}

_HINT = "This is the sandbox's policy and not a network fault, so another way will not work either; "
_ASK = "whoever runs the sandbox finds this decision under its id and can change the policy."


def take_back(decision: Decision, reason: Reason, detail: str | None = None) -> Decision:
    """The same decision as a denial: a flow can only ever take away what the engine gave."""
    risk, control = _TAKEN_BACK.get(reason, (decision.risk, decision.control))
    why = REASONS[reason] if detail is None else f"{REASONS[reason]}: {detail}"
    return replace(
        decision, verdict=Verdict.DENY, risk=risk, control=control, reason=reason, why=why, permit=None
    )


def reason_of(violation: ProtocolViolation) -> Reason:
    return Reason(violation.code)


def status_of(reason: Reason) -> int:
    """The HTTP status of a denial; 403 unless the request itself was at fault."""
    return _STATUS_OF.get(reason, 403)


def build_denial(
    decision: Decision, decision_id: str, *, status: int, keep_alive: bool, has_body: bool = True
) -> bytes:
    """An HTTP response that says no: for programs in fields and JSON, for people in a sentence."""
    sentence = REASONS[decision.reason]
    hint = f"{_HINT}{_ASK}" if status == 403 else f"Refused by the sandbox: {sentence}."
    error = "denied by policy" if status in (403, 413) else "request refused"
    return _build(status, error, decision.reason.value, decision_id, hint, sentence, keep_alive, has_body)


def build_failure(
    word: str, decision_id: str, *, status: int, keep_alive: bool, has_body: bool = True
) -> bytes:
    """An HTTP response for a permitted request whose destination could not be reached."""
    hint = "The policy permits this request; the destination could not be reached or gave no usable answer."
    return _build(status, "destination failed", word, decision_id, hint, word, keep_alive, has_body)


def _build(
    status: int,
    error: str,
    reason: str,
    decision_id: str,
    hint: str,
    sentence: str,
    keep_alive: bool,
    has_body: bool,
) -> bytes:
    document = {"error": error, "reason": reason, "id": decision_id, "detail": sentence, "hint": hint}
    body = msgspec.json.encode(document) + b"\n"
    head = (
        f"HTTP/1.1 {status} {_STATUS_TEXTS[status]}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nCache-Control: no-store\r\n"
        f"X-Stockade-Reason: {reason}\r\nX-Stockade-Id: {decision_id}\r\n"
        f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    ).encode("ascii")
    return head + body if has_body else head  # an answer to HEAD has the fields and no body
