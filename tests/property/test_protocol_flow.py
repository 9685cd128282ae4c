"""Whatever comes, in whatever pieces, a flow keeps its promises.

`FakeDriver` asserts two of them on every run: nothing is dialled before a record with that
permit, and nothing is sent to a destination that was not dialled.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.fake_driver import PUBLIC, FakeDriver, Room
from doubles.hellos import hello
from doubles.messages import OK, POLICY, connect, get, post
from stockade.net.host import parse_host
from stockade.protocol import effects as fx
from stockade.protocol import events as ev
from stockade.vocabulary import Entry, Verdict

ROOM = Room(POLICY)
CHUNKED = get("/c", "app.test", "Transfer-Encoding: chunked", method="PUT") + b"5\r\nhello\r\n0\r\n\r\n"
CHUNKED_OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
SOCKS = b"\5\1\0" + b"\5\1\0\3\x08app.test\1\xbb"

# What clients say, honest and hostile.
SAYINGS = [
    hello(),
    hello(b"evil.test"),
    hello(None),
    get("/a"),
    get("/b", "evil.test"),
    get("http://app.test/"),
    get("http://evil.test/", "evil.test"),
    get("http://other.test/", "other.test"),
    get("/ws", "app.test", "Connection: Upgrade", "Upgrade: websocket"),
    get("/x", "app.test", "Expect: 100-continue", "Content-Length: 3", method="POST"),
    post(b"x" * 50),
    post(b"x" * 50, host="evil.test"),
    CHUNKED,
    CHUNKED[:-6] + b"zz\r\n",
    connect("app.test:443"),
    connect("app.test:80"),
    connect("evil.test:443"),
    connect("git.test:22"),
    SOCKS,
    b"SSH-2.0-x\r\n",
    b"\0\1\2",
]
ANSWERS = [
    OK,
    CHUNKED_OK,
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nuntil close",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
    b"garbage\r\n",
    b"\x16\3\3\0\1x",
]
PLACES = [("app.test", 80), ("app.test", 443), ("git.test", 22), ("evil.test", 443), ("app.test", 8443), None]


@dataclass(frozen=True)
class Talk:
    """One connection's bytes: what the client sends, what destinations answer, and who ends."""

    entry: Entry
    place: tuple[str, int] | None
    client: bytes
    answers: tuple[bytes, ...]
    client_fin: bool
    upstream_fin: bool


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    place = draw(st.sampled_from(PLACES))
    entry = Entry.TRANSPARENT if place else draw(st.sampled_from([Entry.HTTP_PROXY, Entry.SOCKS5]))
    said = bytearray(b"".join(draw(st.lists(st.sampled_from(SAYINGS), max_size=4))))
    if said and draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(said) - 1))
        said[at : at + 1] = draw(st.binary(max_size=2))
    return Talk(
        entry,
        place,
        bytes(said),
        tuple(draw(st.lists(st.sampled_from(ANSWERS), max_size=4))),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def play(talk: Talk, slice_bytes: int) -> FakeDriver:
    """Let one thing happen after the other: the client's bytes, then each answer."""
    answers = {"app.test": (PUBLIC,), "other.test": (PUBLIC,), "git.test": (PUBLIC,)}
    flow = FakeDriver(ROOM, talk.entry, talk.place, slice_bytes=slice_bytes, answers=answers)
    flow.client(talk.client, fin=talk.client_fin)
    for answer in talk.answers:
        flow.upstream(answer)
    return flow.upstream(b"", fin=talk.upstream_fin)


@given(talk=talks(), slice_bytes=st.integers(1, 40))
@settings(max_examples=400, deadline=None)
def test_slicing_does_not_change_the_effects(talk: Talk, slice_bytes: int) -> None:
    whole, sliced = play(talk, 1_000_000), play(talk, slice_bytes)
    assert sliced.trace() == whole.trace()


@given(talk=talks(), slice_bytes=st.sampled_from([1, 7, 100000]))
@settings(max_examples=300, deadline=None)
def test_every_talk_is_recorded_and_ends_in_an_orderly_way(talk: Talk, slice_bytes: int) -> None:
    flow = play(talk, slice_bytes)
    permitted = [seq for seq, (_, d) in enumerate(flow.records, 1) if d.verdict is not Verdict.DENY]
    ended = [outcome.of for outcome in flow.outcomes]
    assert len(ended) == len(set(ended))
    assert set(ended) <= set(permitted)
    if flow.is_closed:
        assert set(permitted) == set(ended)
    else:
        assert len(set(permitted) - set(ended)) <= 1
    dialled = {effect.permit.name for effect in flow.effects if isinstance(effect, fx.Dial)}
    assert dialled <= {"app.test", "other.test", "git.test"}
    asked = {effect.host.name for effect in flow.effects if isinstance(effect, fx.Resolve)}
    assert asked <= {"app.test", "other.test", "git.test"}


@given(talk=talks())
@settings(max_examples=150, deadline=None)
def test_evil_never_receives_a_byte_and_is_never_named_upstream_in_a_head(talk: Talk) -> None:
    flow = play(talk, 1000)
    for got in flow.to_upstreams:
        if fx.Tunnel() in flow.effects or b"\r\n\r\n" not in got:
            continue
        assert b"Host: evil.test" not in got


EVENTS = st.one_of(
    st.binary(max_size=40).map(ev.ClientData),
    st.sampled_from(SAYINGS).map(ev.ClientData),
    st.sampled_from(ANSWERS).map(ev.UpstreamData),
    st.booleans().map(ev.ClientEnded),
    st.booleans().map(ev.UpstreamEnded),
    st.integers(1, 5).map(ev.Recorded),
    st.sampled_from([ev.Resolved((PUBLIC,)), ev.Resolved((), "nxdomain")]),
    st.just(ev.Dialed(PUBLIC)),
    st.just(ev.DialFailed("refused")),
    st.builds(ev.Pumped, st.booleans(), st.integers(0, 100), st.booleans()),
    st.just(ev.TimedOut()),
    st.just(ev.PolicyReplaced()),
    st.just(ev.UploadUsedUp()),
    st.builds(ev.HoldAnswered, st.booleans(), st.just("operator")),
)


@given(place=st.sampled_from(PLACES), socks=st.booleans(), events=st.lists(EVENTS, max_size=25))
@settings(max_examples=400, deadline=None)
def test_any_events_in_any_order_raise_nothing_and_keep_the_order(
    place: tuple[str, int] | None, socks: bool, events: list[ev.Event]
) -> None:
    """A driver may be wrong; the promise holds all the same."""
    entry = Entry.TRANSPARENT if place else Entry.SOCKS5 if socks else Entry.HTTP_PROXY
    flow = FakeDriver(ROOM, entry, place, holds_back=(object,)).flow
    recorded = asked = False
    for now, event in enumerate(events):
        recorded = recorded or (asked and type(event) is ev.Recorded)
        for effect in flow.feed(event, 100.0 + now):
            asked = asked or type(effect) is fx.Record
            if type(effect) is fx.Dial:
                assert recorded
            if type(effect) in (fx.ToUpstream, fx.Tunnel):
                assert any(type(earlier) is ev.Dialed for earlier in events[: now + 1])


def test_names_that_are_one_host_get_one_verdict() -> None:
    for spelling in (b"app.test", b"APP.test", b"app.test.", b"App.Test."):
        assert parse_host(spelling) == parse_host(b"app.test")
        flow = FakeDriver(ROOM, Entry.HTTP_PROXY).client(connect(f"{spelling.decode()}:443"))
        assert flow.to_client.startswith(b"HTTP/1.1 200")
