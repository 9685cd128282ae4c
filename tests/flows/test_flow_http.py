"""HTTP conversations with one destination: every request judged, every body carried, nothing hidden."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doubles.fake_driver import OTHER_PUBLIC, PUBLIC, FakeDriver
from doubles.messages import OK, get, parse_answer, post
from stockade.net.host import Host
from stockade.protocol import effects as fx
from stockade.protocol import events as ev
from stockade.protocol.line import FlowLimits

Open = Callable[..., FakeDriver]
# --- one request -----------------------------------------------------------------------


def test_a_permitted_request_goes_on_as_it_came(transparent: Open) -> None:
    flow = transparent().client(get("/x?q=1", "app.test", "X-Odd:  kept ")).upstream(OK)
    assert flow.to_upstream == get("/x?q=1", "app.test", "X-Odd:  kept ")
    assert flow.to_client == OK
    [(attempt, decision)] = flow.records
    assert (attempt.method, attempt.path, attempt.query_bytes, attempt.has_body) == ("GET", "/x", 3, False)
    assert decision.address == PUBLIC
    [outcome] = flow.outcomes
    assert (outcome.outcome, outcome.status) == ("answered", 200)
    assert (outcome.sent_bytes, outcome.received_bytes) == (len(flow.to_upstream), len(OK))


def test_r075_a_denial_says_that_it_is_policy_and_why(transparent: Open) -> None:
    flow = transparent("evil.test").client(get(host="evil.test"))
    status, fields, body, rest = parse_answer(flow.to_client)
    assert status == 403  # R074: never 407, which would make clients ask for credentials
    assert fields["x-stockade-reason"] == body["reason"] == "not-listed"
    assert fields["x-stockade-id"] == body["id"] == "id-1"
    assert fields["connection"] == "keep-alive"
    assert body["error"] == "denied by policy"
    assert "policy" in body["hint"]
    assert "policy.yaml" not in flow.to_client.decode()
    assert rest == b""
    assert not flow.is_closed
    assert flow.asked_for(fx.Resolve) == []


def test_r045_a_denied_name_is_never_looked_up(transparent: Open) -> None:
    secret = "6b6579.evil.test"
    flow = transparent(secret).client(get(host=secret))
    assert flow.asked_for(fx.Resolve) == []
    assert flow.decisions == [("deny", "not-listed")]


def test_a_denied_head_request_gets_no_body(transparent: Open) -> None:
    flow = transparent("evil.test").client(get(host="evil.test", method="HEAD"))
    assert flow.to_client.endswith(b"\r\n\r\n")
    assert b'"error"' not in flow.to_client


@pytest.mark.parametrize(("error", "status"), [("refused", 502), ("timed-out", 504)])
def test_a_destination_out_of_reach_is_a_gateway_error(transparent: Open, error: str, status: int) -> None:
    flow = transparent(dial_error=error).client(get())
    answered, _, body, _ = parse_answer(flow.to_client)
    assert (answered, body["reason"]) == (status, "dial-failed")
    assert [(outcome.outcome, outcome.detail) for outcome in flow.outcomes] == [("dial-failed", error)]
    assert not flow.is_closed


def test_a_name_without_addresses_is_a_gateway_error(transparent: Open) -> None:
    flow = transparent(answers={}).client(get())
    status, _, body, _ = parse_answer(flow.to_client)
    assert (status, body["reason"]) == (502, "resolution-failed")
    assert flow.decisions == [("allow", "rule-allows")]
    assert [outcome.outcome for outcome in flow.outcomes] == ["resolution-failed"]


# --- many requests on one connection -----------------------------------------------------


def test_r062_second_request_on_one_connection_is_judged(transparent: Open) -> None:
    flow = transparent().client(get("/a")).upstream(OK).client(get("/b", "evil.test"))
    assert flow.to_upstream == get("/a")
    assert flow.decisions == [("allow", "rule-allows"), ("deny", "name-mismatch")]
    status, _, body, _ = parse_answer(flow.to_client.removeprefix(OK))
    assert (status, body["id"]) == (403, "id-2")


def test_r062_pipelined_second_request_is_judged_after_the_first_answer(transparent: Open) -> None:
    flow = transparent().client(get("/a") + get("/b", "evil.test"))
    assert flow.decisions == [("allow", "rule-allows")]
    flow.upstream(OK)
    assert flow.decisions[1] == ("deny", "name-mismatch")
    assert flow.to_client.startswith(OK)
    assert flow.to_upstream == get("/a")


def test_r062_body_longer_than_its_length_is_the_next_request_and_judged(transparent: Open) -> None:
    flow = transparent().client(post(b"12345") + get("/smuggled", "evil.test")).upstream(OK)
    assert flow.to_upstream == post(b"12345")
    assert flow.decisions[1] == ("deny", "name-mismatch")


def test_r098_five_requests_over_one_pooled_connection(transparent: Open) -> None:
    flow = transparent()
    for number in range(5):
        flow.client(get(f"/{number}")).upstream(OK)
    assert flow.to_client == OK * 5
    assert len(flow.asked_for(fx.Dial)) == 1
    assert len(flow.asked_for(fx.Resolve)) == 1
    assert [attempt.path for attempt, _ in flow.records] == ["/0", "/1", "/2", "/3", "/4"]


def test_a_refusal_does_not_harm_the_next_request(transparent: Open) -> None:
    flow = transparent().client(get("/a", "evil.test"))
    flow.to_client.clear()
    flow.client(get("/b")).upstream(OK)
    assert flow.to_client == OK
    assert flow.decisions == [("deny", "name-mismatch"), ("allow", "rule-allows")]


@pytest.mark.parametrize("pieces", [1, 1000])
def test_the_body_of_a_refused_request_is_dropped_and_the_connection_goes_on(
    transparent: Open, pieces: int
) -> None:
    flow = transparent(slice_bytes=pieces).client(post(b"x" * 300, host="evil.test") + get("/b")).upstream(OK)
    assert flow.to_client.endswith(OK)
    assert flow.to_upstream == get("/b")


@pytest.mark.parametrize("fields", [["Transfer-Encoding: chunked"], ["Content-Length: 70000"]])
def test_a_refused_request_whose_body_is_long_ends_the_connection(
    transparent: Open, fields: list[str]
) -> None:
    flow = transparent().client(get("/", "evil.test", *fields, method="POST"))
    assert b"Connection: close" in flow.to_client
    assert flow.is_closed
    assert not flow.is_reset


def test_a_refused_request_that_waits_for_100_ends_the_connection(transparent: Open) -> None:
    """Whether its body comes after a 403 is the client's choice, so the next head could not be found."""
    head = get("/", "evil.test", "Content-Length: 5", "Expect: 100-continue", method="POST")
    assert transparent().client(head).is_closed


