"""ClientHellos as RFC 8446 and RFC 6066 describe them, and as attackers would like them to be."""

from __future__ import annotations

import ssl

import pytest

from doubles.hellos import GREASE_ECH, alpn, hello, hello_message, in_records, server_name
from stockade.errors import ProtocolViolation
from stockade.net.host import Host, HostRefusal
from stockade.protocol.tls_hello import ACCESS_DENIED, INTERNAL_ERROR, build_alert, parse_client_hello


def real_hello(name: str) -> bytes:
    """The hello that OpenSSL sends."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def refusal_of(data: bytes) -> str:
    with pytest.raises(ProtocolViolation) as caught:
        parse_client_hello(data)
    return caught.value.code


def test_a_real_hello_gives_its_name_and_alpn() -> None:
    parsed = parse_client_hello(real_hello("app.test"))
    assert parsed is not None
    assert parsed.name == Host("app.test")
    assert parsed.alpn == (b"h2", b"http/1.1")
    assert not parsed.has_ech


def test_every_incomplete_beginning_asks_for_more() -> None:
    whole = real_hello("app.test")
    assert all(parse_client_hello(whole[:length]) is None for length in range(len(whole)))


@pytest.mark.parametrize("sizes", [(1,), (3,), (4,), (5, 50), (1, 1, 1, 1, 1, 1), (100,)])
def test_r065_hello_split_over_records_is_read(sizes: tuple[int, ...]) -> None:
    split = in_records(hello_message([server_name(b"app.test")]), *sizes)
    parsed = parse_client_hello(split)
    assert parsed is not None
    assert parsed.name == Host("app.test")
    assert all(parse_client_hello(split[:length]) is None for length in range(len(split)))


def test_r065_upper_case_and_final_dot_are_the_same_name() -> None:
    parsed = parse_client_hello(hello(b"APP.test."))
    assert parsed is not None
    assert parsed.name == Host("app.test")


def test_bytes_after_the_hello_do_not_matter() -> None:
    early_data = b"\x14\3\3\0\1\1" + b"\x17\3\3\0\5hello"
    parsed = parse_client_hello(hello() + early_data)
    assert parsed is not None
    assert parsed.name == Host("app.test")


@pytest.mark.parametrize("extensions", [None, [], [alpn(b"h2")]])
def test_r065_hello_without_a_name_names_nobody(extensions: list[tuple[int, bytes]] | None) -> None:
    parsed = parse_client_hello(in_records(hello_message(extensions)))
    assert parsed is not None
    assert parsed.name is None


@pytest.mark.parametrize(
    ("name", "is_host"),
    [
        (b"app.test", True),
        (b"app.test\0.evil.test", False),
        (b"a\xc3\xa9.test", False),
        (b"[app.test]", False),
    ],
)
def test_r025_a_name_that_readers_read_differently_is_a_refusal(name: bytes, is_host: bool) -> None:
    parsed = parse_client_hello(hello(name))
    assert parsed is not None
    assert isinstance(parsed.name, Host if is_host else HostRefusal)


def test_an_address_as_sni_is_not_the_name() -> None:
    parsed = parse_client_hello(hello(b"93.184.216.34"))
    assert parsed is not None
    assert parsed.name != Host("app.test")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([server_name(b"app.test", b"evil.test")], id="two names"),
        pytest.param([server_name(b"app.test"), server_name(b"evil.test")], id="two extensions"),
        pytest.param([server_name(b"")], id="empty name"),
        pytest.param([server_name()], id="empty list"),
        pytest.param([server_name(b"app.test", kind=1)], id="another kind of name"),
        pytest.param([(0, b"\0\x0b\0\0\x20app.test")], id="length beyond the end"),
        pytest.param([(0, b"\0\x0b\0\0\x07app.test")], id="length before the end"),
        pytest.param([server_name(b"app.test"), (0xFFCE, b"x" * 20)], id="ESNI"),
        pytest.param([server_name(b"app.test"), (0xFE0D, b"\1")], id="inner ECH on the wire"),
        pytest.param([server_name(b"app.test"), (0xFE0D, b"")], id="empty ECH"),
        pytest.param([server_name(b"app.test"), (16, b"\0\3\2h2h")], id="ALPN out of bounds"),
    ],
)
def test_r065_malformed_extensions_are_refused(broken: list[tuple[int, bytes]]) -> None:
    assert refusal_of(in_records(hello_message(broken))) == "malformed-tls"


def test_grease_ech_of_a_browser_passes_with_its_outer_name() -> None:
    parsed = parse_client_hello(hello(b"app.test", GREASE_ECH))
    assert parsed is not None
    assert parsed.name == Host("app.test")
    assert parsed.has_ech


@pytest.mark.parametrize(
    ("start", "code"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n", "not-the-protocol", id="http"),
        pytest.param(b"SSH-2.0-x\r\n", "not-the-protocol", id="ssh"),
        pytest.param(b"\x80\x2e\x01\x03\x01", "not-the-protocol", id="SSLv2 hello"),
        pytest.param(b"\x16\x02", "not-the-protocol", id="version of no TLS"),
        pytest.param(b"\x16\3\1\0\0", "malformed-tls", id="empty record"),
        pytest.param(b"\x16\3\1\x40\x01", "malformed-tls", id="record above 2^14"),
        pytest.param(b"\x16\3\1\0\4\2\0\0\0", "malformed-tls", id="server hello"),
        pytest.param(b"\x16\3\1\0\4\1\xff\xff\xff", "head-too-large", id="hello of 16 MB"),
        pytest.param(
            in_records(hello_message([]), 10)[:15] + b"\x17\3\3\0\1x", "malformed-tls", id="data inside"
        ),
        pytest.param(b"\x16\3\1\0\1\1" + b"\x16\3\1\0\1\0" * 70, "malformed-tls", id="70 records"),
        pytest.param(in_records(hello_message([]) + b"\1"), "malformed-tls", id="byte behind the hello"),
        pytest.param(in_records(hello_message([])[:20]), None, id="cut short waits"),
    ],
)
def test_what_is_no_hello_is_refused_at_once(start: bytes, code: str | None) -> None:
    if code is None:
        assert parse_client_hello(start) is None
    else:
        assert refusal_of(start) == code


def test_a_record_longer_than_its_hello_is_refused_in_small_pieces_too() -> None:
    message = hello_message([server_name(b"app.test")])
    record = b"\x16\3\1" + (len(message) + 1).to_bytes(2, "big") + message
    assert parse_client_hello(record) is None
    assert refusal_of(record + b"\0") == "malformed-tls"


def test_alerts_are_those_of_rfc_8446() -> None:
    # RFC 8446 6.2: level fatal (2), access_denied 49, internal_error 80
    assert build_alert(ACCESS_DENIED) == b"\x15\x03\x03\x00\x02\x02\x31"
    assert build_alert(INTERNAL_ERROR) == b"\x15\x03\x03\x00\x02\x02\x50"
