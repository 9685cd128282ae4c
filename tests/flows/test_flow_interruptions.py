"""A policy that is replaced, a person who is asked, an upload that is used up: in the middle of things."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doubles.fake_driver import PUBLIC, FakeDriver, Room
from doubles.hellos import hello
from doubles.messages import OK, POLICY, get, parse_answer
from stockade.protocol import effects as fx
from stockade.protocol import events as ev
from stockade.protocol.line import FlowLimits
from stockade.vocabulary import Entry

Open = Callable[..., FakeDriver]
WITHOUT_APP = "rules:\n  - allow: other.test\n"


def replace_policy(flow: FakeDriver, room: Room, policy: str) -> FakeDriver:
    room.put_in_force(policy)
    return flow.happens(ev.PolicyReplaced())


# --- policy ----------------------------------------------------------------------------


def test_r017_a_tunnel_that_is_no_longer_permitted_is_cut(transparent: Open, room: Room) -> None:
    flow = transparent("app.test", 443).client(hello())
    replace_policy(flow, room, WITHOUT_APP)
    assert flow.is_reset
    assert flow.decisions == [("allow", "rule-allows"), ("deny", "policy-changed")]
    assert [(outcome.of, outcome.outcome) for outcome in flow.outcomes] == [(1, "cut")]


def test_a_tunnel_that_stays_permitted_goes_on(transparent: Open, room: Room) -> None:
    flow = transparent("app.test", 443).client(hello())
    replace_policy(flow, room, POLICY + "  - deny: evil.test\n").upstream(b"still here")
    assert flow.to_client == b"still here"
    assert len(flow.records) == 1


@pytest.mark.parametrize("moment", [ev.Resolved, ev.Recorded, ev.Dialed])
def test_a_policy_replaced_on_the_way_stops_the_dial_or_the_bytes(
    transparent: Open, room: Room, moment: type
) -> None:
    flow = transparent("app.test", 443, holds_back=(moment,)).client(hello())
    replace_policy(flow, room, WITHOUT_APP).release()
    assert flow.is_closed
    assert flow.to_upstream == b""
    assert flow.decisions[-1][0] == "deny"
    assert (moment is ev.Dialed) == bool(flow.asked_for(fx.Dial))


BODY_RULE = (
    "rules:\n  - proxy: app.test\n    ports: [80]\n    protocol: http\n    methods: [POST]\n"
    "    body: {forbid-tools: [web_search]}\n"
)
HALF = b'POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 13\r\n\r\n{"tools": '


@pytest.mark.parametrize(
    ("later", "verdict"), [(WITHOUT_APP, "deny"), (BODY_RULE + "  - deny: x.test\n", "proxy")]
)
def test_r017_the_policy_in_force_when_a_held_body_is_whole_decides(
    transparent: Open, room: Room, later: str, verdict: str
) -> None:
    room.put_in_force(BODY_RULE)
    flow = transparent().client(HALF)
    assert flow.records == []
    replace_policy(flow, room, later).client(b"[]}")
    assert [word for word, _ in flow.decisions] == [verdict]
    assert bool(flow.asked_for(fx.Dial)) == (verdict == "proxy")


def test_a_replaced_rule_for_bodies_is_held_against_the_body_that_waited(
    transparent: Open, room: Room
) -> None:
    room.put_in_force(BODY_RULE)
    body = b'{"tools": [{"type": "code_run"}]}'
    head = b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: %d\r\n\r\n" % len(body)
    flow = transparent().client(head + body[:5])
    replace_policy(flow, room, BODY_RULE.replace("web_search", "code_run")).client(body[5:])
    assert flow.decisions == [("deny", "forbidden-content")]


def test_a_running_response_is_cut_and_a_finished_one_is_not(transparent: Open, room: Room) -> None:
    flow = transparent().client(get()).upstream(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
    replace_policy(flow, room, WITHOUT_APP)
    assert flow.is_reset
    assert flow.decisions[-1] == ("deny", "policy-changed")
    room.put_in_force(POLICY)
    flow = transparent().client(get()).upstream(OK)
    replace_policy(flow, room, WITHOUT_APP)
    assert not flow.is_closed
    flow.client(get())
    assert flow.decisions[-1] == ("deny", "not-listed")
    assert flow.to_upstream == get()


# --- a person --------------------------------------------------------------------------

ASK = "rules: []\nunknown: ask\n"


@pytest.fixture
def asking() -> Room:
    return Room(ASK)


def held_tls(asking: Room, **options: object) -> FakeDriver:
    flow = FakeDriver(asking, Entry.TRANSPARENT, ("app.test", 443), **options)  # type: ignore[arg-type]
    flow.client(hello())
    if flow.decisions != [("deny", "held")]:
        pytest.fail(f"not held: {flow.decisions}")
    return flow


def test_a_held_attempt_is_recorded_and_nothing_is_asked_of_the_world(asking: Room) -> None:
    flow = held_tls(asking)
    assert [type(effect) for effect in flow.effects[-2:]] == [fx.Deadline, fx.Hold]
    assert flow.asked_for(fx.Resolve) == []


def test_an_allowed_one_goes_on_with_a_record_and_a_permit_of_its_own(asking: Room) -> None:
    flow = held_tls(asking)
    asking.approved["app.test", 443] = "operator"
    flow.happens(ev.HoldAnswered(True, "operator"))
    assert flow.decisions[1][0] == "allow"
    assert flow.to_upstream == hello()
    assert flow.deadline is None


def test_a_refused_one_names_who_refused(asking: Room) -> None:
    flow = held_tls(asking).happens(ev.HoldAnswered(False, "operator"))
    assert flow.decisions == [("deny", "held"), ("deny", "hold-refused")]
    assert "operator" in flow.records[1][1].why
    assert flow.to_client == b"\x15\3\3\0\2\2\x31"


def test_an_answer_that_did_not_reach_the_judge_opens_nothing(asking: Room) -> None:
    flow = held_tls(asking).happens(ev.HoldAnswered(True, "operator"))
    assert flow.decisions[1] == ("deny", "hold-timed-out")
    assert flow.to_upstreams == []


def test_nobody_answers(asking: Room) -> None:
    flow = held_tls(asking, limits=FlowLimits(hold_s=60)).time_passes(59)
    assert not flow.is_closed
    flow.time_passes(1)
    assert flow.decisions == [("deny", "held"), ("deny", "hold-timed-out")]
    assert flow.is_closed


def test_a_new_policy_answers_for_the_person(asking: Room) -> None:
    flow = held_tls(asking)
    replace_policy(flow, asking, "rules: []\nunknown: ask\ncatalogue: []\n")
    assert len(flow.records) == 1
    replace_policy(flow, asking, POLICY)
    assert flow.decisions == [("deny", "held"), ("allow", "rule-allows")]
    assert flow.to_upstream == hello()


def test_a_held_http_request_is_answered_403_and_the_connection_kept(asking: Room) -> None:
    flow = FakeDriver(asking, Entry.HTTP_PROXY).client(get("http://app.test/"))
    assert flow.decisions == [("deny", "held")]
    assert not flow.to_client
    flow.happens(ev.HoldAnswered(False, "operator"))
    status, fields, _, _ = parse_answer(flow.to_client)
    assert (status, fields["x-stockade-id"]) == (403, "id-2")
    assert not flow.is_closed


@pytest.mark.parametrize(("name", "reason"), [(b"evil.test", "name-mismatch"), (None, "sni-missing")])
def test_a_contradiction_is_not_worth_a_persons_time(asking: Room, name: bytes | None, reason: str) -> None:
    flow = FakeDriver(asking, Entry.TRANSPARENT, ("app.test", 443)).client(hello(name))
    assert flow.decisions == [("deny", reason)]
    assert flow.asked_for(fx.Hold) == []


def test_a_client_that_leaves_while_it_is_held_leaves_one_record(asking: Room) -> None:
    flow = held_tls(asking).happens(ev.ClientEnded(reset=True))
    assert flow.is_closed
    assert len(flow.records) == 1


# --- the upload ------------------------------------------------------------------------


def test_an_upload_that_is_used_up_is_cut_with_a_record(transparent: Open) -> None:
    flow = transparent("app.test", 443).client(hello()).happens(ev.UploadUsedUp())
    assert flow.is_reset
    assert flow.decisions == [("allow", "rule-allows"), ("deny", "upload-limit")]
    assert [(outcome.outcome, outcome.detail) for outcome in flow.outcomes] == [("cut", "upload-limit")]


# --- order -----------------------------------------------------------------------------


def test_nothing_is_dialled_before_the_record_is_durable(transparent: Open) -> None:
    flow = transparent("app.test", 443, holds_back=(ev.Recorded,)).client(hello())
    assert len(flow.records) == 1
    assert flow.asked_for(fx.Dial) == []
    flow.release()
    assert len(flow.asked_for(fx.Dial)) == 1


def test_nothing_is_answered_before_the_record_is_durable(transparent: Open) -> None:
    flow = transparent("evil.test", holds_back=(ev.Recorded,)).client(get(host="evil.test"))
    assert not flow.to_client
    assert flow.release().to_client


def test_nothing_is_sent_before_the_dial(transparent: Open) -> None:
    flow = transparent("app.test", 443, holds_back=(ev.Dialed,)).client(hello())
    assert flow.asked_for(fx.ToUpstream) == []
    flow.release()
    assert flow.to_upstream == hello()


def test_a_closed_flow_asks_for_nothing_more(transparent: Open) -> None:
    flow = transparent("evil.test", 443).client(hello(b"evil.test"))
    assert flow.is_closed
    for event in (
        ev.ClientData(b"x"),
        ev.Recorded(9),
        ev.Resolved((PUBLIC,)),
        ev.TimedOut(),
        ev.PolicyReplaced(),
    ):
        assert flow.flow.feed(event, 1.0) == []
    assert flow.flow.is_closed


def test_a_late_timer_of_an_earlier_deadline_changes_nothing(transparent: Open) -> None:
    flow = transparent().client(get()).upstream(OK)
    flow.happens(ev.TimedOut())
    assert not flow.is_closed


# --- bytes -----------------------------------------------------------------------------


def test_what_went_over_before_a_reset_is_on_record(transparent: Open) -> None:
    """Else whoever resets after a chunked upload has, by the record, sent nothing."""
    chunks = (b"400\r\n" + bytes(1024) + b"\r\n") * 20
    flow = transparent().client(get("/up", "app.test", "Transfer-Encoding: chunked", method="POST") + chunks)
    flow.happens(ev.ClientEnded(reset=True))
    [outcome] = flow.outcomes
    assert (outcome.outcome, outcome.sent_bytes) == ("reset", len(flow.to_upstream))
    assert outcome.sent_bytes > 20_000


def test_what_went_over_before_a_cut_is_on_record(transparent: Open, room: Room) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"4\r\npart\r\n" * 9
    flow = transparent().client(get()).upstream(answer)
    replace_policy(flow, room, WITHOUT_APP)
    [outcome] = flow.outcomes
    assert (outcome.outcome, outcome.sent_bytes) == ("cut", len(flow.to_upstream))
    assert outcome.received_bytes == len(answer)


def test_a_permit_that_a_new_policy_overtakes_has_an_outcome(transparent: Open, room: Room) -> None:
    flow = transparent(holds_back=(ev.Recorded,)).client(get())
    replace_policy(flow, room, WITHOUT_APP).release()
    assert flow.decisions == [("allow", "rule-allows"), ("deny", "policy-changed")]
    assert [(outcome.of, outcome.outcome) for outcome in flow.outcomes] == [(1, "cut")]
    assert flow.to_upstreams == []