def test_an_upstream_that_closes_between_requests_is_dialled_again(transparent: Open) -> None:
    flow = transparent().client(get("/a")).upstream(OK).upstream(b"", fin=True)
    flow.client(get("/b")).upstream(OK)
    assert [bytes(got) for got in flow.to_upstreams] == [get("/a"), get("/b")]
    assert len(flow.asked_for(fx.Resolve)) == 2  # R052: a new connection, a new answer
    assert flow.to_client == OK * 2


def test_r052_a_new_connection_follows_the_names_new_address(transparent: Open) -> None:
    flow = transparent().client(get("/a")).upstream(OK).upstream(b"", fin=True)
    flow.answers = {"app.test": (OTHER_PUBLIC,)}
    flow.client(get("/b"))
    dials = [effect.permit.addresses for effect in flow.effects if isinstance(effect, fx.Dial)]
    assert dials == [(PUBLIC,), (OTHER_PUBLIC,)]


def test_a_kept_upstream_that_closes_at_the_wrong_moment_is_asked_again(transparent: Open) -> None:
    flow = transparent(holds_back=(ev.Recorded,))
    flow.client(get("/a")).release().upstream(OK)
    flow.client(get("/b"))
    flow.upstream(b"", fin=True)
    assert len(flow.to_upstreams) == 2
    flow.upstream(OK)
    assert flow.to_client == OK * 2
    assert [outcome.outcome for outcome in flow.outcomes] == ["answered", "answered"]


