"""Request and response heads, read in one way or not at all (RFC 9110, RFC 9112)."""

from __future__ import annotations

import pytest

from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, HostRefusal
from stockade.protocol.framing import CHUNKED, NO_BODY, UNTIL_CLOSE, Ending
from stockade.protocol.http1 import HeadFinder, RequestHead, parse_request_head
from stockade.protocol.http1_forward import forward_request
from stockade.protocol.http1_line import Form
from stockade.protocol.http1_response import parse_response_head

APP = Endpoint(Host("app.test"), 80)


def request(*lines: str, host: str | None = "app.test") -> RequestHead:
    fields = list(lines[1:]) if host is None else [f"Host: {host}", *lines[1:]]
    return parse_request_head("\r\n".join([lines[0], *fields, "", ""]).encode("latin-1"))


def refusal_of(raw: bytes) -> str:
    """The code with which a head is refused, as a flow reads it: find, then parse."""
    finder = HeadFinder(65536)
    try:
        end = finder.find(raw)
        assert end, "still waits for more"
        parse_request_head(raw[:end], finder.line)
    except ProtocolViolation as violation:
        return violation.code
    return "not refused"


# --- the request line ------------------------------------------------------------------


def test_origin_form() -> None:
    head = request("GET /a/b?q=1&r=2 HTTP/1.1")
    assert (head.line.form, head.line.method, head.line.path) == (Form.ORIGIN, "GET", "/a/b")
    assert head.line.query_bytes == len("q=1&r=2")
    assert head.host == Endpoint(Host("app.test"), 0)
    assert head.is_persistent


@pytest.mark.parametrize(
    ("target", "host", "port", "path", "origin"),
    [
        ("http://app.test/x?y", "app.test", 80, "/x", b"/x?y"),
        ("http://APP.test.:8080/x", "app.test", 8080, "/x", b"/x"),
        ("HTTP://app.test", "app.test", 80, "/", b"/"),
        ("http://app.test?q=/", "app.test", 80, "/", b"/?q=/"),
        ("http://[2606:2800::1]:81/", "2606:2800::1", 81, "/", b"/"),
        ("https://app.test/x", "app.test", 443, "/x", b"/x"),
    ],
)
def test_absolute_form(target: str, host: str, port: int, path: str, origin: bytes) -> None:
    line = request(f"GET {target} HTTP/1.1").line
    assert line.form is Form.ABSOLUTE
    assert line.authority is not None
    assert isinstance(line.authority.host, Host)
    assert (line.authority.host.name, line.authority.port) == (host, port)
    assert (line.path, line.origin_target) == (path, origin)


def test_r020_upper_case_connect_authority_is_the_same_host() -> None:
    line = request("CONNECT APP.TEST:443 HTTP/1.1").line
    assert (line.form, line.authority) == (Form.AUTHORITY, Endpoint(Host("app.test"), 443))


@pytest.mark.parametrize(
    "authority",
    ["evil.test..:443", "[app.test]:443", "u@app.test:443", "a.test%00.b.test:443", "app.test:0x1bb"],
)
def test_r018_r025_r064_odd_connect_authorities_are_refused_hosts(authority: str) -> None:
    line = request(f"CONNECT {authority} HTTP/1.1").line
    assert line.authority is not None
    assert isinstance(line.authority.host, HostRefusal)


def test_r018_final_dot_does_not_make_another_host() -> None:
    line = request("CONNECT app.test.:443 HTTP/1.1").line
    assert line.authority == Endpoint(Host("app.test"), 443)


def test_r021_kelvin_sign_in_an_authority_is_refused() -> None:
    line = parse_request_head(b"CONNECT \xe2\x84\xaa.allowed.test:443 HTTP/1.1\r\nHost: x.test\r\n\r\n").line
    assert line.authority is not None
    assert isinstance(line.authority.host, HostRefusal)


@pytest.mark.parametrize("odd", ["evil.test\\@app.test", "user:pw@app.test", "app.test\\.evil.test"])
def test_userinfo_and_backslash_in_a_url_refuse_the_host(odd: str) -> None:
    line = request(f"GET http://{odd}/ HTTP/1.1").line
    assert line.authority is not None
    assert isinstance(line.authority.host, HostRefusal)


def test_bytes_above_ascii_in_a_path_are_shown_as_a_browser_sends_them() -> None:
    line = request("GET /\xc3\xa9?\xc3\xa9 HTTP/1.1").line
    assert line.path == "/%C3%A9"
    assert line.origin_target == b"/\xc3\xa9?\xc3\xa9"


