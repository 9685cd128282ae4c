"""Any bytes, in any slicing: a parser gives a value, asks for more, or raises `ProtocolViolation`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.hellos import hello
from doubles.messages import OK, get, post
from stockade.errors import ProtocolViolation
from stockade.protocol import dns, socks5
from stockade.protocol.framing import ChunkedScanner
from stockade.protocol.http1 import HeadFinder, parse_request_head
from stockade.protocol.http1_response import parse_response_head
from stockade.protocol.tls_hello import parse_client_hello
from stockade.vocabulary import Reason

REASON_WORDS = {reason.value for reason in Reason}
CHUNKS = b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"
QUESTION = b"\x12\x34\1\0\0\1\0\0\0\0\0\1\3app\4test\0\0\1\0\1\0\0\x29\4\xd0\0\0\0\0\0\0"
SEEDS = [
    hello(),
    get("/a?b", "app.test", "A: b"),
    post(b"12345"),
    OK,
    CHUNKS,
    QUESTION,
    b"\5\1\0\3\x08app.test\1\xbb",
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good message with a few bytes changed, dropped or put in; or any bytes at all."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=300))
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


def scan(data: bytes) -> None:
    scanner, buffer = ChunkedScanner(limit_bytes=1000), bytearray(data)
    while count := scanner.scan(buffer):
        del buffer[:count]


def read_request(data: bytes) -> None:
    finder = HeadFinder(1000)
    end = finder.find(data)
    if end:
        parse_request_head(data[:end], finder.line)


def read_response(data: bytes) -> None:
    end = HeadFinder(1000, is_request=False).find(data)
    if end:
        parse_response_head(data[:end], "GET")


PARSERS: list[Callable[[bytes], Any]] = [
    parse_client_hello,
    read_request,
    read_response,
    scan,
    dns.parse_question,
    dns.build_error_for,
    socks5.parse_greeting,
    socks5.parse_credentials,
    socks5.parse_request,
]


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(data=damaged())
@settings(max_examples=150, deadline=None)
def test_parsers_raise_nothing_but_protocol_violation(parse: Callable[[bytes], Any], data: bytes) -> None:
    caught = None
    try:
        parse(data)
    except ProtocolViolation as violation:
        caught = violation
    assert caught is None or (caught.code in REASON_WORDS and caught.message.isprintable())


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Growing beginnings of the data, ending with all of it."""
    return [data[:cut] for cut in sorted({min(cut, len(data)) for cut in cuts})] + [data]


@given(data=damaged(), cuts=st.lists(st.integers(1, 300), max_size=8))
@settings(max_examples=300, deadline=None)
def test_slicing_does_not_change_what_a_hello_says(data: bytes, cuts: list[int]) -> None:
    def verdict(pieces: list[bytes]) -> object:
        for piece in pieces:
            try:
                parsed = parse_client_hello(piece)
            except ProtocolViolation as violation:
                return violation.code
            if parsed is not None:
                return parsed
        return None

    assert verdict(in_pieces(data, cuts)) == verdict([data])


@given(data=damaged(), cuts=st.lists(st.integers(1, 300), max_size=8))
@settings(max_examples=300, deadline=None)
def test_slicing_does_not_change_where_a_head_ends(data: bytes, cuts: list[int]) -> None:
    def verdict(pieces: list[bytes]) -> object:
        finder = HeadFinder(200)
        for piece in pieces:
            try:
                end = finder.find(piece)
            except ProtocolViolation as violation:
                return violation.code, violation.message
            if end:
                return end, finder.line
        return None

    assert verdict(in_pieces(data, cuts)) == verdict([data])


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    step=st.integers(1, 50),
    rest=st.binary(max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_a_chunked_body_always_ends_at_its_end(chunks: list[bytes], step: int, rest: bytes) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    scanner, buffer, passed = ChunkedScanner(), bytearray(), bytearray()
    for at in range(0, len(body + rest), step):
        buffer += (body + rest)[at : at + step]
        while count := scanner.scan(buffer):
            passed += buffer[:count]
            del buffer[:count]
    assert scanner.is_done
    assert bytes(passed) == body
    assert scanner.body_bytes == sum(map(len, chunks))


@given(
    labels=st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5), kind=st.integers(1, 65535)
)
@settings(max_examples=200, deadline=None)
def test_every_answer_echoes_its_question(labels: list[bytes], kind: int) -> None:
    name = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    message = b"\xab\xcd\1\0\0\1\0\0\0\0\0\0" + name + kind.to_bytes(2, "big") + b"\0\1"
    question = dns.parse_question(message)
    for answer in (dns.answer_empty(question), dns.answer_error(question, dns.Rcode.REFUSED)):
        assert answer[:2] == message[:2]
        assert answer[12:] == message[12:]