def test_a_post_on_a_kept_upstream_that_closed_is_not_sent_twice(transparent: Open) -> None:
    flow = transparent().client(get("/a")).upstream(OK).client(post(b"x")).upstream(b"", fin=True)
    assert len(flow.to_upstreams) == 1
    assert b"502" in flow.to_client
    assert flow.outcomes[-1].outcome == "no-answer"


def test_bytes_that_an_idle_upstream_sends_are_nobodys_answer(transparent: Open) -> None:
    flow = transparent().client(get("/a")).upstream(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    flow.client(get("/b")).upstream(OK)
    assert flow.to_client == OK * 2
    assert len(flow.to_upstreams) == 2


def test_pipelined_bytes_are_not_read_without_end(transparent: Open) -> None:
    flow = transparent(slice_bytes=4096).client(get("/a") + b"GET /" + b"x" * 1_000_000)
    assert flow.unread_client > 900_000
    assert not flow.flow.reads_client


def test_connection_close_is_honoured_on_either_side(transparent: Open) -> None:
    flow = transparent().client(get("/", "app.test", "Connection: close")).upstream(OK)
    assert flow.is_closed
    assert not flow.is_reset
    closing = OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
    flow = transparent().client(get()).upstream(closing)
    assert flow.to_client == closing
    assert flow.is_closed


# --- names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        pytest.param(get(host="evil.test"), 403, id="Host"),
        pytest.param(get("http://evil.test/"), 400, id="R060 absolute form against Host"),
        pytest.param(get("http://app.test/", "evil.test"), 400, id="R060 Host against absolute form"),
        pytest.param(get("http://evil.test/", "evil.test"), 403, id="both name another"),
        pytest.param(get("http://app.test:81/"), 403, id="another port in the URL"),
        pytest.param(get(host="app.test:81"), 403, id="another port in Host"),
    ],
)
def test_r060_every_name_must_be_the_dialled_one(transparent: Open, raw: bytes, status: int) -> None:
    flow = transparent().client(raw)
    assert flow.decisions == [("deny", "name-mismatch")]
    assert flow.to_upstreams == []
    assert parse_answer(flow.to_client)[0] == status


@pytest.mark.parametrize("host", ["app.test", "APP.TEST", "app.test.", "app.test:80"])
def test_spellings_of_the_same_name_pass(transparent: Open, host: str) -> None:
    assert transparent().client(get(host=host)).decisions == [("allow", "rule-allows")]


def test_host_may_name_the_port_that_was_dialled_or_none(transparent: Open) -> None:
    for host in ("app.test:8080", "app.test"):
        assert transparent("app.test", 8080).client(get(host=host)).decisions == [("allow", "rule-allows")]


@pytest.mark.parametrize(
    "host", ["[app.test]", "app.test\0", "u@app.test", "app.test..", "", "app.test:99999"]
)
def test_r018_r025_r064_odd_spellings_in_host_are_refused(transparent: Open, host: str) -> None:
    flow = transparent().client(get(host=host))
    assert flow.decisions[0][0] == "deny"
    assert flow.to_upstreams == []


def test_absolute_form_with_one_name_goes_on_as_a_path(transparent: Open) -> None:
    flow = transparent().client(get("http://app.test/x")).upstream(OK)
    assert flow.to_upstream == get("/x")


