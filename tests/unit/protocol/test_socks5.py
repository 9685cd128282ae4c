"""SOCKS5 messages, by the byte tables of RFC 1928 and RFC 1929."""

from __future__ import annotations

import pytest

from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, HostRefusal
from stockade.protocol.socks5 import (
    Greeting,
    Reply,
    build_reply,
    parse_credentials,
    parse_greeting,
    parse_request,
)


@pytest.mark.parametrize(
    ("data", "method"),
    [(b"\5\1\0", 0), (b"\5\2\0\2", 0), (b"\5\2\2\0", 0), (b"\5\1\2", 2), (b"\5\1\1", 255), (b"\5\0", 255)],
)
def test_no_authentication_is_preferred_and_a_password_accepted(data: bytes, method: int) -> None:
    assert parse_greeting(data) == Greeting(method, len(data))
    assert all(parse_greeting(data[:length]) is None for length in range(len(data)))


def test_credentials_are_only_measured() -> None:
    message = b"\1\4user\6secret"
    assert parse_credentials(message + b"rest") == len(message)
    assert all(parse_credentials(message[:length]) is None for length in range(len(message)))


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (b"\3\x08app.test", Host("app.test")),
        (b"\3\x09APP.test.", Host("app.test")),
        (b"\1\xa9\xfe\xa9\xfe", Host("169.254.169.254")),
        (b"\3\x0f169.254.169.254", Host("169.254.169.254")),
        (b"\4" + bytes(15) + b"\1", Host("::1")),
        (b"\4" + bytes(10) + b"\xff\xff\xa9\xfe\xa9\xfe", Host("::ffff:169.254.169.254")),
    ],
)
def test_destinations(address: bytes, host: Host) -> None:
    data = b"\5\1\0" + address + b"\x01\xbb"
    request = parse_request(data + b"more")
    assert request is not None
    assert isinstance(request.destination.host, Host)
    if host.name.startswith("::ffff"):
        assert request.destination.host.address is not None
        assert request.destination.host.address.packed == address[1:]
    else:
        assert request.destination == Endpoint(host, 443)
    assert request.size == len(data)
    assert all(parse_request(data[:length]) is None for length in range(len(data)))


@pytest.mark.parametrize(
    "name", [b"evil.test\0.app.test", b"", b"a b", b"\xe2\x84\xaa.test", b"a@b", b"0xA9FEA9FE"]
)
def test_r025_nul_and_odd_spellings_in_a_name_are_refused(name: bytes) -> None:
    request = parse_request(b"\5\1\0\3" + bytes((len(name),)) + name + b"\0\x50")
    assert request is not None
    assert isinstance(request.destination.host, HostRefusal)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\4\1\0\x50\1\2\3\4\0", "not-the-protocol"),
        (b"GET / HTTP/1.1", "not-the-protocol"),
        (b"\5\1\1\1\1\1\1\1\0\x50", "malformed-request"),
        (b"\5\1\0\2\1\1\1\1\0\x50", "malformed-request"),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parse_request(data)
    assert caught.value.code == code


def test_replies_are_those_of_rfc_1928() -> None:
    assert build_reply(Reply.SUCCEEDED) == b"\5\0\0\1\0\0\0\0\0\0"
    assert build_reply(Reply.NOT_ALLOWED)[1] == 2
    assert build_reply(Reply.COMMAND_NOT_SUPPORTED)[1] == 7
