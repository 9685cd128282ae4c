"""How a refusal sounds to the worker, in HTTP.

The worker learns the reason and the decision's id, and that this is policy and not a
fault of the network (else it goes looking for ways round). It never learns a path, a
rule's text or what else is permitted: that is in the operator's log.
"""

from __future__ import annotations

import msgspec

from stockade.decision.request import Decision
from stockade.errors import ProtocolViolation
from stockade.vocabulary import REASONS, Reason

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
_HINT = "This is the sandbox's policy and not a network fault, so another way will not work either; "
_ASK = "whoever runs the sandbox finds this decision under its id and can change the policy."


def reason_of(violation: ProtocolViolation) -> Reason:
    return Reason(violation.code)


def status_of(reason: Reason) -> int:
    """The HTTP status of a denial; 403 unless the request itself was at fault."""
    return _STATUS_OF.get(reason, 403)


def build_denial(
    decision: Decision,
    decision_id: str,
    *,
    status: int,
    keep_alive: bool,
    has_body: bool = True,
    help_text: str | None = None,
) -> bytes:
    """An HTTP response that says no: for programs in fields and JSON, for people in a sentence.

    Args:
        help_text: What was wrong with the request, where the client can do better.
    """
    sentence = REASONS[decision.reason]
    hint = f"{_HINT}{_ASK}" if status == 403 else f"Refused by the sandbox: {help_text or sentence}."
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
