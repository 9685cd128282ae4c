"""The first line of an HTTP/1 request: method, target in one of four forms, version (RFC 9112 3)."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint, encode_path, parse_authority
from stockade.net.host import HostRefusal, escape_text
from stockade.protocol.framing import TOKEN_BYTES, malformed
from stockade.vocabulary import Reason

MAX_METHOD = 32
MAX_SHOWN = 120

_TARGET_BYTES = bytes((*range(0x21, 0x7F), *range(0x80, 0x100)))


class Form(Enum):
    """The four ways to write a request target (RFC 9112 3.2)."""

    ORIGIN = "origin"
    ABSOLUTE = "absolute"
    AUTHORITY = "authority"
    ASTERISK = "asterisk"


class RequestLine(Struct, frozen=True):
    """The first line of a request.

    Attributes:
        method: In upper case as sent; methods are case-sensitive, so ``get`` is another method.
        scheme: Of an absolute target, in lower case; else None.
        authority: Of an absolute target or a CONNECT; else None.
        path: Without the query, other bytes than ASCII percent-encoded; None for CONNECT.
        query_bytes: Length of the query.
        origin_target: The target in origin form, as it goes to the destination.
        minor: 0 or 1 of HTTP/1.x.
    """

    method: str
    form: Form
    scheme: str | None
    authority: Endpoint | None
    path: str | None
    query_bytes: int
    origin_target: bytes
    minor: int


def foresee_request(buffer: bytes | bytearray) -> None:
    """Refuse what can no longer become a request, though its first line is not whole yet."""
    line = buffer[: MAX_METHOD + 1].partition(b"\n")[0].partition(b"\r")[0]
    _read_method(bytes(line.partition(b" ")[0]))


def _read_method(method: bytes) -> str:
    if not method or len(method) > MAX_METHOD or method.translate(None, TOKEN_BYTES):
        raise ProtocolViolation(Reason.NOT_THE_PROTOCOL.value, "the first bytes are not an HTTP request")
    return method.decode("ascii")


def parse_request_line(line: bytes) -> RequestLine:
    """Parse ``METHOD target HTTP/1.x``, without its CRLF.

    Raises:
        ProtocolViolation: ``malformed-request``, or ``not-the-protocol`` if it is no HTTP at all.
    """
    parts = line.split(b" ")
    method = _read_method(parts[0])
    if len(parts) != 3:
        raise malformed(f"a request line that is not a method, a target and a version: {_shown(line)}")
    _, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise malformed("a version that is neither HTTP/1.1 nor HTTP/1.0")
    if not target or target.translate(None, _TARGET_BYTES) or b"#" in target:
        raise malformed(f"a target with characters that no target has: {_shown(target)}")
    return _read_target(method, target, version[-1] - 48)


def _shown(text: bytes) -> str:
    """For the record. What stands before an ``@`` or behind a ``?`` can be a secret and is left out."""
    return escape_text(text.partition(b"?")[0].rpartition(b"@")[2], MAX_SHOWN)


def _read_target(method: str, target: bytes, minor: int) -> RequestLine:
    if method == "CONNECT":
        authority = _read_connect_authority(target)
        return RequestLine(method, Form.AUTHORITY, None, authority, None, 0, target, minor)
    if target.startswith(b"/"):
        return _with_path(method, Form.ORIGIN, None, None, target, minor)
    if target == b"*":
        if method != "OPTIONS":
            raise malformed("a target of * with another method than OPTIONS")
        return RequestLine(method, Form.ASTERISK, None, None, "*", 0, target, minor)
    scheme, separator, rest = target.partition(b"://")
    if not separator or not scheme.isalpha():
        raise malformed("a target that is neither a path nor a URL")
    return _read_absolute(method, scheme.decode("ascii").lower(), rest, minor)


def _read_absolute(method: str, scheme: str, rest: bytes, minor: int) -> RequestLine:
    end = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    authority = parse_authority(rest[:end], 443 if scheme == "https" else 80)
    origin = rest[end:]
    if not origin.startswith(b"/"):
        # RFC 9112 3.2.1 and 3.2.4: an empty path is "/", for OPTIONS it is "*"
        origin = b"*" if method == "OPTIONS" and not origin else b"/" + origin
    return _with_path(method, Form.ABSOLUTE, scheme, authority, origin, minor)


def _with_path(
    method: str, form: Form, scheme: str | None, authority: Endpoint | None, origin: bytes, minor: int
) -> RequestLine:
    raw_path, _, query = origin.partition(b"?")
    path = raw_path.decode("ascii") if raw_path.isascii() else encode_path(raw_path)
    return RequestLine(method, form, scheme, authority, path, len(query), origin, minor)


def _read_connect_authority(target: bytes) -> Endpoint:
    authority = parse_authority(target, 0)
    if authority.port == 0 and not isinstance(authority.host, HostRefusal):
        raise malformed("a CONNECT without a port")  # RFC 9112 3.2.3
    return authority
