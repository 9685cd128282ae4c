"""The HTTP proxy entry: absolute form, CONNECT, and the tricks that peers fell for (measured-peers C)."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import pytest

from doubles.fake_driver import OTHER_PUBLIC, PUBLIC, FakeDriver
from doubles.hellos import hello
from doubles.messages import OK, connect, get, parse_answer, post
from stockade.net.host import Host
from stockade.protocol import effects as fx
from stockade.vocabulary import Protocol

Open = Callable[..., FakeDriver]
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
METADATA = ip_address("169.254.169.254")


# --- absolute form ---------------------------------------------------------------------


def test_r071_ordinary_requests_through_the_proxy_are_forwarded(proxy: Open) -> None:
    flow = proxy().client(get("http://app.test/x?y", "app.test", "Proxy-Connection: keep-alive")).upstream(OK)
    assert flow.to_upstream == get("/x?y")
    assert flow.to_client == OK
    [(attempt, _)] = flow.records
    assert (attempt.entry.value, attempt.path, attempt.host) == ("http-proxy", "/x", Host("app.test"))


def test_r009_the_list_holds_for_plain_requests_as_for_connect(proxy: Open) -> None:
    flow = proxy().client(get("http://evil.test/", "evil.test"))
    assert parse_answer(flow.to_client)[0] == 403
    assert flow.decisions == [("deny", "not-listed")]
    assert flow.asked_for(fx.Resolve) == []


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("http://app.test/", "evil.test"),
        ("http://evil.test/", "app.test"),
        ("http://app.test/", "app.test:81"),
    ],
)
def test_probe_9_absolute_form_and_host_must_agree(proxy: Open, target: str, host: str) -> None:
    flow = proxy().client(get(target, host))
    assert flow.decisions[0][0] == "deny"
    assert parse_answer(flow.to_client)[0] in (400, 403)
    assert flow.to_upstreams == []


def test_probe_10_second_request_to_another_host_is_judged_and_the_connection_kept(proxy: Open) -> None:
    flow = proxy().client(get("http://app.test/a")).upstream(OK)
    flow.client(get("http://evil.test/b", "evil.test"))
    flow.client(get("http://other.test/c", "other.test")).upstream(OK)
    assert [decision for decision, _ in flow.decisions] == ["allow", "deny", "allow"]
    assert [bytes(got) for got in flow.to_upstreams] == [get("/a"), get("/c", "other.test")]
    assert not flow.is_closed


def test_requests_to_changing_hosts_each_get_their_own_connection(proxy: Open) -> None:
    flow = proxy()
    for name in ("app.test", "other.test", "app.test"):
        flow.client(get(f"http://{name}/", name)).upstream(OK)
    dials = [effect.permit.addresses[0] for effect in flow.effects if isinstance(effect, fx.Dial)]
    assert dials == [PUBLIC, OTHER_PUBLIC, PUBLIC]
    assert len(flow.asked_for(fx.CloseUpstream)) == 2


def test_requests_to_one_host_share_a_connection(proxy: Open) -> None:
    flow = proxy()
    for _ in range(3):
        flow.client(get("http://app.test/")).upstream(OK)
    assert len(flow.to_upstreams) == 1
    assert [decision for decision, _ in flow.decisions] == ["allow"] * 3


def test_probe_7_permitted_name_with_a_metadata_address(proxy: Open) -> None:
    flow = proxy(answers={"rebind.test": (METADATA,)}).client(get("http://rebind.test/", "rebind.test"))
    assert flow.records[0][1].risk == "metadata-credentials"
    assert flow.to_upstreams == []


@pytest.mark.parametrize(
    "literal",
    [
        "169.254.169.254",
        "0xA9FEA9FE",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
    ],
)
def test_probe_5_metadata_in_every_spelling(proxy: Open, literal: str) -> None:
    flow = proxy().client(get(f"http://{literal}/latest/meta-data/", literal))
    assert flow.decisions[0][0] == "deny"
    assert flow.records[0][1].risk == "metadata-credentials"
    assert flow.asked_for(fx.Resolve) == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (get("/x"), "malformed-request"),
        (get("/x", "198.18.0.1:3128"), None),
        (get("*", method="OPTIONS"), "malformed-request"),
        (get("https://app.test/", "app.test"), "not-the-protocol"),
        (get("ftp://app.test/", "app.test"), "not-the-protocol"),
    ],
)
def test_what_no_proxy_can_do_is_refused_with_a_record(proxy: Open, raw: bytes, reason: str | None) -> None:
    flow = proxy().client(raw)
    [(verdict, given)] = flow.decisions
    assert verdict == "deny"
    assert reason in (None, given)
    status, _, body, _ = parse_answer(flow.to_client)
    assert status == 400
    assert "CONNECT" in body["hint"] or "scheme" in body["hint"]
    assert flow.to_upstreams == []


@pytest.mark.parametrize(
    ("raw", "host"),
    [
        (b"GET http://app.test/ HTTP/1.1\r\nHost: app.test\r\nHost: evil.test\r\n\r\n", Host("app.test")),
        (b"GET http://app.test/ HTTP/1.1\nHost: app.test\n\n", None),
        (b"\x04\x01\x00\x50", None),
        (b"\x16\x03\x01\x00\x05hello", None),
    ],
)
def test_malformed_bytes_get_one_record_that_names_what_it_can(
    proxy: Open, raw: bytes, host: Host | None
) -> None:
    flow = proxy().client(raw)
    [(attempt, decision)] = flow.records
    assert decision.reason.value in ("malformed-request", "not-the-protocol")
    assert host is None or attempt.host == host
    assert flow.is_closed


def test_a_connection_to_the_proxy_without_a_byte_is_no_attempt(proxy: Open) -> None:
    assert proxy().client(b"", fin=True).records == []
    flow = proxy().time_passes(10)
    assert flow.is_closed
    assert flow.records == []


# --- CONNECT ---------------------------------------------------------------------------


def test_connect_opens_a_tunnel_after_the_hello_agrees(proxy: Open) -> None:
    flow = proxy().client(connect("app.test:443"))
    assert flow.to_client == ESTABLISHED
    assert flow.records == []
    assert flow.to_upstreams == []
    flow.client(hello(b"app.test")).upstream(b"server hello")
    assert flow.to_client == ESTABLISHED + b"server hello"
    assert flow.to_upstream == hello(b"app.test")
    [(attempt, decision)] = flow.records
    assert attempt.protocol is Protocol.TLS
    assert decision.verdict.word == "allow"
    assert len(flow.asked_for(fx.Resolve)) == 1


def test_connect_and_hello_in_one_write(proxy: Open) -> None:
    flow = proxy().client(connect("app.test:443") + hello(b"app.test"))
    assert flow.to_upstream == hello(b"app.test")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (hello(b"evil.test"), "name-mismatch"),
        (hello(None), "sni-missing"),
        (b"GET / HTTP/1.1\r\n", "not-the-protocol"),
    ],
)
def test_probe_8_r065_the_tunnel_is_for_the_name_of_connect(proxy: Open, first: bytes, reason: str) -> None:
    flow = proxy().client(connect("app.test:443") + first)
    assert flow.decisions == [("deny", reason)]
    assert flow.to_upstreams == []


def test_probe_9c_inner_host_of_a_plain_tunnel_must_agree(proxy: Open) -> None:
    flow = proxy().client(connect("app.test:80") + get("/", "evil.test"))
    assert flow.decisions == [("deny", "name-mismatch")]
    assert flow.to_upstreams == []
    flow = proxy().client(connect("app.test:80") + get("/") + get("/b")).upstream(OK).upstream(OK)
    assert flow.to_upstream == get("/") + get("/b")
    assert flow.to_client == ESTABLISHED + OK * 2
    assert len(flow.asked_for(fx.Resolve)) == 1


def test_r104_upload_inside_a_plain_tunnel(proxy: Open) -> None:
    body = b"x" * 100_000
    flow = proxy(slice_bytes=999).client(connect("app.test:80") + post(body)).upstream(OK)
    assert flow.to_upstream == post(body)
    assert flow.to_client == ESTABLISHED + OK


@pytest.mark.parametrize(
    "place", ["evil.test:443", "app.test:22", "169.254.169.254:80", "[::1]:443", "evil.test.:443"]
)
def test_r001_connect_to_another_place_is_403_and_the_connection_goes_on(proxy: Open, place: str) -> None:
    flow = proxy().client(connect(place))
    status, fields, _, _ = parse_answer(flow.to_client)
    assert (status, fields["connection"]) == (403, "keep-alive")
    assert flow.decisions[0][0] == "deny"
    assert flow.asked_for(fx.Resolve) == []
    flow.to_client.clear()
    flow.client(connect("app.test:443"))
    assert flow.to_client == ESTABLISHED


def test_r045_connect_to_a_denied_name_asks_nobody(proxy: Open) -> None:
    assert proxy().client(connect("6b6579.evil.test:443")).asked_for(fx.Resolve) == []


def test_probe_7_connect_to_a_name_with_a_private_answer(proxy: Open) -> None:
    flow = proxy(answers={"rebind.test": (PUBLIC, ip_address("10.20.0.5"))}).client(
        connect("rebind.test:443")
    )
    assert parse_answer(flow.to_client)[0] == 403
    assert flow.records[0][1].risk == "ssrf"


@pytest.mark.parametrize(
    "place", ["app.test\0.evil.test:443", "[app.test]:443", "app.test..:443", "user@app.test:443"]
)
def test_r018_r025_r064_odd_spellings_of_connect(proxy: Open, place: str) -> None:
    flow = proxy().client(f"CONNECT {place} HTTP/1.1\r\nHost: app.test\r\n\r\n".encode())
    assert flow.decisions[0][0] == "deny"
    assert flow.to_upstreams == []


def test_r020_r021_case_is_folded_in_ascii_only(proxy: Open) -> None:
    assert proxy().client(connect("APP.TEST:443")).to_client == ESTABLISHED
    flow = proxy().client("CONNECT \u212aapp.test:443 HTTP/1.1\r\nHost: app.test\r\n\r\n".encode())
    assert flow.decisions[0][0] == "deny"


def test_the_host_field_of_a_connect_counts_for_nothing(proxy: Open) -> None:
    """It goes nowhere, and Node's clients put the proxy's own name there."""
    flow = proxy().client(connect("app.test:443", "198.18.0.1:3128")).client(hello(b"app.test"))
    assert flow.decisions == [("allow", "rule-allows")]
    flow = proxy().client(connect("evil.test:443", "app.test:443"))
    assert flow.decisions == [("deny", "not-listed")]


def test_connect_to_a_server_first_protocol_dials_before_200(proxy: Open) -> None:
    answers = {"git.test": (PUBLIC,)}
    flow = proxy(answers=answers).client(connect("git.test:22")).upstream(b"SSH-2.0-server\r\n")
    assert flow.to_client == ESTABLISHED + b"SSH-2.0-server\r\n"
    flow = proxy(answers=answers, dial_error="refused").client(connect("git.test:22"))
    assert parse_answer(flow.to_client)[0] == 502
    assert flow.outcomes[0].outcome == "dial-failed"


def test_connect_to_a_name_without_addresses_is_502(proxy: Open) -> None:
    flow = proxy(answers={}).client(connect("app.test:443"))
    assert parse_answer(flow.to_client)[0] == 502
    assert [outcome.outcome for outcome in flow.outcomes] == ["resolution-failed"]
    assert flow.decisions == [("allow", "rule-allows")]


def test_r058_a_number_of_the_room_stands_for_its_name(proxy: Open) -> None:
    """Clients that look up by themselves hand the proxy the synthetic address."""
    flow = proxy(name_at={"198.18.0.5": Host("app.test")}.get).client(connect("198.18.0.5:443"))
    assert flow.client(hello(b"app.test")).decisions == [("allow", "rule-allows")]
    flow = proxy(name_at={}.get).client(connect("198.18.0.5:443"))
    assert flow.decisions[0][0] == "deny"


def test_r069_the_verdict_depends_on_the_request_only(proxy: Open) -> None:
    relayed = connect("evil.test:443")[:-2] + b"Via: 1.1 relay\r\nForwarded: for=1.2.3.4\r\n\r\n"
    credentials = connect("evil.test:443")[:-2] + b"Proxy-Authorization: Basic eDp5\r\n\r\n"
    plain = connect("evil.test:443")
    assert {tuple(proxy().client(raw).decisions) for raw in (plain, relayed, credentials)} == {
        (("deny", "not-listed"),)
    }


def test_r074_credentials_for_the_proxy_are_not_needed_and_not_passed_on(proxy: Open) -> None:
    raw = get("http://app.test/", "app.test", "Proxy-Authorization: Basic eDp5")
    flow = proxy().client(raw).upstream(OK)
    assert flow.to_upstream == get("/")
    assert flow.records[0][0].credential_headers == ()


def test_r073_a_thousand_refusals_on_one_connection(proxy: Open) -> None:
    flow = proxy()
    for _ in range(1000):
        flow.client(connect("evil.test:443"))
    assert len(flow.records) == 1000
    flow.to_client.clear()
    assert flow.client(connect("app.test:443")).to_client == ESTABLISHED
