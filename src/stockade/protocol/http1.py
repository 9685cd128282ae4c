"""Heads of HTTP/1 messages, read strictly: one meaning or none (RFC 9110, RFC 9112).

What two readers could read differently is refused, never repaired: bare LF, folded
fields, blanks before a colon, two lengths, a length beside ``chunked``, two Hosts. A
head that was read is passed on as it came, byte for byte, except where a proxy must
change it: absolute form becomes origin form, and fields that speak to the proxy go.

``Upgrade: h2c`` is taken out instead of refusing the request: some clients (Java's) send
it with every first request and are content with HTTP/1.1. The upgrade cannot happen,
since the destination never sees the offer and an unasked 101 is refused.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint, encode_path, parse_authority
from stockade.net.host import HostRefusal
from stockade.protocol.framing import (
    CHUNKED,
    NO_BODY,
    TOKEN_BYTES,
    UNTIL_CLOSE,
    VALUE_BYTES,
    Framing,
    frame_length,
    malformed,
    parse_field,
    parse_length,
)
from stockade.vocabulary import Reason

MAX_METHOD = 32
MAX_FIELDS = 256

_HEAD_BYTES = VALUE_BYTES + b"\r\n"
_TARGET_BYTES = bytes((*range(0x21, 0x7F), *range(0x80, 0x100)))
# Fields for the next hop only (RFC 9110 7.6.1); Connection and what it lists are added per message.
_HOP_BY_HOP = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade")
)
_CREDENTIALS = frozenset(
    (
        b"authorization", b"proxy-authorization", b"cookie", b"api-key", b"apikey", b"x-api-key",
        b"private-token", b"job-token", b"openai-organization", b"openai-project", b"x-amz-security-token",
    )
)  # fmt: skip
_CREDENTIAL_ENDINGS = (b"-api-key", b"-token", b"-access-key", b"-secret", b"-organization", b"-credential")
_NOT_CREDENTIALS = frozenset((b"x-csrf-token", b"x-xsrf-token", b"csrf-token"))


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


class ResponseHead(Struct, frozen=True):
    """A response without its body.

    Attributes:
        location: The Location field of a 3xx, else None.
        is_persistent: The server keeps the connection and the end of the body can be seen.
    """

    status: int
    raw: bytes
    framing: Framing
    is_persistent: bool
    location: bytes | None

    @property
    def is_interim(self) -> bool:
        """True for 1xx except 101: the real answer is still to come."""
        return self.status < 200 and self.status != 101


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
            _foresee_request(buffer)
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


def _foresee_request(buffer: bytes | bytearray) -> None:
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
        raise malformed("a request line that is not a method, a target and a version")
    _, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise malformed("a version that is neither HTTP/1.1 nor HTTP/1.0")
    if not target or target.translate(None, _TARGET_BYTES) or b"#" in target:
        raise malformed("a target with characters that no target has")
    return _read_target(method, target, version[-1] - 48)


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


def parse_request_head(raw: bytes, line: RequestLine | None = None) -> RequestHead:
    """Parse a whole request head, as `HeadFinder` found it.

    Args:
        raw: The head with its empty line.
        line: Its first line, if the finder has read it already.

    Raises:
        ProtocolViolation: ``malformed-request`` or ``head-too-large``.
    """
    first, *lines = _split_head(raw)
    if line is None:
        line = parse_request_line(first)
    fields = tuple([parse_field(text) for text in lines])
    marks = _Marks(fields)
    host = _read_host(marks, line)
    upgrade, offers_h2c = _read_upgrade(marks)
    return RequestHead(
        line=line,
        raw=raw,
        fields=fields,
        host=host,
        framing=_frame_request(marks, line),
        is_persistent=_is_persistent(marks, line.minor),
        upgrade=upgrade,
        expects_continue=_expects_continue(marks),
        credential_headers=_find_credentials(fields),
        offers_h2c=offers_h2c,
    )


def _split_head(raw: bytes) -> list[bytes]:
    lines = raw[:-4].split(b"\r\n")
    if len(lines) - 1 > MAX_FIELDS:
        raise malformed(f"more than {MAX_FIELDS} fields", Reason.HEAD_TOO_LARGE)
    ends = len(lines) + 1
    if raw.count(b"\r") != ends or raw.count(b"\n") != ends:
        raise malformed("a CR or LF inside a line")
    if raw.translate(None, _HEAD_BYTES):
        raise malformed("a control character in a field")
    return lines


_NOTED = frozenset(
    (
        b"host", b"content-length", b"transfer-encoding", b"connection", b"proxy-connection", b"upgrade",
        b"expect", b"location",
    )
)  # fmt: skip


class _Marks:
    """The few fields that say how a message is to be read."""

    __slots__ = ("_values", "options")

    def __init__(self, fields: tuple[tuple[bytes, bytes], ...]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in fields:
            if name in _NOTED:
                self._values.setdefault(name, []).append(value)
        self.options = self._read_options(b"connection") or self._read_options(b"proxy-connection")

    def one(self, name: bytes) -> bytes | None:
        """The value of a field that may stand once."""
        values = self._values.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise malformed(f"two {name.decode('ascii').title()} fields")
        return values[0]

    def all(self, name: bytes) -> list[bytes]:
        return self._values.get(name, [])

    def _read_options(self, name: bytes) -> frozenset[bytes]:
        values = self._values.get(name)
        return frozenset() if values is None else read_list(values)


def read_list(values: list[bytes]) -> frozenset[bytes]:
    """The lower-case members of a comma-separated list that may stand in several fields."""
    parts = b",".join(values).lower().split(b",")
    return frozenset([item for part in parts if (item := part.strip(b" \t"))])


def _read_host(marks: _Marks, line: RequestLine) -> Endpoint | None:
    value = marks.one(b"host")
    if value is None:
        if line.minor == 1:
            raise malformed("an HTTP/1.1 request without a Host field")  # RFC 9112 3.2
        return None
    return parse_authority(value, 0)


def _frame_request(marks: _Marks, line: RequestLine) -> Framing:
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


def _is_persistent(marks: _Marks, minor: int) -> bool:
    if b"close" in marks.options:
        return False
    return minor == 1 or b"keep-alive" in marks.options


def _expects_continue(marks: _Marks) -> bool:
    value = marks.one(b"expect")
    if value is None:
        return False
    if value.lower() != b"100-continue":
        raise malformed("an expectation other than 100-continue")
    return True


def _read_upgrade(marks: _Marks) -> tuple[str | None, bool]:
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


def forward_request(head: RequestHead, host: Endpoint, *, to_proxy: bool) -> bytes:
    """The head as it goes on to the destination, byte for byte as it came if nothing must change.

    Args:
        host: The place that was judged; becomes the Host field if there was none.
        to_proxy: It was written to a proxy: hop-by-hop fields end here. Else only an
            offer of h2c goes, and an absolute target becomes a path.
    """
    line = head.line
    if not to_proxy and line.form is not Form.ABSOLUTE and head.host is not None and not head.offers_h2c:
        return head.raw
    dropped = _fields_to_drop(head, to_proxy=to_proxy)
    out = [b"%s %s HTTP/1.%d" % (line.method.encode("ascii"), line.origin_target, line.minor)]
    if head.host is None:
        out.append(b"Host: " + write_authority(host))
    for text, (name, _) in zip(head.raw[:-4].split(b"\r\n")[1:], head.fields, strict=True):
        if name not in dropped:
            out.append(text)
    if to_proxy and head.upgrade is not None:
        out.append(b"Connection: Upgrade")
        out.extend(b"Upgrade: " + value for name, value in head.fields if name == b"upgrade")
    out.append(b"\r\n")
    return b"\r\n".join(out)


# A Connection field could list these too and so make the proxy cut them out of the request.
_NEVER_DROPPED = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"expect", b"authorization", b"cookie")
)


def _fields_to_drop(head: RequestHead, *, to_proxy: bool) -> frozenset[bytes]:
    if not to_proxy:
        # Upgrade goes together with what announces it, else the destination would see half an offer.
        return frozenset((b"upgrade", b"http2-settings", b"connection")) if head.offers_h2c else frozenset()
    listed = read_list([value for name, value in head.fields if name == b"connection"])
    return (_HOP_BY_HOP | listed | {b"http2-settings"}) - _NEVER_DROPPED


def write_authority(endpoint: Endpoint, default_port: int = 80) -> bytes:
    """``host`` or ``host:port``, brackets around IPv6."""
    name = "" if isinstance(endpoint.host, HostRefusal) else endpoint.host.name
    text = f"[{name}]" if ":" in name else name
    return (text if endpoint.port == default_port else f"{text}:{endpoint.port}").encode("ascii")


def parse_response_head(raw: bytes, method: str) -> ResponseHead:
    """Parse a whole response head; `method` is the request's, since HEAD has no body.

    Raises:
        ProtocolViolation: the destination's answer cannot be read in one way only.
    """
    first, *lines = _split_head(raw)
    minor, status = _read_status_line(first)
    marks = _Marks(tuple([parse_field(text) for text in lines]))
    framing = _frame_response(marks, status, minor, method)
    return ResponseHead(
        status=status,
        raw=raw,
        framing=framing,
        is_persistent=_is_persistent(marks, minor) and framing is not UNTIL_CLOSE,
        location=marks.one(b"location") if 300 <= status < 400 else None,
    )


def _read_status_line(line: bytes) -> tuple[int, int]:
    version, code = line[:9], line[9:12]
    if version not in (b"HTTP/1.1 ", b"HTTP/1.0 ") or len(code) != 3 or not code.isdigit():
        raise malformed("a status line that is not of HTTP/1")
    if line[12:13] not in (b"", b" ") or code[0] not in b"12345":
        raise malformed("a status that is not a number from 100 to 599")
    return version[7] - 48, int(code)


def _frame_response(marks: _Marks, status: int, minor: int, method: str) -> Framing:
    """RFC 9112 6.3, without its concessions."""
    length = marks.one(b"content-length")
    coding = marks.one(b"transfer-encoding")
    if coding is not None and (length is not None or minor == 0 or coding.lower() != b"chunked"):
        raise malformed("an answer whose end is ambiguous")
    declared = None if length is None else parse_length(length)
    if method == "HEAD" or status < 200 or status in (204, 304):
        return NO_BODY
    if coding is not None:
        return CHUNKED
    return UNTIL_CLOSE if declared is None else frame_length(declared)
