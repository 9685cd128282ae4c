"""Where the body of an HTTP message ends, in the one way that everybody reads alike.

Request smuggling lives here: two readers that disagree about the end of a body see
different requests behind it. So nothing is repaired or guessed (RFC 9112 sections 6
and 7.1, read strictly): one length or one ``chunked``, CRLF only, bounded lines.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from stockade.errors import ProtocolViolation
from stockade.vocabulary import Reason

# A size line holds at most 16 digits and an extension; signed uploads use about 90 bytes.
MAX_SIZE_LINE = 1024
MAX_TRAILERS = 8192
# 2^60: sizes stay exact in every reader's 64-bit integer, with room for sums.
MAX_BODY = 1 << 60

_HEX = frozenset(b"0123456789abcdefABCDEF")
TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
TOKEN_BYTES = bytes(TOKEN)
# Field values: tab, printable ASCII and the opaque bytes above it (RFC 9110 5.5).
VALUE_BYTES = bytes((9, *range(0x20, 0x7F), *range(0x80, 0x100)))
# Fields that change what a message means; in a trailer they would come too late (RFC 9110 6.5.1).
_NEVER_IN_TRAILERS = frozenset(
    (
        b"content-length",
        b"transfer-encoding",
        b"content-encoding",
        b"host",
        b"connection",
        b"upgrade",
        b"trailer",
    )
)


class Ending(Enum):
    """How a body ends."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


class Framing(Struct, frozen=True):
    """The end of one body: after `length` bytes, after the last chunk, or when the sender closes."""

    ending: Ending
    length: int | None = None


NO_BODY = Framing(Ending.NONE, 0)
CHUNKED = Framing(Ending.CHUNKED)
UNTIL_CLOSE = Framing(Ending.CLOSE)


def frame_length(length: int) -> Framing:
    return Framing(Ending.LENGTH, length) if length else NO_BODY


def malformed(message: str, reason: Reason = Reason.MALFORMED_REQUEST) -> ProtocolViolation:
    return ProtocolViolation(reason.value, message)


def parse_length(text: bytes) -> int:
    """Parse a Content-Length: digits and nothing else, within what every reader can hold."""
    if not text.isdigit() or len(text) > 18:  # bytes.isdigit() knows ASCII digits only
        raise malformed("a Content-Length that is not a plain number")
    return int(text)


class ChunkedScanner:
    """Finds the end of a chunked body without changing a byte of it.

    `scan` says how many bytes at the front of the buffer belong to the body and may be
    passed on; incomplete lines stay where they are until they are whole, so nothing
    doubtful is passed on before it was read.

    Attributes:
        is_done: The last chunk and its trailers were seen.
        body_bytes: Bytes of content so far, without sizes and line ends.
        pending_bytes: Bytes of the present chunk that have not come yet.
    """

    __slots__ = (
        "_at_chunk_end",
        "_in_trailers",
        "_limit",
        "_trailer_bytes",
        "body_bytes",
        "is_done",
        "pending_bytes",
    )

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit = MAX_BODY if limit_bytes is None else limit_bytes
        self.is_done = False
        self.body_bytes = 0
        self.pending_bytes = 0
        self._at_chunk_end = False
        self._in_trailers = False
        self._trailer_bytes = 0

    def scan(self, buffer: bytes | bytearray) -> int:
        """Read on from the start of the buffer; returns how much of it is body.

        What is well-formed before a fault is passed on first and the fault is raised by
        the next call, so that the outcome does not hang on how the bytes were sliced.

        Raises:
            ProtocolViolation: ``malformed-request`` or ``body-too-large``.
        """
        at = 0
        while not self.is_done:
            try:
                step = self._step(buffer, at)
            except ProtocolViolation:
                if at == 0:
                    raise
                break
            if step == 0:
                break
            at += step
        return at

    def skip(self, count: int) -> None:
        """Count content of the present chunk that went by elsewhere (pumped)."""
        self.pending_bytes -= count
        self.body_bytes += count
        if self.pending_bytes == 0:
            self._at_chunk_end = True

    def _step(self, buffer: bytes | bytearray, at: int) -> int:
        if self.pending_bytes:
            count = min(self.pending_bytes, len(buffer) - at)
            if count:
                self.skip(count)
            return count
        if self._at_chunk_end:
            return self._read_chunk_end(buffer, at)
        line = _take_line(buffer, at, MAX_TRAILERS if self._in_trailers else MAX_SIZE_LINE)
        if line is None:
            return 0
        if self._in_trailers:
            self._read_trailer(line)
        else:
            self._read_size(line)
        return len(line) + 2

    def _read_chunk_end(self, buffer: bytes | bytearray, at: int) -> int:
        end = buffer[at : at + 2]
        if end == b"\r\n":
            self._at_chunk_end = False
            return 2
        if end not in (b"", b"\r"):
            raise malformed("a chunk that is longer than its size says")
        return 0

    def _read_size(self, line: bytes) -> None:
        digits, _, extension = line.partition(b";")
        digits = digits.rstrip(b" \t") if extension else digits  # RFC 9112 7.1.1 permits blanks before ";"
        if not 1 <= len(digits) <= 16 or not _HEX.issuperset(digits):
            raise malformed("a chunk size that is not a plain hexadecimal number")
        size = int(digits, 16)
        if self.body_bytes + size > self._limit:
            raise malformed(f"a chunked body of more than {self._limit} bytes", Reason.BODY_TOO_LARGE)
        self.pending_bytes = size
        self._in_trailers = size == 0

    def _read_trailer(self, line: bytes) -> None:
        if not line:
            self.is_done = True
            return
        self._trailer_bytes += len(line) + 2
        if self._trailer_bytes > MAX_TRAILERS:
            raise malformed("trailers that are too long")
        if line.translate(None, VALUE_BYTES):
            raise malformed("a control character in a trailer")
        name, _ = parse_field(line)
        if name in _NEVER_IN_TRAILERS:
            raise malformed("a framing field among the trailers")


def _take_line(buffer: bytes | bytearray, at: int, limit: int) -> bytes | None:
    """The line that begins at `at`, without its CRLF; None while it is incomplete."""
    end = buffer.find(b"\n", at, at + limit + 2)
    if end < 0:
        if len(buffer) - at > limit:
            raise malformed("a line of a chunked body that is too long")
        return None
    line = bytes(buffer[at:end])
    if not line.endswith(b"\r") or line.find(b"\r") != len(line) - 1:
        raise malformed("a line that does not end in CRLF")
    return line[:-1]


def parse_field(line: bytes) -> tuple[bytes, bytes]:
    """Take a field line apart: name in lower case, value without blanks around it.

    That no control character is in it is for the caller to know, who looks at all lines at once.
    """
    name, colon, value = line.partition(b":")
    if not colon or not name or name.translate(None, TOKEN_BYTES):
        # also a name with a blank before the colon, and obs-fold, whose line begins with a blank
        raise malformed("a field line that does not begin with a name and a colon")
    return name.lower(), value.strip(b" \t")
