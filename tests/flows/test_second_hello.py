"""A second hello (RFC 8446 4.1.4) is held to the same name as the first, wherever it comes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doubles.fake_driver import FakeDriver
from doubles.hellos import hello, hello_message, in_records, server_name

Open = Callable[..., FakeDriver]

FIRST = hello(b"app.test")
OTHER = hello(b"evil.test")
EARLY_DATA = (42, b"")  # RFC 8446 4.2.10: empty in a hello
# A ServerHello whose random is that of a HelloRetryRequest (RFC 8446 4.1.3); what is in it does not matter.
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
RETRY = b"\x16\3\3\0\x2a\2\0\0\x26\3\3" + RETRY_RANDOM + b"\0\x13\1\0"
COMPATIBILITY = b"\x14\3\3\0\1\1"
WARNING = b"\x15\3\3\0\2\1\x5a"  # user_canceled
DATA = b"\x17\3\3\0\4abcd"
KEY_EXCHANGE = b"\x16\3\3\0\5\x10\0\0\1\0"  # TLS 1.2: ClientKeyExchange


@pytest.fixture
def tunnel(transparent: Open) -> Callable[..., FakeDriver]:
    """A connection to app.test whose client says these bytes in one write, or one by one."""

    def run(*pieces: bytes, sliced: bool = False) -> FakeDriver:
        flow = transparent("app.test", 443)
        whole = b"".join(pieces)
        for piece in [whole[n : n + 1] for n in range(len(whole))] if sliced else [whole]:
            flow.client(piece)
        return flow

    return run


def is_tunnel(flow: FakeDriver) -> bool:
    return "Tunnel" in [type(effect).__name__ for effect in flow.effects]


@pytest.mark.parametrize("sliced", [False, True], ids=["one-write", "byte-by-byte"])
@pytest.mark.parametrize("between", [b"", COMPATIBILITY, WARNING, COMPATIBILITY + WARNING])
def test_a_second_hello_for_another_name_does_not_leave(
    tunnel: Callable[..., FakeDriver], between: bytes, sliced: bool
) -> None:
    flow = tunnel(FIRST, between, OTHER, sliced=sliced)
    assert flow.to_upstream == FIRST + between
    assert flow.decisions == [("allow", "rule-allows"), ("deny", "name-mismatch")]
    assert [outcome.outcome for outcome in flow.outcomes] == ["cut"]
    assert flow.is_closed
    assert flow.to_client == bytes.fromhex("15030300020231")  # RFC 8446 6.2: fatal, access_denied


def test_it_does_not_leave_after_the_server_asked_for_it_either(tunnel: Callable[..., FakeDriver]) -> None:
    flow = tunnel(FIRST).upstream(RETRY)
    assert flow.to_client == RETRY
    flow.client(COMPATIBILITY + OTHER)
    assert flow.to_upstream == FIRST + COMPATIBILITY
    assert flow.decisions[-1] == ("deny", "name-mismatch")


def test_nor_behind_early_data_that_the_first_one_announced(tunnel: Callable[..., FakeDriver]) -> None:
    first = hello(b"app.test", EARLY_DATA)
    flow = tunnel(first, DATA, DATA, OTHER)
    assert flow.to_upstream == first + DATA + DATA
    assert flow.decisions[-1] == ("deny", "name-mismatch")


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (hello(None), "sni-missing"),
        (hello(b"app.test\0.evil.test"), "malformed-host"),
        (in_records(hello_message([server_name(b"app.test", b"evil.test")])), "malformed-tls"),
    ],
)
def test_a_second_hello_that_names_nobody_or_two_does_not_leave(
    tunnel: Callable[..., FakeDriver], second: bytes, reason: str
) -> None:
    flow = tunnel(FIRST, second)
    assert flow.to_upstream == FIRST
    assert flow.decisions[-1] == ("deny", reason)


@pytest.mark.parametrize("sliced", [False, True], ids=["one-write", "byte-by-byte"])
def test_a_second_hello_for_the_same_name_passes_and_then_everything(
    tunnel: Callable[..., FakeDriver], sliced: bool
) -> None:
    split = in_records(hello_message([server_name(b"APP.test."), (51, b"\0\0")]), 5, 40)
    flow = tunnel(FIRST, COMPATIBILITY, split, DATA, sliced=sliced)
    assert flow.to_upstream == FIRST + COMPATIBILITY + split + DATA
    assert is_tunnel(flow)
    assert flow.decisions == [("allow", "rule-allows")]


@pytest.mark.parametrize("then", [DATA, KEY_EXCHANGE, b"no record"])
def test_what_cannot_stand_before_a_second_hello_ends_the_watch(
    tunnel: Callable[..., FakeDriver], then: bytes
) -> None:
    flow = tunnel(FIRST, then)
    assert flow.to_upstream == FIRST + then
    assert is_tunnel(flow)


def test_early_data_that_a_server_takes_is_carried_for_ever(tunnel: Callable[..., FakeDriver]) -> None:
    """Nothing that the two say later looks different: the watch ends behind what servers throw away."""
    first = hello(b"app.test", EARLY_DATA)
    record = b"\x17\3\3\x40\0" + bytes(16384)
    flow = tunnel(first, record, record, record)
    assert not is_tunnel(flow)
    flow.client(record)
    assert is_tunnel(flow)
    assert flow.to_upstream == first + record * 4


def test_the_server_is_heard_while_the_client_says_nothing(tunnel: Callable[..., FakeDriver]) -> None:
    flow = tunnel(FIRST).upstream(b"one").upstream(b"two")
    assert flow.to_client == b"onetwo"
    assert not is_tunnel(flow)


def test_the_hello_is_measured_over_its_records() -> None:
    from stockade.protocol.tls_behind import measure_hello

    message = hello_message([server_name(b"app.test")])
    for sizes in ((), (1,), (1, 1, 1), (3, 2), (40,)):
        records = in_records(message, *sizes)
        assert measure_hello(records + DATA) == len(records)
