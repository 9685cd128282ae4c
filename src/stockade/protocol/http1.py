"""Heads of HTTP/1 requests, read strictly: one meaning or none (RFC 9110, RFC 9112).

What two readers could read differently is refused, never repaired: bare LF, folded
fields, blanks before a colon, two lengths, a length beside ``chunked``, two Hosts.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.net.endpoint import Endpoint, parse_authority
from stockade.protocol.framing import (
    CHUNKED,
    NO_BODY,
    Framing,
    frame_length,
    malformed,
    parse_field,
    parse_length,
)
from stockade.protocol.http1_fields import Marks, is_persistent, read_list, split_head
from stockade.protocol.http1_line import Form, RequestLine, foresee_request, parse_request_line
from stockade.vocabulary import Reason

_CREDENTIALS = frozenset(
    (
        b"authorization", b"proxy-authorization", b"cookie", b"api-key", b"apikey", b"x-api-key",
        b"private-token", b"job-token", b"openai-organization", b"openai-project", b"x-amz-security-token",
    )
)  # fmt: skip
_CREDENTIAL_ENDINGS = (b"-api-key", b"-token", b"-access-key", b"-secret", b"-organization", b"-credential")
_NOT_CREDENTIALS = frozenset((b"x-csrf-token", b"x-xsrf-token", b"csrf-token"))


class RequestHead(Struct, frozen=True):
    """A request without its body.

    Attributes:
        raw: The whole head as it came, with the empty line.
        fields: Name in lower case and value, in order.
        host: The Host field, with port 0 if it names none; None if there is no field (HTTP/1.0).
        is_persistent: The client wants to use the connection again.
        upgrade: What the request wants to switch to, lower case; never ``h2c``.
        expects_continue: The body is sent after a 100 (Continue).
        offers_h2c: It offers HTTP/2 in clear text, which is taken out.
    """

    line: RequestLine
    raw: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    host: Endpoint | None
    framing: Framing
    is_persistent: bool
    upgrade: str | None
    expects_continue: bool
    credential_headers: tuple[str, ...]
    offers_h2c: bool


class HeadFinder:
    """Finds the end of a head in a growing buffer, and the first reason to refuse it.

    Lines are looked at as soon as they are whole, so that HTTP/0.9, binary bytes and
    bare LF are refused at once and not when the client's time is up. Each byte is
    looked at once however small the pieces are.

    Attributes:
        line: The request line, once it was read; None for responses.
    """

    __slots__ = ("_is_request", "_limit", "_line_end", "_scanned", "line")

    def __init__(self, limit_bytes: int, *, is_request: bool = True) -> None:
        self.line: RequestLine | None = None
        self._limit = limit_bytes
        self._is_request = is_request
        self._scanned = 0
        self._line_end = -1

    def find(self, buffer: bytes | bytearray) -> int:
        """Length of the head with its empty line, or 0 while bytes are missing.

        Raises:
            ProtocolViolation: ``malformed-request``, ``not-the-protocol``, ``head-too-large``.
        """
        limit = self._limit
        if self._line_end < 0 and self._is_request and buffer:
            foresee_request(buffer)
        if self._scanned == 0 and (whole := self._find_whole(buffer)):
            return whole
        while (end := buffer.find(b"\n", self._scanned, limit)) >= 0:
            if end == 0 or buffer[end - 1] != 13:
                raise malformed("a line that ends in LF without CR")
            line_start = self._line_end + 1
            if line_start == 0 and self._is_request:
                self.line = parse_request_line(bytes(buffer[: end - 1]))
            self._line_end = end
            self._scanned = end + 1
            if end - 1 == line_start:
                return end + 1
        self._scanned = max(self._scanned, min(len(buffer), limit))
        if len(buffer) >= limit:
            raise malformed(f"a head of more than {limit} bytes", Reason.HEAD_TOO_LARGE)
        return 0

    def _find_whole(self, buffer: bytes | bytearray) -> int:
        """The common case, a blameless head in one piece; 0 leaves it to the loop over the lines."""
        end = buffer.find(b"\r\n\r\n", 0, self._limit) + 4
        if end < 5 or buffer.count(b"\n", 0, end) != buffer.count(b"\r\n", 0, end):
            return 0
        if self._is_request:
            self.line = parse_request_line(bytes(buffer[: buffer.find(b"\r\n")]))
        return end


def parse_request_head(raw: bytes, line: RequestLine | None = None) -> RequestHead:
    """Parse a whole request head, as `HeadFinder` found it.

    Args:
        raw: The head with its empty line.
        line: Its first line, if the finder has read it already.

    Raises:
        ProtocolViolation: ``malformed-request`` or ``head-too-large``.
    """
    first, *lines = split_head(raw)
    if line is None:
        line = parse_request_line(first)
    fields = tuple([parse_field(text) for text in lines])
    marks = Marks(fields)
    host = _read_host(marks, line)
    upgrade, offers_h2c = _read_upgrade(marks)
    return RequestHead(
        line=line,
        raw=raw,
        fields=fields,
        host=host,
        framing=_frame_request(marks, line),
        is_persistent=is_persistent(marks, line.minor),
        upgrade=upgrade,
        expects_continue=_expects_continue(marks),
        credential_headers=_find_credentials(fields),
        offers_h2c=offers_h2c,
    )


def _read_host(marks: Marks, line: RequestLine) -> Endpoint | None:
    value = marks.one(b"host")
    if value is None:
        if line.minor == 1:
            raise malformed("an HTTP/1.1 request without a Host field")  # RFC 9112 3.2
        return None
    return parse_authority(value, 0)


def _frame_request(marks: Marks, line: RequestLine) -> Framing:
    length = marks.one(b"content-length")
    coding = marks.one(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise malformed("a Content-Length beside a Transfer-Encoding")
        if line.minor == 0:
            raise malformed("a Transfer-Encoding in HTTP/1.0")
        if coding.lower() != b"chunked":
            raise malformed("a Transfer-Encoding that is not just chunked")
        framing = CHUNKED
    else:
        framing = NO_BODY if length is None else frame_length(parse_length(length))
    if line.form is Form.AUTHORITY and framing is not NO_BODY:
        raise malformed("a CONNECT with a body")
    return framing


def _expects_continue(marks: Marks) -> bool:
    value = marks.one(b"expect")
    if value is None:
        return False
    if value.lower() != b"100-continue":
        raise malformed("an expectation other than 100-continue")
    return True


def _read_upgrade(marks: Marks) -> tuple[str | None, bool]:
    """What the request wants to become, and whether it offers HTTP/2 in clear text."""
    values = marks.all(b"upgrade")
    if not values:
        return None, False
    offers = read_list(values)
    if any(offer.partition(b"/")[0] == b"h2c" for offer in offers):
        return None, True
    return b",".join(sorted(offers)).decode("latin-1") or None, False


def _find_credentials(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[str, ...]:
    return tuple(
        [
            name.decode("ascii")
            for name, _ in fields
            if name in _CREDENTIALS or (name.endswith(_CREDENTIAL_ENDINGS) and name not in _NOT_CREDENTIALS)
        ]
    )
