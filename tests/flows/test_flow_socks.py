"""The SOCKS5 entry."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import pytest

from doubles.fake_driver import PUBLIC, FakeDriver
from doubles.hellos import hello
from doubles.messages import OK, get
from stockade.net.host import Host
from stockade.protocol import effects as fx
from stockade.vocabulary import Protocol

Open = Callable[..., FakeDriver]
GREETING = b"\5\1\0"
CHOSEN = b"\5\0"
SUCCEEDED = b"\5\0\0\1" + bytes(6)


def reply(code: int) -> bytes:
    return CHOSEN + bytes((5, code, 0, 1)) + bytes(6)


def ask(name: bytes, port: int, command: int = 1) -> bytes:
    return bytes((5, command, 0, 3, len(name))) + name + port.to_bytes(2, "big")


def test_a_permitted_name_becomes_a_tunnel(socks: Open) -> None:
    flow = socks().client(GREETING)
    assert flow.to_client == CHOSEN
    flow.client(ask(b"app.test", 443))
    assert flow.to_client == CHOSEN + SUCCEEDED
    assert flow.records == []
    flow.client(hello(b"app.test")).upstream(b"server hello")
    assert flow.to_upstream == hello(b"app.test")
    assert flow.decisions == [("allow", "rule-allows")]
    assert flow.records[0][0].entry.value == "socks5"


def test_greeting_request_and_hello_in_one_write(socks: Open) -> None:
    flow = socks().client(GREETING + ask(b"app.test", 443) + hello(b"app.test"))
    assert flow.to_upstream == hello(b"app.test")


def test_user_and_password_are_taken_from_a_client_that_insists(socks: Open) -> None:
    flow = socks().client(b"\5\1\2").client(b"\1\4user\6secret").client(ask(b"app.test", 443))
    assert flow.to_client == b"\5\2" + b"\1\0" + SUCCEEDED


@pytest.mark.parametrize(
    "name", [b"evil.test", b"169.254.169.254", b"0xA9FEA9FE", b"evil.test\0.app.test", b""]
)
def test_r025_other_places_are_not_allowed_and_not_looked_up(socks: Open, name: bytes) -> None:
    flow = socks().client(GREETING + ask(name, 443))
    assert flow.to_client == reply(2)
    assert flow.is_closed
    assert flow.decisions[0][0] == "deny"
    assert flow.asked_for(fx.Resolve) == []


def test_addresses_are_denied_like_everywhere(socks: Open) -> None:
    flow = socks().client(GREETING + b"\5\1\0\1\xa9\xfe\xa9\xfe\0\x50")
    assert flow.to_client == reply(2)
    assert flow.records[0][1].risk == "metadata-credentials"
    mapped = ip_address("::ffff:169.254.169.254").packed
    flow = socks().client(GREETING + b"\5\1\0\4" + mapped + b"\0\x50")
    assert flow.records[0][1].risk == "metadata-credentials"


def test_r058_a_number_of_the_room_stands_for_its_name(socks: Open) -> None:
    raw = GREETING + b"\5\1\0\1" + ip_address("198.18.0.5").packed + b"\1\xbb"
    flow = socks(name_at={"198.18.0.5": Host("app.test")}.get).client(raw + hello(b"app.test"))
    assert flow.decisions == [("allow", "rule-allows")]


def test_inner_names_must_agree(socks: Open) -> None:
    start = GREETING + ask(b"app.test", 443)
    assert socks().client(start + hello(b"evil.test")).decisions == [("deny", "name-mismatch")]
    start = GREETING + ask(b"app.test", 80)
    assert socks().client(start + get("/", "evil.test")).decisions == [("deny", "name-mismatch")]
    flow = socks().client(start + get("/")).upstream(OK)
    assert flow.to_client == CHOSEN + SUCCEEDED + OK


def test_server_first_protocols_are_dialled_before_the_reply(socks: Open) -> None:
    answers = {"git.test": (PUBLIC,)}
    start = GREETING + ask(b"git.test", 22)
    assert (
        socks(answers=answers).client(start).upstream(b"SSH-2.0").to_client == CHOSEN + SUCCEEDED + b"SSH-2.0"
    )
    assert socks(answers=answers, dial_error="refused").client(start).to_client == reply(5)
    assert socks(answers=answers, dial_error="timed-out").client(start).to_client == reply(4)
    assert socks(answers={}).client(start).to_client == reply(4)


@pytest.mark.parametrize(("command", "protocol"), [(2, Protocol.TCP), (3, Protocol.UDP), (9, Protocol.TCP)])
def test_bind_and_udp_associate_are_not_carried(socks: Open, command: int, protocol: Protocol) -> None:
    flow = socks().client(GREETING + ask(b"app.test", 443, command))
    assert flow.to_client == reply(7)
    [(attempt, decision)] = flow.records
    assert attempt.protocol is protocol
    assert decision.verdict.word == "deny"
    assert flow.is_closed


@pytest.mark.parametrize("sender", [b"\1\0\0\0\0\0\0", b"\1\x7f\0\0\1\x1f\x90", b"\3\x08app.test\1\xbb"])
def test_the_address_of_udp_associate_is_the_client_s_own_and_not_judged(socks: Open, sender: bytes) -> None:
    """RFC 1928 sections 4 and 7: where the client will send from, zeros if it does not know."""
    flow = socks().client(GREETING + b"\5\3\0" + sender)
    assert flow.to_client == reply(7)
    assert flow.decisions == [("deny", "protocol-not-carried")]
    [(_attempt, decision)] = flow.records
    assert decision.risk.value == "exfiltration"


@pytest.mark.parametrize(
    "raw",
    [
        b"\4\1\0\x50\1\2\3\4\0",
        b"GET / HTTP/1.1\r\n",
        b"\5\1\1",
        GREETING + b"\5\1\0\2\1",
        GREETING + b"\5\1\1\1\1",
    ],
)
def test_what_is_no_socks5_gets_one_record_and_the_end(socks: Open, raw: bytes) -> None:
    flow = socks().client(raw)
    assert len(flow.records) == 1
    assert flow.decisions[0][1] in ("malformed-request", "not-the-protocol")
    assert flow.is_closed


def test_silence_and_slowness_end(socks: Open) -> None:
    assert socks().client(b"", fin=True).records == []
    flow = socks().client(b"\5").time_passes(10)
    assert flow.decisions == [("deny", "first-byte-timeout")]
    assert socks().client(GREETING, fin=True).decisions == [("deny", "malformed-request")]
