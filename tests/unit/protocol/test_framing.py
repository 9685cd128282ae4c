"""Chunked bodies (RFC 9112 7.1): where they end, and what is no chunk."""

from __future__ import annotations

import pytest

from stockade.errors import ProtocolViolation
from stockade.protocol.framing import ChunkedScanner

# RFC 9112 7.1, with an extension and a trailer
WHOLE = b"5;name=value\r\nhello\r\n0006 \t;x\r\n world\r\n0\r\nX-Check: abc\r\n\r\n"


def scan_all(scanner: ChunkedScanner, data: bytes, step: int, passed: bytearray | None = None) -> bytes:
    """Feed in steps; return what the scanner passed on, also collected in `passed`."""
    buffer, passed = bytearray(), bytearray() if passed is None else passed
    for at in range(0, len(data), step):
        buffer += data[at : at + step]
        while count := scanner.scan(buffer):
            passed += buffer[:count]
            del buffer[:count]
    return bytes(passed)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_a_body_is_passed_on_byte_for_byte_and_ends_where_it_ends(step: int) -> None:
    scanner = ChunkedScanner()
    assert scan_all(scanner, WHOLE + b"GET / HTTP/1.1\r\n", step) == WHOLE
    assert scanner.is_done
    assert scanner.body_bytes == len(b"hello world")


@pytest.mark.parametrize(
    "bad",
    [
        b"\r\n",
        b"-1\r\n",
        b"+5\r\n",
        b"0x5\r\n",
        b" 5\r\n",
        b"5 \r\n",
        b"g\r\n",
        b"5\n",
        b"5\r\r\n",
        b";x\r\n",
        b"12345678901234567\r\n",
        b"5;" + b"x" * 2000,
        b"2\r\nabc\r\n",
        b"2\r\nab\n",
        b"2\r\nab\rx",
        b"0\r\nA\r\n",
        b"0\r\n folded\r\n",
        b"0\r\nContent-Length: 5\r\n",
        b"0\r\nTransfer-Encoding: chunked\r\n",
        b"0\r\nHost: evil.test\r\n",
        b"0\r\n" + b"A: b\r\n" * 3000,
        b"0\r\nA: b\n",
    ],
)
@pytest.mark.parametrize("step", [1, 100000])
def test_r062_malformed_chunks_are_refused(bad: bytes, step: int) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        scan_all(ChunkedScanner(), bad, step)
    assert caught.value.code == "malformed-request"


@pytest.mark.parametrize("step", [1, 4, 100000])
def test_what_came_before_a_fault_is_passed_on_however_it_was_sliced(step: int) -> None:
    passed = bytearray()
    with pytest.raises(ProtocolViolation):
        scan_all(ChunkedScanner(), b"3\r\nabc\r\nzz\r\n", step, passed)
    assert bytes(passed) == b"3\r\nabc\r\n"


def test_the_largest_body_passes_and_one_byte_more_does_not() -> None:
    fits = ChunkedScanner(limit_bytes=10)
    assert scan_all(fits, b"4\r\nabcd\r\n6\r\nefghij\r\n0\r\n\r\n", 1000)
    assert fits.is_done
    with pytest.raises(ProtocolViolation) as caught:
        scan_all(ChunkedScanner(limit_bytes=10), b"4\r\nabcd\r\n7\r\n", 1000)
    assert caught.value.code == "body-too-large"


def test_a_size_beyond_any_real_body_is_refused() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        ChunkedScanner().scan(b"FFFFFFFFFFFFFFFF\r\n")
    assert caught.value.code == "body-too-large"


def test_r110_a_huge_chunk_size_allocates_nothing() -> None:
    scanner = ChunkedScanner()
    assert scanner.scan(b"FFFFFFFFFF\r\nabc") == 15
    assert scanner.pending_bytes == 0xFFFFFFFFFF - 3


def test_content_that_went_by_elsewhere_is_counted() -> None:
    scanner = ChunkedScanner()
    assert scanner.scan(b"a\r\nabc") == 6
    scanner.skip(7)
    assert scanner.scan(b"\r\n0\r\n\r\n") == 7
    assert scanner.is_done
    assert scanner.body_bytes == 10