def test_connect_through_a_permitted_web_server_is_refused(transparent: Open) -> None:
    flow = transparent().client(b"CONNECT app.test:80 HTTP/1.1\r\nHost: app.test\r\n\r\n")
    assert flow.decisions == [("deny", "method-not-permitted")]
    assert flow.to_upstreams == []


def test_http_1_0_without_host_is_sent_with_the_judged_name(transparent: Open) -> None:
    flow = transparent().client(b"GET / HTTP/1.0\r\n\r\n").upstream(b"HTTP/1.0 200 OK\r\n\r\nhi", fin=True)
    assert flow.to_upstream == b"GET / HTTP/1.0\r\nHost: app.test\r\n\r\n"
    assert flow.is_closed
    assert not flow.is_reset


# --- operations ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "decision"),
    [
        (get("/docs/a", "read.test"), ("proxy", "rule-proxies")),
        (get("/docs/a", "read.test", method="DELETE"), ("deny", "method-not-permitted")),
        (get("/other", "read.test"), ("deny", "path-not-permitted")),
        (
            get("/docs/ws", "read.test", "Connection: Upgrade", "Upgrade: websocket"),
            ("deny", "upgrade-not-permitted"),
        ),
    ],
)
def test_a_proxied_place_is_judged_by_each_operation(
    transparent: Open, raw: bytes, decision: tuple[str, str]
) -> None:
    flow = transparent("read.test", answers={"read.test": (PUBLIC,)}).client(raw)
    assert flow.decisions == [decision]
    assert bool(flow.to_upstreams) is (decision[0] == "proxy")


# --- malformed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "reason", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: app.test\r\nHost: evil.test\r\n\r\n", "malformed-request", 400),
        (b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "malformed-request", 400),
        (b"GET / HTTP/1.1\nHost: app.test\n\n", "malformed-request", 400),
        (b"GET /\r\n", "malformed-request", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "malformed-request", 400),
        (b"\0\1\2\3", "not-the-protocol", 400),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000, "head-too-large", 431),
    ],
)  # fmt: skip
def test_r062_malformed_requests_get_one_record_and_the_end(
    transparent: Open, raw: bytes, reason: str, status: int
) -> None:
    flow = transparent().client(raw)
    assert flow.decisions == [("deny", reason)]
    assert parse_answer(flow.to_client)[0] == status
    assert flow.is_closed
    assert flow.to_upstreams == []


def test_tls_on_the_http_port_gets_an_alert(transparent: Open) -> None:
    flow = transparent().client(b"\x16\3\1\0\5hello")
    assert flow.decisions == [("deny", "not-the-protocol")]
    assert flow.to_client == b"\x15\3\3\0\2\2\x31"


def test_a_head_cut_off_by_the_end_is_malformed(transparent: Open) -> None:
    flow = transparent().client(b"GET / HT", fin=True)
    assert flow.decisions == [("deny", "malformed-request")]


def test_r110_slow_heads_meet_one_deadline_for_the_whole(transparent: Open) -> None:
    flow = transparent(limits=FlowLimits(first_bytes_s=5.0))
    for byte in b"GET /":
        flow.client(bytes((byte,))).time_passes(1.0)
    assert flow.decisions == [("deny", "first-byte-timeout")]
    assert parse_answer(flow.to_client)[0] == 408
    assert flow.is_closed


def test_a_client_that_says_nothing_on_the_http_port_is_reset_in_time(transparent: Open) -> None:
    flow = transparent().time_passes(10.0)
    assert flow.decisions == [("deny", "first-byte-timeout")]
    assert flow.is_reset


def test_an_idle_kept_connection_is_closed_without_a_record(transparent: Open) -> None:
    flow = transparent().client(get()).upstream(OK).time_passes(299)
    assert not flow.is_closed
    flow.time_passes(2)
    assert flow.is_closed
    assert len(flow.records) == 1


