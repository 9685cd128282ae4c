"""Authorities and URLs."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from stockade.net.endpoint import Endpoint, Url, parse_authority, parse_url
from stockade.net.host import Host, HostRefusal


@pytest.mark.parametrize(
    ("text", "name", "port"),
    [
        (b"app.test", "app.test", 443),
        (b"app.test:", "app.test", 443),  # RFC 3986 3.2.3
        (b"app.test:8443", "app.test", 8443),
        (b"app.test:08443", "app.test", 8443),
        (b"APP.test.:1", "app.test", 1),
        (b"app.test:65535", "app.test", 65535),
        (b"[2606:4700::1]:80", "2606:4700::1", 80),
        (b"[2606:4700::1]", "2606:4700::1", 443),
        (b"127.0.0.1:80", "127.0.0.1", 80),
    ],
)
def test_authorities_are_taken_apart(text: bytes, name: str, port: int) -> None:
    assert parse_authority(text, 443) == Endpoint(Host(name), port)


@pytest.mark.parametrize(
    "text",
    [
        b"app.test:0",
        b"app.test:65536",
        b"app.test:" + b"9" * 5000,
        b"app.test:+80",
        b"app.test: 80",
        b"app.test:8_0",
        b"app.test:80:80",
        b"user@app.test:80",
        b"evil.test\\@app.test",
        b"app.test/x",
        b"::1",
        b"::1:80",
        b"[::1]80",
        b":80",
        b"",
        b"[app.test]:443",
        "app.test:８０".encode(),
    ],
)
def test_other_authorities_are_refused(text: bytes) -> None:
    assert isinstance(parse_authority(text, 443).host, HostRefusal)


def test_r018_two_final_dots_before_a_port_are_refused() -> None:
    assert parse_authority(b"evil.test.:443", 443) == Endpoint(Host("evil.test"), 443)
    assert isinstance(parse_authority(b"evil.test..:443", 443).host, HostRefusal)


def test_urls_are_taken_apart() -> None:
    assert parse_url("https://App.test/a/b?c=d#e") == Url(
        "https", Endpoint(Host("app.test"), 443), "/a/b", "c=d"
    )
    assert parse_url("http://app.test:8080") == Url("http", Endpoint(Host("app.test"), 8080), "/", None)
    assert parse_url("WSS://app.test?x") == Url("wss", Endpoint(Host("app.test"), 443), "/", "x")


@pytest.mark.parametrize(
    "text", ["file:///etc/passwd", "ftp://a.test/", "http:/a.test", "//a.test/", "a.test", "data:,x", ""]
)
def test_what_names_no_host_over_http_is_refused(text: str) -> None:
    assert isinstance(parse_url(text), HostRefusal)


@pytest.mark.parametrize(
    ("url", "guess"),
    [
        ("https://docs.python.org@evil.example/", "evil.example"),
        ("https://evil.example\\@docs.python.org/", "evil.example"),
        ("http://0xA9FEA9FE/", ip_address("169.254.169.254")),
        ("https://attacker.example%00.docs.python.org/", "attacker.example"),
    ],
)
def test_tricks_in_urls_are_refused_with_what_a_browser_would_read(url: str, guess: object) -> None:
    parsed = parse_url(url)
    assert isinstance(parsed, Url)
    assert isinstance(parsed.endpoint.host, HostRefusal)
    assert parsed.endpoint.host.guess == guess


def test_bytes_above_ascii_in_a_path_are_encoded() -> None:
    parsed = parse_url("http://app.test/é?ü".encode())
    assert isinstance(parsed, Url)
    assert (parsed.path, parsed.query) == ("/%C3%A9", "%C3%BC")
    unreadable = parse_url(b"http://app.test/\xff")
    assert isinstance(unreadable, Url)
    assert unreadable.path == "/%FF"
