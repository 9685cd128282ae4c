"""Attempts as one line."""

from __future__ import annotations

import pytest
from decision_texts import attempt_of

from stockade.errors import UserError
from stockade.net.host import Host, HostRefusal
from stockade.vocabulary import Entry, Protocol


def test_a_request_shows_method_path_and_the_length_of_the_query() -> None:
    attempt = attempt_of("post https://App.test:8443/a/b?c=d")
    assert (attempt.method, attempt.host, attempt.port) == ("POST", Host("app.test"), 8443)
    assert (attempt.path, attempt.query_bytes, attempt.has_body) == ("/a/b", 3, True)
    assert (attempt.protocol, attempt.entry) == (Protocol.TLS, Entry.TRANSPARENT)


@pytest.mark.parametrize(
    ("line", "protocol", "port", "upgrade"),
    [
        ("GET http://app.test/", Protocol.HTTP, 80, None),
        ("GET https://app.test/", Protocol.TLS, 443, None),
        ("GET ws://app.test/", Protocol.HTTP, 80, "websocket"),
        ("GET wss://app.test/", Protocol.TLS, 443, "websocket"),
        ("tcp app.test 22", Protocol.TCP, 22, None),
        ("udp app.test 123", Protocol.UDP, 123, None),
        ("dns app.test", Protocol.DNS, 53, None),
    ],
)
def test_the_form_says_what_is_spoken(line: str, protocol: Protocol, port: int, upgrade: str | None) -> None:
    attempt = attempt_of(line)
    assert (attempt.protocol, attempt.port, attempt.upgrade) == (protocol, port, upgrade)


def test_the_entry_is_what_the_form_says_and_else_what_is_given() -> None:
    assert attempt_of("GET http://app.test/", entry=Entry.SOCKS5).entry is Entry.SOCKS5
    assert attempt_of("dns app.test", entry=Entry.SOCKS5).entry is Entry.DNS
    assert attempt_of("exec ls", entry=Entry.SOCKS5).entry is Entry.EXEC


def test_names_beside_the_host_are_parsed_as_hosts() -> None:
    attempt = attempt_of(
        "GET https://app.test/", sni="B.test.", host="c.test:443", came_from="http://d.test/"
    )
    assert (attempt.sni, attempt.authority, attempt.redirected) == (Host("b.test"), Host("c.test"), True)
    assert isinstance(attempt_of("GET https://app.test/", sni="a\x00b").sni, HostRefusal)


def test_a_host_that_is_refused_is_an_attempt_all_the_same() -> None:
    for line in ("GET http://0x7f000001/", "GET http://a@b/", "tcp a..b 80", "dns a..b", "GET ftp://a.test/"):
        assert isinstance(attempt_of(line).host, HostRefusal)


def test_addresses_may_be_bare_where_no_port_can_follow() -> None:
    assert attempt_of("tcp ::1 80").host == Host("::1")
    assert attempt_of("tcp [::1] 80").host == Host("::1")


def test_commands_and_sockets_keep_their_words() -> None:
    assert attempt_of("exec sh -c 'a b | c'").argv == ("sh", "-c", "a b | c")
    assert attempt_of("socket @/x").socket == "@/x"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "GET",
        "GET app.test",
        "GET /path",
        "GET http://a.test/ extra",
        "G(T http://a.test/",
        "tcp a.test",
        "tcp a.test 0",
        "tcp a.test 65536",
        "tcp a.test http",
        "tcp a.test ²",
        "udp a.test",
        "dns",
        "dns a b c",
        "exec",
        "socket",
        "socket a b",
    ],
)
def test_what_is_no_attempt_is_an_error_with_the_forms(line: str) -> None:
    with pytest.raises(UserError) as caught:
        attempt_of(line)
    assert caught.value.exit_code == 2
    assert "METHOD URL" in (caught.value.hint or "")
