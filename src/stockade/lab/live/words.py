"""Pure: what the worker's payload said, in plain words.

The payload is foreign once it has done its steps, and what servers answered is foreign anyway: each value is
taken as text, cut, and made showable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from stockade.ledger.record import clean_text

Said = dict[str, Any]

TEXT_LIMIT = 160
# RFC 8446 6: the names that OpenSSL prints, with the numbers that stand on the wire.
ALERTS = {
    "handshake failure": 40, "illegal parameter": 47, "unknown ca": 48, "access denied": 49,
    "decode error": 50, "protocol version": 70, "internal error": 80, "unrecognized name": 112,
}  # fmt: skip
_ALERT = re.compile(r"alert ([a-z ]+?) *\(", re.IGNORECASE)
_STATUS = re.compile(r"HTTP/1\.[01] (\d{3})(?: ([^\r\n]{0,40}))?")
_REASON = re.compile(r"X-Stockade-Reason: ([a-z0-9-]{1,60})", re.IGNORECASE)
# The stand-in's own phrase says nothing: it is the same for every status.
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
# RFC 1928 6.
_SOCKS = {
    1: "general failure", 2: "not allowed by the rules", 3: "network unreachable", 4: "host unreachable",
    5: "connection refused",
}  # fmt: skip
_ANSWER_CODES = {0: "answered", 2: "server failure", 3: "no such name", 4: "not implemented", 5: "refused"}


def has_started(said: Iterable[Said]) -> bool:
    """A program ran: it came to an end of its own."""
    return any(one.get("step") == "run" and "code" in one for one in said)


def has_answered(said: Iterable[Said]) -> bool:
    """A name question was answered without an error code (the answer may be empty)."""
    return any(one.get("step") == "question" and one.get("rcode") == 0 for one in said)


def describe_said(said: Iterable[Said]) -> list[Said]:
    """One line a step: what the worker did, and what it saw."""
    return [{"step": _text(one.get("step", "?")), "text": _describe(one)} for one in said]


def _describe(one: Said) -> str:
    describe = _STEPS.get(str(one.get("step")))
    if describe is None:
        return _text(one.get("text", one))
    try:
        return describe(one)
    except (KeyError, TypeError, ValueError):
        return _text(one)


def _name(one: Said) -> str:
    asked = f"asks for the address of {_text(one['name'])}: "
    return asked + (
        _error(one) if "error" in one else f"{_text(one['address'])} (of the room; every name gets one)"
    )


def _connect(one: Said) -> str:
    place = f"{_text(one['host'])} port {one['port']}"
    if one.get("entry") == "http-proxy":
        told = f"asks the room's HTTP proxy for {place}: "
        return told + (_proxy_answer(one) if "connect" in one or "error" in one else "connected to the proxy")
    if one.get("entry") == "socks5":
        code = one.get("socks")
        answer = (
            _error(one)
            if code is None
            else f"answer {code} ({_SOCKS.get(code, 'unknown')})"
            if code
            else "connected"
        )
        return f"asks the room's SOCKS proxy for {place}: {answer}"
    where = place if one.get("address") == one.get("host") else f"{place} at {_text(one.get('address'))}"
    return f"connects to {where}: " + (_error(one) if "error" in one else "connected (to the gateway)")


def _proxy_answer(one: Said) -> str:
    return _reply(str(one["connect"])) if "connect" in one else _error(one)


def _tls(one: Said) -> str:
    named = f"naming {_text(one['sni'])}" if one.get("sni") else "without a name"
    return f"starts TLS {named}: " + (_error(one) if "error" in one else "done")


def _send(one: Said) -> str:
    sent = f"sends {_text(one['first'])} ({one['bytes']} bytes): "
    if "error" in one:
        return sent + _error(one)
    if not one["size"]:
        return sent + ("closed without an answer" if one.get("ended") else "no answer")
    return sent + _reply(str(one["reply"]), one["size"])


def _reply(text: str, size: int | None = None) -> str:
    status = _STATUS.match(text)
    if status is None:
        return f"{size or len(text)} bytes back: {_text(text)}"
    words = f"{status[1]} {_PHRASES.get(int(status[1]), '')}".strip()
    if reason := _REASON.search(text):
        return f"{words} from the gateway, reason {reason[1]}"
    body = text.partition("\r\n\r\n")[2]
    count = len(body) if size is None else size - (len(text) - len(body))
    return words if size is None else f"{words}, {count} bytes of content"


def _datagram(one: Said) -> str:
    sent = f"sends a datagram to {_text(one['host'])} port {one['port']}: "
    if "error" in one:
        return sent + ("no answer" if one["error"] == "TimeoutError" else _error(one))
    return sent + "answered"


def _question(one: Said) -> str:
    asked = f"asks the room's resolver for {_text(one['name'])} {_text(one['kind'])}: "
    if "error" in one:
        return asked + _error(one)
    code, count = one["rcode"], one["count"]
    if code:
        return asked + f"{_ANSWER_CODES.get(code, 'error')} (code {code})"
    return asked + (_text(one.get("address", f"{count} answers")) if count else "an empty answer")


def _run(one: Said) -> str:
    argv = " ".join(map(str, one["argv"]))
    called = f"runs {_text(argv)}: "
    if "error" in one:
        return called + _error(one)
    out = str(one.get("out", "")).strip()
    ended = "it ran" if one["code"] == 0 else f"it ran and ended with code {one['code']}"
    return called + ended + (f", and printed {_text(out)}" if out else "")


def _socket(one: Said) -> str:
    return f"opens {_text(one['what'])}: " + (_error(one) if "error" in one else "done")


def _memory_file(one: Said) -> str:
    return "makes a file in memory for the program: " + (_error(one) if "error" in one else "done")


def _error(one: Said) -> str:
    """What went wrong, as a client would have it in its log."""
    detail, number = str(one.get("detail", "")), one.get("errno")
    if alert := _ALERT.search(detail):
        name = alert[1].strip().lower()
        return f"TLS alert {ALERTS[name]} ({name})" if name in ALERTS else f"TLS alert ({name})"
    if "EOF occurred" in detail or number == "ECONNRESET":
        return "reset" if number == "ECONNRESET" else "closed without a word"
    if one.get("error") == "gaierror":
        return "no such name"
    if one.get("error") in ("TimeoutError", "TimeoutExpired"):
        return "no answer in time"
    if isinstance(number, str):
        return f"refused with {_text(number)}"
    return _text(f"{one.get('error')}: {detail}")


def _text(value: object) -> str:
    return clean_text(str(value), TEXT_LIMIT)


_STEPS: dict[str, Callable[[Said], str]] = {
    "name": _name,
    "connect": _connect,
    "tls": _tls,
    "send": _send,
    "datagram": _datagram,
    "question": _question,
    "run": _run,
    "socket": _socket,
    "memory file": _memory_file,
}
