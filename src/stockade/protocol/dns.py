"""One DNS question in, one small answer out (RFC 1035, RFC 6891), byte by byte.

The gateway answers every question itself, so this needs a header, one question, and
four kinds of answer. The question is echoed exactly as it was written: some resolvers
check the case of each letter (0x20). Compression pointers in a question, second
questions and trailing bytes are refused, since nobody honest sends them.
"""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

from stockade.errors import ProtocolViolation
from stockade.net.host import Host, HostRefusal, escape_text, parse_host
from stockade.vocabulary import Reason

HEADER_BYTES = 12
MAX_MESSAGE = 65535
# What we say we can take over UDP (DNS flag day 2020); our own answers never come near it.
EDNS_PAYLOAD = 1232

_QR = 0x8000
_RD = 0x0100
_RA = 0x0080
_CD = 0x0010
_OPT = 41
_INTERNET = 1

_TYPE_WORDS = {
    1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 10: "NULL", 12: "PTR", 13: "HINFO", 15: "MX", 16: "TXT",
    28: "AAAA", 29: "LOC", 33: "SRV", 35: "NAPTR", 39: "DNAME", 41: "OPT", 43: "DS", 46: "RRSIG", 47: "NSEC",
    48: "DNSKEY", 52: "TLSA", 64: "SVCB", 65: "HTTPS", 99: "SPF", 250: "TSIG", 251: "IXFR", 252: "AXFR",
    255: "ANY", 256: "URI", 257: "CAA",
}  # fmt: skip


