"""Connections that were dialled directly: TLS, SSH, plain TCP, and ports that nobody named."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import pytest

from doubles.fake_driver import PUBLIC, FakeDriver
from doubles.hellos import GREASE_ECH, alpn, hello, hello_message, in_records, server_name
from stockade.protocol import effects as fx
from stockade.protocol import events as ev
from stockade.vocabulary import Protocol

Open = Callable[..., FakeDriver]
ACCESS_DENIED = b"\x15\3\3\0\2\2\x31"
INTERNAL_ERROR = b"\x15\3\3\0\2\2\x50"
METADATA = ip_address("169.254.169.254")


# --- TLS -------------------------------------------------------------------------------


def test_tls_to_a_permitted_name_becomes_a_tunnel(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello(b"app.test") + b"early")
    assert [type(effect).__name__ for effect in flow.effects] == [
        "Deadline", "Deadline", "Resolve", "Record", "Dial", "ToUpstream", "ToUpstream", "Tunnel",
    ]  # fmt: skip
    flow.upstream(b"server hello").client(b"more").upstream(b"", fin=True).client(b"", fin=True)
    assert flow.to_upstream == hello(b"app.test") + b"early" + b"more"
    assert flow.to_client == b"server hello"
    assert flow.is_closed
    assert not flow.is_reset
    assert flow.decisions == [("allow", "rule-allows")]
    [outcome] = flow.outcomes
    assert (outcome.of, outcome.outcome) == (1, "closed")
    assert (outcome.sent_bytes, outcome.received_bytes) == (len(flow.to_upstream), len(b"server hello"))


def test_r102_half_close_goes_through_and_the_answer_still_comes(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello(), fin=True)
    assert flow.upstream_got_end
    assert not flow.is_closed
    flow.upstream(b"late answer", fin=True)
    assert flow.to_client == b"late answer"
    assert flow.is_closed


def test_denied_name_gets_an_alert_and_nothing_is_looked_up(transparent: Open) -> None:
    flow = transparent("evil.test", 443).client(hello(b"evil.test"))
    assert flow.to_client == ACCESS_DENIED
    assert flow.decisions == [("deny", "not-listed")]
    assert flow.asked_for(fx.Resolve) == []
    assert flow.to_upstreams == []
    assert flow.records[0][0].sni is not None


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        pytest.param(hello(b"evil.test"), "name-mismatch", id="another name"),
        pytest.param(hello(None), "sni-missing", id="no name"),
        pytest.param(hello(b"93.184.216.34"), "name-mismatch", id="an address"),
        pytest.param(hello(b"app.test\0.evil.test"), "malformed-host", id="NUL"),
        pytest.param(
            in_records(hello_message([server_name(b"app.test", b"evil.test")])),
            "malformed-tls",
            id="two names",
        ),
        pytest.param(b"\x16\3\1\0\0", "malformed-tls", id="empty record"),
    ],
)
def test_r065_sni_must_be_the_name_that_was_dialled(transparent: Open, first: bytes, reason: str) -> None:
    flow = transparent("app.test", 443).client(first)
    assert flow.decisions == [("deny", reason)]
    assert flow.to_client == ACCESS_DENIED
    assert flow.to_upstreams == []


def test_r065_honest_hello_in_pieces_upper_case_and_with_grease_passes(transparent: Open) -> None:
    first = in_records(hello_message([server_name(b"APP.test."), alpn(b"h2"), GREASE_ECH]), 1, 5, 60)
    flow = transparent("app.test", 443, slice_bytes=1).client(first)
    assert flow.decisions == [("allow", "rule-allows")]
    assert flow.to_upstream == first


def test_r049_the_judged_address_is_the_dialled_one(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello())
    [dial] = flow.asked_for(fx.Dial)
    assert isinstance(dial, fx.Dial)
    assert dial.permit.addresses == (PUBLIC,)
    assert len(flow.asked_for(fx.Resolve)) == 1


@pytest.mark.parametrize(
    "answers", [(METADATA,), (PUBLIC, METADATA), (METADATA, PUBLIC), (ip_address("10.20.0.5"),)]
)
def test_r051_one_denied_answer_denies_the_name(transparent: Open, answers: tuple[object, ...]) -> None:
    flow = transparent("rebind.test", 443, answers={"rebind.test": answers}).client(hello(b"rebind.test"))
    assert flow.decisions[0][0] == "deny"
    assert flow.to_upstreams == []
    assert flow.to_client == ACCESS_DENIED


def test_resolution_failure_is_recorded_with_the_names_verdict(transparent: Open) -> None:
    flow = transparent("rebind.test", 443).client(hello(b"rebind.test"))
    assert flow.decisions == [("allow", "rule-allows")]
    assert [(outcome.of, outcome.outcome, outcome.detail) for outcome in flow.outcomes] == [
        (1, "resolution-failed", "nxdomain")
    ]
    assert flow.to_client == INTERNAL_ERROR


def test_dial_failure_is_an_outcome(transparent: Open) -> None:
    flow = transparent("app.test", 443, dial_error="refused").client(hello())
    assert [(outcome.outcome, outcome.detail) for outcome in flow.outcomes] == [("dial-failed", "refused")]
    assert flow.to_client == INTERNAL_ERROR
    assert flow.is_closed


def test_plain_http_on_the_tls_port_is_not_the_protocol(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(b"GET / HTTP/1.1\r\n")
    assert flow.decisions == [("deny", "not-the-protocol")]
    assert flow.is_reset
    assert not flow.to_client


def test_a_literal_address_is_denied_with_the_method_unseen(transparent: Open) -> None:
    flow = transparent("169.254.169.254", 443).client(hello(b"app.test"))
    assert flow.decisions[0][0] == "deny"
    assert flow.records[0][1].risk == "metadata-credentials"
    assert flow.asked_for(fx.Resolve) == []


def test_r073_a_refusal_leaves_the_next_connection_alone(transparent: Open) -> None:
    for _ in range(100):
        assert transparent("evil.test", 443).client(hello(b"evil.test")).is_closed
    assert transparent("app.test", 443).client(hello()).decisions == [("allow", "rule-allows")]


# --- time ------------------------------------------------------------------------------


def test_r110_the_deadline_is_for_the_whole_hello_not_for_each_byte(transparent: Open) -> None:
    flow, whole = transparent("app.test", 443), hello()
    for at in range(9):
        flow.client(whole[at : at + 1]).time_passes(1.0)
    assert not flow.is_closed
    flow.time_passes(1.0)
    assert flow.decisions == [("deny", "first-byte-timeout")]
    assert flow.is_closed


def test_r101_no_deadline_on_an_established_tunnel(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello())
    assert flow.deadline is None
    flow.time_passes(86400).upstream(b"still here")
    assert flow.to_client == b"still here"


# --- SSH and plain TCP -------------------------------------------------------------------


@pytest.mark.parametrize(("name", "port"), [("git.test", 22), ("mail.test", 25)])
def test_r067_a_server_that_speaks_first_is_dialled_without_a_byte(
    transparent: Open, name: str, port: int
) -> None:
    flow = transparent(name, port, answers={name: (PUBLIC,)}).upstream(b"220 hello\r\n")
    assert flow.to_client == b"220 hello\r\n"
    assert flow.decisions == [("allow", "rule-allows")]
    flow.client(b"quit\r\n", fin=True).upstream(b"", fin=True)
    assert flow.to_upstream == b"quit\r\n"
    assert [outcome.outcome for outcome in flow.outcomes] == ["closed"]


@pytest.mark.parametrize(("name", "port"), [("git.test", 23), ("evil.test", 22), ("app.test", 22)])
def test_r067_a_client_that_waits_for_the_server_does_not_hang_for_ever(
    transparent: Open, name: str, port: int
) -> None:
    flow = transparent(name, port)
    assert not flow.is_closed
    flow.time_passes(1.0)
    assert flow.is_reset
    assert flow.decisions[0][0] == "deny"
    assert flow.to_upstreams == []


@pytest.mark.parametrize(
    ("first", "protocol", "detail"),
    [
        (hello(b"app.test"), Protocol.TLS, "sni"),
        (b"POST /up HTTP/1.1\r\nHost: app.test:8443\r\nContent-Length: 3\r\n\r\n", Protocol.HTTP, "method"),
        (b"SSH-2.0-OpenSSH\r\n", Protocol.SSH, None),
        (b"\0\1\2\3", Protocol.TCP, None),
        (b"HELO there\r\n", Protocol.TCP, None),
    ],
)
def test_an_unlisted_port_is_named_for_what_the_client_says(
    transparent: Open, first: bytes, protocol: Protocol, detail: str | None
) -> None:
    flow = transparent("app.test", 8443).client(first)
    [(attempt, decision)] = flow.records
    assert decision.verdict.word == "deny"
    assert attempt.protocol is protocol
    assert detail is None or getattr(attempt, detail) is not None
    assert flow.to_upstreams == []


def test_a_connection_on_which_nothing_was_said_is_no_denial(transparent: Open) -> None:
    """Browsers open connections in advance and drop them."""
    flow = transparent("app.test", 443).client(b"", fin=True)
    assert flow.decisions == [("allow", "rule-allows")]
    assert [outcome.outcome for outcome in flow.outcomes] == ["unused"]
    assert flow.is_closed
    assert flow.to_upstreams == []


def test_r073_a_client_that_is_gone_before_the_verdict_still_has_a_record(transparent: Open) -> None:
    flow = transparent("app.test", 443, holds_back=(ev.Resolved,)).client(hello())
    flow.happens(ev.ClientEnded(reset=True))
    assert flow.is_closed
    assert len(flow.records) == 1
    assert flow.release().to_upstreams == []


def test_a_tunnel_one_way_of_which_broke_ends_with_a_reset(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello() + b"\x17\3\3\0\1x")
    flow.happens(ev.Pumped(True, 7, ended=False)).happens(ev.Pumped(False, 9, ended=True))
    assert flow.is_reset
    [outcome] = flow.outcomes
    assert (outcome.outcome, outcome.sent_bytes, outcome.received_bytes) == ("reset", len(hello()) + 6 + 7, 9)


def test_a_broken_tunnel_ends_with_a_reset(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello())
    flow.happens(ev.UpstreamEnded(reset=True))
    assert flow.is_reset
    assert [outcome.outcome for outcome in flow.outcomes] == ["reset"]
