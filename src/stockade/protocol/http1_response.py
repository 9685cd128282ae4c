"""Heads of HTTP/1 responses: where the body ends, and whether the connection lives on (RFC 9112 6.3)."""

from __future__ import annotations

from msgspec import Struct

from stockade.protocol.framing import (
    CHUNKED,
    NO_BODY,
    UNTIL_CLOSE,
    Framing,
    frame_length,
    malformed,
    parse_field,
    parse_length,
)
from stockade.protocol.http1_fields import Marks, is_persistent, split_head


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


def parse_response_head(raw: bytes, method: str) -> ResponseHead:
    """Parse a whole response head; `method` is the request's, since HEAD has no body.

    Raises:
        ProtocolViolation: the destination's answer cannot be read in one way only.
    """
    first, *lines = split_head(raw)
    minor, status = _read_status_line(first)
    marks = Marks(tuple([parse_field(text) for text in lines]))
    framing = _frame_response(marks, status, minor, method)
    return ResponseHead(
        status=status,
        raw=raw,
        framing=framing,
        is_persistent=is_persistent(marks, minor) and framing is not UNTIL_CLOSE,
        location=marks.one(b"location") if 300 <= status < 400 else None,
    )


def _read_status_line(line: bytes) -> tuple[int, int]:
    version, code = line[:9], line[9:12]
    if version not in (b"HTTP/1.1 ", b"HTTP/1.0 ") or len(code) != 3 or not code.isdigit():
        raise malformed("a status line that is not of HTTP/1")
    if line[12:13] not in (b"", b" ") or code[0] not in b"12345":
        raise malformed("a status that is not a number from 100 to 599")
    return version[7] - 48, int(code)


def _frame_response(marks: Marks, status: int, minor: int, method: str) -> Framing:
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