# --- bodies ----------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [7, 65536])
def test_r104_large_uploads_are_pumped_not_held(transparent: Open, pieces: int) -> None:
    body = bytes(range(256)) * 400
    flow = transparent(slice_bytes=pieces).client(post(body)).upstream(OK)
    assert flow.to_upstream == post(body)
    assert flow.to_client == OK
    pumped = [effect.limit_bytes for effect in flow.effects if isinstance(effect, fx.Pump)]
    assert pumped
    assert flow.outcomes[0].sent_bytes == len(post(body))


@pytest.mark.parametrize("pieces", [5, 1000, 200_000])
def test_r104_chunked_uploads_and_downloads_are_unchanged(transparent: Open, pieces: int) -> None:
    chunks = b"5\r\nhello\r\n" + b"186a0\r\n" + b"x" * 100_000 + b"\r\n0\r\nX-Sum: 1\r\n\r\n"
    request = get("/up", "app.test", "Transfer-Encoding: chunked", method="PUT") + chunks
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    flow = transparent(slice_bytes=pieces).client(request + get("/next")).upstream(answer)
    assert flow.to_upstream == request + get("/next")
    assert flow.to_client == answer
    assert flow.outcomes[0].received_bytes == len(answer)


def test_r104_expect_100_continue_works(transparent: Open) -> None:
    head = get("/up", "app.test", "Content-Length: 5", "Expect: 100-continue", method="POST")
    flow = transparent().client(head)
    assert flow.to_upstream == head
    flow.upstream(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert flow.to_client == b"HTTP/1.1 100 Continue\r\n\r\n"
    flow.client(b"12345").upstream(OK)
    assert flow.to_upstream == head + b"12345"
    assert flow.to_client.endswith(OK)


def test_an_answer_before_the_end_of_the_upload_reaches_the_client(transparent: Open) -> None:
    early = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    flow = transparent().client(get("/", "app.test", "Content-Length: 1000000", method="POST") + b"x" * 1000)
    flow.upstream(early)
    assert flow.to_client == early
    assert flow.is_closed
    assert flow.outcomes[0].status == 413


def test_r110_declared_sizes_allocate_nothing(transparent: Open) -> None:
    flow = transparent().client(get("/", "app.test", "Content-Length: 999999999999999", method="POST"))
    [pump] = flow.asked_for(fx.Pump)
    assert pump == fx.Pump(True, 999999999999999)


def test_r107_a_response_of_any_size_is_pumped(transparent: Open) -> None:
    flow = transparent().client(get()).upstream(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\nstart")
    assert fx.Pump(False, 2000000000 - 5) in flow.effects
    assert not flow.flow.reads_upstream


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
def test_a_truncated_answer_ends_in_a_reset_not_in_a_clean_end(transparent: Open, answer: bytes) -> None:
    flow = transparent().client(get()).upstream(answer, fin=True)
    assert flow.to_client == answer
    assert flow.is_reset
    assert [outcome.outcome for outcome in flow.outcomes] == ["truncated"]


def test_an_answer_until_close_ends_clean(transparent: Open) -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nall of it"
    flow = transparent().client(get()).upstream(answer).upstream(b"", fin=True)
    assert flow.to_client == answer
    assert flow.is_closed
    assert not flow.is_reset
    assert [outcome.outcome for outcome in flow.outcomes] == ["answered"]


def test_a_reset_in_an_answer_until_close_is_no_clean_end(transparent: Open) -> None:
    flow = transparent().client(get()).upstream(b"HTTP/1.1 200 OK\r\n\r\nnot all of it")
    flow.happens(ev.Pumped(False, 0, ended=False)).happens(ev.UpstreamEnded(reset=True))
    assert flow.is_reset
    assert [outcome.outcome for outcome in flow.outcomes] == ["truncated"]


def test_a_reset_before_the_answer_is_a_502(transparent: Open) -> None:
    flow = transparent().client(get()).happens(ev.UpstreamEnded(reset=True))
    assert parse_answer(flow.to_client)[0] == 502
    assert [outcome.outcome for outcome in flow.outcomes] == ["no-answer"]


def test_a_reset_of_an_idle_upstream_is_not_the_clients_concern(transparent: Open) -> None:
    flow = transparent().client(get("/a")).upstream(OK).happens(ev.UpstreamEnded(reset=True))
    flow.client(get("/b")).upstream(OK)
    assert flow.to_client == OK * 2


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", b"220 mail\r\n"]
)
def test_no_usable_answer_is_a_502(transparent: Open, answer: bytes) -> None:
    flow = transparent().client(get()).upstream(answer, fin=True)
    assert parse_answer(flow.to_client)[0] == 502
    assert flow.is_closed
    assert flow.outcomes[0].outcome in ("no-answer", "malformed-answer")


def test_smuggled_framing_in_an_answer_is_a_502(transparent: Open) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    flow = transparent().client(get()).upstream(answer)
    assert parse_answer(flow.to_client)[0] == 502
    assert flow.outcomes[0].outcome == "malformed-answer"


def test_head_and_304_have_no_body(transparent: Open) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    flow = transparent().client(get(method="HEAD")).upstream(head).client(get("/b")).upstream(OK)
    assert flow.to_client == head + OK
    not_modified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"
    flow = transparent().client(get()).upstream(not_modified).client(get("/b")).upstream(OK)
    assert flow.to_client == not_modified + OK


def test_interim_answers_pass_and_are_bounded(transparent: Open) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    assert transparent().client(get()).upstream(hint * 3 + OK).to_client == hint * 3 + OK
    flow = transparent().client(get()).upstream(hint * 100)
    assert flow.outcomes[0].outcome == "malformed-answer"


@pytest.mark.parametrize("pieces", [1, 100000])
def test_a_declared_body_above_the_rules_limit_is_413(transparent: Open, pieces: int) -> None:
    answers = {"drop.test": (PUBLIC,)}
    flow = transparent("drop.test", answers=answers, slice_bytes=pieces).client(
        post(b"x" * 1025, host="drop.test")
    )
    assert flow.decisions == [("deny", "body-too-large")]
    assert flow.records[0][1].control == "size-rate-quota"
    assert parse_answer(flow.to_client)[0] == 413
    assert flow.to_upstreams == []
    flow = transparent("drop.test", answers=answers).client(post(b"x" * 1024, host="drop.test")).upstream(OK)
    assert flow.to_client == OK


def test_a_chunked_body_that_outgrows_the_limit_is_cut_with_a_second_record(transparent: Open) -> None:
    head = get("/", "drop.test", "Transfer-Encoding: chunked", method="POST")
    flow = transparent("drop.test", answers={"drop.test": (PUBLIC,)})
    flow.client(head + b"400\r\n" + b"x" * 1024 + b"\r\n1\r\n")
    assert flow.decisions == [("proxy", "rule-proxies"), ("deny", "body-too-large")]
    assert flow.outcomes[0].of == 1
    assert flow.outcomes[0].outcome == "cut"
    assert parse_answer(flow.to_client)[0] == 413
    assert flow.is_closed
    assert not flow.to_upstream.endswith(b"0\r\n\r\n")


def test_r062_a_malformed_chunk_cuts_the_request(transparent: Open) -> None:
    head = get("/", "app.test", "Transfer-Encoding: chunked", method="POST")
    flow = transparent().client(head + b"3\r\nabc\r\nzz\r\n\r\nGET /evil HTTP/1.1\r\n")
    assert flow.decisions == [("allow", "rule-allows"), ("deny", "malformed-request")]
    assert flow.to_upstream == head + b"3\r\nabc\r\n"
    assert parse_answer(flow.to_client)[0] == 400


def test_a_client_that_ends_in_the_middle_of_a_body_is_seen_as_such(transparent: Open) -> None:
    flow = transparent().client(post(b"x" * 100)[:-50], fin=True)
    assert flow.is_reset
    assert [outcome.outcome for outcome in flow.outcomes] == ["client-ended"]


def test_a_client_that_ends_before_the_dial_in_the_middle_of_a_body(transparent: Open) -> None:
    flow = transparent(holds_back=(ev.Resolved,)).client(post(b"x" * 100)[:-50], fin=True).release()
    assert flow.is_reset
    assert [outcome.outcome for outcome in flow.outcomes] == ["client-ended"]


def test_r102_the_clients_end_is_passed_on_and_the_answer_still_comes(transparent: Open) -> None:
    flow = transparent().client(get(), fin=True)
    assert flow.upstream_got_end
    flow.upstream(OK)
    assert flow.to_client == OK
    assert flow.is_closed


def test_r101_silence_before_and_inside_a_streamed_answer_is_no_fault(transparent: Open) -> None:
    flow = transparent().client(get()).time_passes(180)
    flow.upstream(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").time_passes(3600)
    flow.upstream(b"data: 1\n\n", fin=True)
    assert flow.to_client.endswith(b"data: 1\n\n")
    assert not flow.is_reset


# --- upgrades and redirects ----------------------------------------------------------------

UPGRADE = get("/ws", "app.test", "Connection: Upgrade", "Upgrade: websocket")
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def test_r099_frames_pass_both_ways_after_101_early_bytes_included(transparent: Open) -> None:
    flow = transparent().client(UPGRADE + b"early frame").upstream(SWITCHING + b"server frame")
    assert flow.to_client == SWITCHING + b"server frame"
    assert flow.to_upstream == UPGRADE + b"early frame"
    flow.client(b"c2", fin=True).upstream(b"s2", fin=True)
    assert flow.to_upstream.endswith(b"early framec2")
    assert flow.to_client.endswith(b"server frames2")
    [outcome] = flow.outcomes
    assert (outcome.outcome, outcome.status) == ("closed", 101)
    assert outcome.sent_bytes == len(flow.to_upstream)
    assert outcome.received_bytes == len(flow.to_client)


def test_r099_an_unasked_101_opens_no_raw_pipe(transparent: Open) -> None:
    flow = transparent().client(get() + b"GET /evil HTTP/1.1\r\n").upstream(SWITCHING + b"frames")
    assert parse_answer(flow.to_client)[0] == 502
    assert flow.asked_for(fx.Tunnel) == []
    assert flow.outcomes[0].outcome == "malformed-answer"


def test_h2c_offer_never_reaches_the_server_and_its_101_is_unasked(transparent: Open) -> None:
    offer = get("/", "app.test", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA")
    flow = transparent().client(offer)
    assert b"h2c" not in flow.to_upstream
    flow.upstream(SWITCHING.replace(b"websocket", b"h2c"))
    assert parse_answer(flow.to_client)[0] == 502


def test_a_refused_upgrade_is_an_ordinary_answer(transparent: Open) -> None:
    flow = transparent().client(UPGRADE).upstream(OK).client(get("/b")).upstream(OK)
    assert flow.to_client == OK * 2


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"http://169.254.169.254/latest/", ("169.254.169.254", 80)),
        (b"https://collect.example/landing", ("collect.example", 443)),
        (b"//collect.example:81/x", ("collect.example", 81)),
        (b"HTTPS://Collect.Example", ("collect.example", 443)),
        (b"/elsewhere", None),
        (b"elsewhere", None),
        (b"http://app.test/other", None),
        (b"ftp://collect.example/", None),
        (b"https://", None),
    ],
)
def test_redirects_to_other_places_are_noted(
    transparent: Open, location: bytes, target: tuple[str, int] | None
) -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    flow = transparent().client(get()).upstream(answer)
    wanted = [] if target is None else [fx.Redirected(Host(target[0]), target[1])]
    assert flow.asked_for(fx.Redirected) == wanted
    assert flow.to_client == answer