class Rcode(IntEnum):
    """RFC 1035 4.1.1."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5


class Question(Struct, frozen=True):
    """One question that can be answered.

    Attributes:
        number: The message's id.
        flags: The header's flag word as it came.
        name: The host asked for, or its refusal.
        shown: The name as written, escaped, for records.
        query_type: A word such as ``AAAA``, or ``TYPE1234``; ``CLASS3 TXT`` outside the Internet class.
        section: The question section, to be echoed.
        has_edns: The question brought an OPT record, so the answer carries one.
    """

    number: int
    flags: int
    name: Host | HostRefusal
    shown: str
    query_type: str
    section: bytes
    has_edns: bool

    @property
    def is_address_query(self) -> bool:
        return self.query_type == "A"


def parse_question(message: bytes) -> Question:
    """Parse a message that must be exactly one standard question.

    Raises:
        ProtocolViolation: ``malformed-question``; `build_error_for` makes the answer, if there can be one.
    """
    if not HEADER_BYTES < len(message) <= MAX_MESSAGE:
        raise _malformed("a message of impossible length")
    number, flags, questions, answers, authorities, additionals = _read_header(message)
    if flags & _QR:
        raise _malformed("an answer instead of a question")
    if flags >> 11 & 0xF:
        raise _malformed("an operation other than a question")
    if questions != 1 or answers or authorities:
        raise _malformed("not exactly one question")
    labels, at = _read_labels(message, HEADER_BYTES)
    end = at + 4
    if end > len(message):
        raise _malformed("a question that is cut short")
    has_edns = _read_additionals(message, end, additionals)
    return Question(
        number=number,
        flags=flags,
        name=_read_name(labels),
        shown=show_labels(labels),
        query_type=_name_type(message[at] << 8 | message[at + 1], message[at + 2] << 8 | message[at + 3]),
        section=message[HEADER_BYTES:end],
        has_edns=has_edns,
    )


def _read_header(message: bytes) -> tuple[int, int, int, int, int, int]:
    a, b, c, d, e, f = (message[at] << 8 | message[at + 1] for at in range(0, HEADER_BYTES, 2))
    return a, b, c, d, e, f


def _read_labels(message: bytes, at: int) -> tuple[list[bytes], int]:
    """The labels of a name, and where the bytes after it begin."""
    labels: list[bytes] = []
    start = at
    while at < len(message):
        length = message[at]
        at += 1
        if length == 0:
            return labels, at
        if length > 63:
            raise _malformed("a compressed name in a question")
        labels.append(message[at : at + length])
        at += length
        if at - start > 254:  # RFC 1035 2.3.4: 255 with the root label
            raise _malformed("a name of more than 255 bytes")
    raise _malformed("a name that is cut short")


def _read_name(labels: list[bytes]) -> Host | HostRefusal:
    """The host that these labels spell. A dot inside a label would spell another one."""
    if any(b"." in label for label in labels):
        return HostRefusal(show_labels(labels), "a dot inside a label")
    return parse_host(b".".join(labels), is_bracketed=True)


def show_labels(labels: list[bytes]) -> str:
    """A name for records: dots and odd bytes inside labels are escaped."""
    return ".".join(escape_text(label).replace(".", "\\x2e") for label in labels)[:255] or "."


def _read_additionals(message: bytes, at: int, count: int) -> bool:
    """Step over the additional records to the end of the message; True if there is an OPT."""
    found_opt = False
    for _ in range(count):
        labels, at = _read_labels(message, at)
        if at + 10 > len(message):
            raise _malformed("an additional record that is cut short")
        if message[at] << 8 | message[at + 1] == _OPT:
            if found_opt or labels:
                raise _malformed("two OPT records, or one with a name")
            found_opt = True
        at += 10 + (message[at + 8] << 8 | message[at + 9])
    if at != len(message):
        raise _malformed("bytes behind the question")
    return found_opt


def _name_type(number: int, query_class: int) -> str:
    word = _TYPE_WORDS.get(number) or f"TYPE{number}"
    return word if query_class == _INTERNET else f"CLASS{query_class} {word}"


def answer_address(question: Question, address: IPv4Address | IPv6Address, ttl_s: int = 1) -> bytes:
    """One A or AAAA record for the name of the question."""
    kind = 1 if isinstance(address, IPv4Address) else 28
    data = address.packed
    record = b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1" + ttl_s.to_bytes(4, "big")
    return _build(question, Rcode.NOERROR, record + len(data).to_bytes(2, "big") + data)


def answer_empty(question: Question) -> bytes:
    """The name exists and has nothing of this type."""
    return _build(question, Rcode.NOERROR, b"")


def answer_error(question: Question, rcode: Rcode) -> bytes:
    return _build(question, rcode, b"")


def _build(question: Question, rcode: Rcode, record: bytes) -> bytes:
    flags = _QR | _RA | (question.flags & (_RD | _CD)) | rcode
    counts = bytes((0, 1, 0, 1 if record else 0, 0, 0, 0, 1 if question.has_edns else 0))
    header = question.number.to_bytes(2, "big") + flags.to_bytes(2, "big") + counts
    opt = b"\0\0\x29" + EDNS_PAYLOAD.to_bytes(2, "big") + b"\0\0\0\0\0\0" if question.has_edns else b""
    return header + question.section + record + opt


def build_error_for(message: bytes) -> bytes | None:
    """FORMERR or NOTIMP for what `parse_question` refused; None if it deserves no answer.

    Answers are never answered: two servers could do that to each other for ever.
    """
    if len(message) < HEADER_BYTES or message[2] & 0x80:
        return None
    operation = message[2] & 0x78
    rcode = Rcode.NOTIMP if operation else Rcode.FORMERR
    return message[:2] + bytes((0x80 | operation | message[2] & 1, 0x80 | rcode)) + bytes(8)


def take_message(buffer: bytearray) -> bytes | None:
    """Take one message off a TCP stream (two bytes of length before each); None while it is incomplete."""
    if len(buffer) < 2:
        return None
    end = 2 + (buffer[0] << 8 | buffer[1])
    if len(buffer) < end:
        return None
    message = bytes(buffer[2:end])
    del buffer[:end]
    return message


def frame_message(message: bytes) -> bytes:
    """Put the length that TCP needs before a message."""
    return len(message).to_bytes(2, "big") + message


def _malformed(message: str) -> ProtocolViolation:
    return ProtocolViolation(Reason.MALFORMED_QUESTION.value, message)
