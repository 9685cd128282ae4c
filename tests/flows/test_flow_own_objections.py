"""A judge that permits everything: what the flow holds against an attempt by itself.

The engine knows most of these too. Neither relies on the other, so each is tested alone.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from doubles.fake_driver import PUBLIC, FakeDriver, Room
from doubles.hellos import hello
from doubles.messages import connect, get, post
from stockade.decision.request import Attempt, Decision, Permit
from stockade.net.address import IPAddress
from stockade.net.host import Host
from stockade.protocol import effects as fx
from stockade.vocabulary import Entry, Protocol

GREETING = b"\5\1\0"


class YesMan(Room):
    """Permits whatever it is asked.

    Args:
        limit_bytes: Largest body that it permits.
        forgets_permit: Its decisions about addresses come without leave to dial.
    """

    def __init__(self, *, limit_bytes: int | None = None, forgets_permit: bool = False) -> None:
        super().__init__("rules:\n  - allow: app.test\n")
        self._limit_bytes = limit_bytes
        self._forgets_permit = forgets_permit

    def decide(self, attempt: Attempt, addresses: tuple[IPAddress, ...] | None = None) -> Decision:
        asked = Attempt(entry=attempt.entry, protocol=Protocol.TLS, host=Host("app.test"), port=443)
        yes = self.engine.decide(asked)
        permit = None
        if addresses is not None and not self._forgets_permit:
            name = attempt.host.name if isinstance(attempt.host, Host) else "?"
            permit = Permit(name, addresses, attempt.port)
        return replace(yes, permit=permit, limit_bytes=self._limit_bytes)


def flow_to(
    name: str | None, port: int, *, entry: Entry = Entry.TRANSPARENT, **options: object
) -> FakeDriver:
    return FakeDriver(YesMan(**options), entry, None if name is None else (name, port))  # type: ignore[arg-type]


def test_the_yes_man_says_yes() -> None:
    assert flow_to("app.test", 443).client(hello()).to_upstream == hello()
    assert flow_to("app.test", 80).client(get()).to_upstream == get()


@pytest.mark.parametrize(
    ("port", "raw", "reason"),
    [
        (443, hello(b"evil.test"), "name-mismatch"),
        (443, hello(None), "sni-missing"),
        (443, hello(b"app.test\0"), "malformed-host"),
        (443, b"SSH-2.0", "not-the-protocol"),
        (80, get(host="evil.test"), "name-mismatch"),
        (80, get(host="[app.test]"), "malformed-host"),
        (80, get(host="app.test:81"), "name-mismatch"),
        (80, get("http://evil.test/"), "name-mismatch"),
        (80, get("https://app.test/"), "not-the-protocol"),
        (80, connect("app.test:80"), "method-not-permitted"),
    ],
)
def test_r060_r065_names_and_forms(port: int, raw: bytes, reason: str) -> None:
    flow = flow_to("app.test", port).client(raw)
    assert flow.decisions == [("deny", reason)]
    assert flow.asked_for(fx.Resolve) == []
    assert flow.to_upstreams == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (get("http://app.test/", "evil.test"), "name-mismatch"),
        (get("http://app.test\\@evil.test/"), "malformed-host"),
        (get("/x"), "malformed-request"),
        (connect("app.test\0:443", "app.test"), "malformed-host"),
        (connect("app.test:443") + hello(b"evil.test"), "name-mismatch"),
        (connect("app.test:80") + get(host="evil.test"), "name-mismatch"),
    ],
)
def test_the_proxy_entry(raw: bytes, reason: str) -> None:
    flow = flow_to(None, 0, entry=Entry.HTTP_PROXY).client(raw)
    assert flow.decisions[0][0] == "deny"
    assert flow.decisions[0][1] in (reason, "malformed-request")
    assert flow.to_upstreams == []


@pytest.mark.parametrize("name", [b"app.test\0.evil.test", b"a b"])
def test_r025_a_refused_host_is_never_resolved(name: bytes) -> None:
    request = b"\5\1\0\3" + bytes((len(name),)) + name + b"\1\xbb"
    flow = flow_to(None, 0, entry=Entry.SOCKS5).client(GREETING + request)
    assert flow.decisions == [("deny", "malformed-host")]
    assert flow.asked_for(fx.Resolve) == []


def test_without_a_permit_nothing_is_dialled() -> None:
    flow = flow_to("app.test", 443, forgets_permit=True).client(hello())
    assert flow.decisions == [("deny", "address-not-judged")]
    assert flow.asked_for(fx.Dial) == []


def test_a_declared_body_above_the_limit() -> None:
    assert flow_to("app.test", 80, limit_bytes=4).client(post(b"12345")).decisions == [
        ("deny", "body-too-large")
    ]
    assert flow_to("app.test", 80, limit_bytes=5).client(post(b"12345")).to_upstream == post(b"12345")


def test_the_permit_is_dialled_as_it_is() -> None:
    [dial] = flow_to("app.test", 443).client(hello()).asked_for(fx.Dial)
    assert dial == fx.Dial(Permit("app.test", (PUBLIC,), 443))