def test_options_asterisk() -> None:
    assert request("OPTIONS * HTTP/1.1").line.form is Form.ASTERISK
    assert request("OPTIONS http://app.test HTTP/1.1").line.origin_target == b"*"


# --- what is refused -------------------------------------------------------------------

H = b"Host: app.test\r\n"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param(b"GET /\r\n\r\n", "malformed-request", id="HTTP/0.9"),
        pytest.param(b"GET / HTTP/2.0\r\n" + H + b"\r\n", "malformed-request", id="HTTP/2 on the line"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "malformed-request", id="h2c preface"),
        pytest.param(b"GET / HTTP/1.10\r\n" + H + b"\r\n", "malformed-request", id="HTTP/1.10"),
        pytest.param(b"GET / http/1.1\r\n" + H + b"\r\n", "malformed-request", id="version in lower case"),
        pytest.param(b"GET  / HTTP/1.1\r\n" + H + b"\r\n", "malformed-request", id="two blanks"),
        pytest.param(b"GET\t/ HTTP/1.1\r\n" + H + b"\r\n", "not-the-protocol", id="tab for a blank"),
        pytest.param(b"GET / HTTP/1.1 \r\n" + H + b"\r\n", "malformed-request", id="blank at the end"),
        pytest.param(b" GET / HTTP/1.1\r\n" + H + b"\r\n", "not-the-protocol", id="blank before the method"),
        pytest.param(b"\r\nGET / HTTP/1.1\r\n" + H + b"\r\n", "not-the-protocol", id="empty line first"),
        pytest.param(b"G\0T / HTTP/1.1\r\n" + H + b"\r\n", "not-the-protocol", id="NUL in the method"),
        pytest.param(b"GET /\0 HTTP/1.1\r\n" + H + b"\r\n", "malformed-request", id="NUL in the target"),
        pytest.param(b"GET /#x HTTP/1.1\r\n" + H + b"\r\n", "malformed-request", id="fragment"),
        pytest.param(b"GET * HTTP/1.1\r\n" + H + b"\r\n", "malformed-request", id="asterisk with GET"),
        pytest.param(
            b"GET app.test/ HTTP/1.1\r\n" + H + b"\r\n", "malformed-request", id="neither path nor URL"
        ),
        pytest.param(b"GET //\n HTTP/1.1\r\n\r\n", "malformed-request", id="LF in the target"),
        pytest.param(b"GET / HTTP/1.1\n" + H + b"\r\n", "malformed-request", id="bare LF first"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: app.test\n\r\n", "malformed-request", id="bare LF"),
        pytest.param(b"GET / HTTP/1.1\r\n" + H + b"A: b\rC: d\r\n\r\n", "malformed-request", id="bare CR"),
        pytest.param(b"GET / HTTP/1.1\r\n" + H + b"A: b\r\n c\r\n\r\n", "malformed-request", id="obs-fold"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost : app.test\r\n\r\n", "malformed-request", id="blank before colon"
        ),
        pytest.param(b"GET / HTTP/1.1\r\n" + H + b"A\r\n\r\n", "malformed-request", id="no colon"),
        pytest.param(b"GET / HTTP/1.1\r\n" + H + b": a\r\n\r\n", "malformed-request", id="no name"),
        pytest.param(b"GET / HTTP/1.1\r\n" + H + b"A: \0\r\n\r\n", "malformed-request", id="NUL in a value"),
        pytest.param(
            b"GET / HTTP/1.1\r\n" + H + b"A\xe9: b\r\n\r\n", "malformed-request", id="odd field name"
        ),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "malformed-request", id="no Host"),
        pytest.param(b"GET / HTTP/1.1\r\n" + H + H + b"\r\n", "malformed-request", id="two Hosts"),
        pytest.param(
            b"CONNECT app.test HTTP/1.1\r\n" + H + b"\r\n", "malformed-request", id="CONNECT, no port"
        ),
        pytest.param(
            b"CONNECT app.test:80 HTTP/1.1\r\n" + H + b"Content-Length: 1\r\n\r\n",
            "malformed-request",
            id="CONNECT with a body",
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\n" + H + b"Expect: 200-maybe\r\n\r\n",
            "malformed-request",
            id="odd expectation",
        ),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", "not-the-protocol", id="TLS"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", "malformed-request", id="ssh"),
        pytest.param(b"A" * 40, "not-the-protocol", id="no method ends so late"),
        pytest.param(b"GET /" + b"a" * 70000, "head-too-large", id="endless target"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000, "head-too-large", id="endless fields"),
        pytest.param(
            b"GET / HTTP/1.1\r\n" + H + b"A: b\r\n" * 300 + b"\r\n", "head-too-large", id="301 fields"
        ),
    ],
)
def test_heads_that_are_refused(raw: bytes, code: str) -> None:
    assert refusal_of(raw) == code


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", id="CL and TE"),
        pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", id="TE and CL"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 5\r\n", id="CL twice, alike"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 6\r\n", id="CL twice, different"),
        pytest.param(b"Content-Length: 5, 5\r\n", id="CL list"),
        pytest.param(b"Content-Length: +5\r\n", id="CL with a sign"),
        pytest.param(b"Content-Length: -5\r\n", id="CL below zero"),
        pytest.param(b"Content-Length: 0x5\r\n", id="CL in hex"),
        pytest.param(b"Content-Length: 5 \t6\r\n", id="CL with a blank inside"),
        pytest.param(b"Content-Length: \r\n", id="CL empty"),
        pytest.param(b"Content-Length: 9999999999999999999\r\n", id="CL beyond 64 bits"),
        pytest.param(b"Transfer-Encoding: gzip, chunked\r\n", id="TE list"),
        pytest.param(b"Transfer-Encoding: chunked, chunked\r\n", id="TE chunked twice"),
        pytest.param(b"Transfer-Encoding: identity\r\n", id="TE identity"),
        pytest.param(b"Transfer-Encoding: xchunked\r\n", id="TE that is not chunked"),
        pytest.param(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", id="TE twice"),
        pytest.param(b"Transfer-Encoding: \x0bchunked\r\n", id="TE behind a vertical tab"),
    ],
)
def test_r062_ambiguous_framing_is_refused(fields: bytes) -> None:
    assert refusal_of(b"POST / HTTP/1.1\r\n" + H + fields + b"\r\n") == "malformed-request"


def test_chunked_in_http_1_0_is_refused() -> None:
    assert refusal_of(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == "malformed-request"


@pytest.mark.parametrize(
    "start", [b"G", b"GET", b"GET /", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1\r\nHost: a", b"OPTIONS"]
)
def test_an_honest_beginning_waits(start: bytes) -> None:
    assert HeadFinder(65536).find(start) == 0


def test_the_largest_head_passes_and_one_byte_more_does_not() -> None:
    def head(size: int) -> bytes:
        start = b"GET / HTTP/1.1\r\nHost: app.test\r\nA: "
        return start + b"b" * (size - len(start) - 4) + b"\r\n\r\n"

    assert HeadFinder(1000).find(head(1000)) == 1000
    with pytest.raises(ProtocolViolation, match="head-too-large"):
        HeadFinder(1000).find(head(1001))


# --- framing, persistence, fields ------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "ending", "length"),
    [
        ([], Ending.NONE, 0),
        (["Content-Length: 0"], Ending.NONE, 0),
        (["Content-Length: 17"], Ending.LENGTH, 17),
        (["Transfer-Encoding: Chunked"], Ending.CHUNKED, None),
    ],
)
def test_request_framing(lines: list[str], ending: Ending, length: int | None) -> None:
    framing = request("POST / HTTP/1.1", *lines).framing
    assert (framing.ending, framing.length) == (ending, length)


@pytest.mark.parametrize(
    ("version", "field", "is_persistent"),
    [
        ("1.1", None, True),
        ("1.1", "Connection: close", False),
        ("1.1", "Connection: Foo, CLOSE", False),
        ("1.0", None, False),
        ("1.0", "Connection: Keep-Alive", True),
        ("1.0", "Proxy-Connection: keep-alive", True),
    ],
)
def test_persistence(version: str, field: str | None, is_persistent: bool) -> None:
    assert request(f"GET / HTTP/{version}", *([field] if field else [])).is_persistent is is_persistent


def test_credential_fields_are_named() -> None:
    head = request(
        "GET / HTTP/1.1",
        "Authorization: x",
        "X-Api-Key: y",
        "X-CSRF-Token: z",
        "OpenAI-Organization: o",
        "A: b",
    )
    assert head.credential_headers == ("authorization", "x-api-key", "openai-organization")


def test_expect_and_upgrade() -> None:
    head = request("GET / HTTP/1.1", "Expect: 100-Continue", "Connection: Upgrade", "Upgrade: WebSocket")
    assert head.expects_continue
    assert head.upgrade == "websocket"


# --- passing on ------------------------------------------------------------------------


def test_an_ordinary_head_goes_on_byte_for_byte() -> None:
    raw = b"GET /x HTTP/1.1\r\nHOST:app.test\r\nx-Odd :a".replace(b" :", b":") + b"\r\nA:\t b \r\n\r\n"
    assert forward_request(parse_request_head(raw), APP, to_proxy=False) == raw


def test_absolute_form_becomes_origin_form_without_hop_by_hop_fields() -> None:
    head = request(
        "POST http://app.test/x?y HTTP/1.1",
        "Proxy-Connection: keep-alive",
        "Proxy-Authorization: Basic eDp5",
        "Connection: X-Secret, keep-alive, Host, Content-Length",
        "X-Secret: 1",
        "Keep-Alive: timeout=5",
        "Content-Length: 2",
        "X-Kept:  2",
    )
    assert forward_request(head, APP, to_proxy=True) == (
        b"POST /x?y HTTP/1.1\r\nHost: app.test\r\nContent-Length: 2\r\nX-Kept:  2\r\n\r\n"
    )


def test_h2c_offer_is_taken_out_and_the_request_goes_on() -> None:
    head = request(
        "GET / HTTP/1.1",
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABk",
        "A: b",
    )
    assert head.upgrade is None
    assert forward_request(head, APP, to_proxy=False) == b"GET / HTTP/1.1\r\nHost: app.test\r\nA: b\r\n\r\n"


def test_websocket_offer_through_the_proxy_keeps_what_it_needs() -> None:
    head = request("GET http://app.test/ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket")
    assert forward_request(head, APP, to_proxy=True) == (
        b"GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )


@pytest.mark.parametrize(("port", "field"), [(80, b"Host: app.test"), (8080, b"Host: app.test:8080")])
def test_http_1_0_without_host_gets_the_name_that_was_judged(port: int, field: bytes) -> None:
    head = request("GET / HTTP/1.0", host=None)
    place = Endpoint(Host("app.test"), port)
    assert forward_request(head, place, to_proxy=False) == b"GET / HTTP/1.0\r\n" + field + b"\r\n\r\n"


# --- responses -------------------------------------------------------------------------


def response(*lines: str, method: str = "GET") -> object:
    return parse_response_head("\r\n".join([*lines, "", ""]).encode("latin-1"), method).framing


@pytest.mark.parametrize(
    ("lines", "method", "framing"),
    [
        (["HTTP/1.1 200 OK"], "GET", UNTIL_CLOSE),
        (["HTTP/1.1 200", "Content-Length: 0"], "GET", NO_BODY),
        (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "GET", CHUNKED),
        (["HTTP/1.1 200 OK", "Content-Length: 9"], "HEAD", NO_BODY),
        (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], "HEAD", NO_BODY),
        (["HTTP/1.1 204 No Content"], "GET", NO_BODY),
        (["HTTP/1.1 304 Not Modified", "Content-Length: 9"], "GET", NO_BODY),
        (["HTTP/1.1 100 Continue"], "POST", NO_BODY),
        (["HTTP/1.0 200 OK"], "GET", UNTIL_CLOSE),
    ],
)
def test_response_framing(lines: list[str], method: str, framing: object) -> None:
    assert response(*lines, method=method) == framing


@pytest.mark.parametrize(
    "lines",
    [
        ["HTTP/1.1 200 OK", "Content-Length: 1", "Transfer-Encoding: chunked"],
        ["HTTP/1.1 200 OK", "Content-Length: 1", "Content-Length: 2"],
        ["HTTP/1.1 200 OK", "Transfer-Encoding: gzip"],
        ["HTTP/1.0 200 OK", "Transfer-Encoding: chunked"],
        ["HTTP/2 200 OK"],
        ["HTTP/1.1 20 OK"],
        ["HTTP/1.1 2000 OK"],
        ["HTTP/1.1 600 Odd"],
        ["ICY 200 OK"],
        ["HTTP/1.1 302 Found", "Location: /a", "Location: /b"],
    ],
)
def test_ambiguous_responses_are_refused(lines: list[str]) -> None:
    with pytest.raises(ProtocolViolation):
        response(*lines)


def test_a_response_keeps_the_connection_only_if_its_end_can_be_seen() -> None:
    def keeps(raw: bytes) -> bool:
        return parse_response_head(raw, "GET").is_persistent

    assert keeps(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
    assert not keeps(b"HTTP/1.1 200 OK\r\n\r\n")
    assert not keeps(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n")
    assert not keeps(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n")
