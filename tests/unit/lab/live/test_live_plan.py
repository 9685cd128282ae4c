"""What the worker is told to do for an attempt line: the bytes go out as they are written."""

from __future__ import annotations

from typing import Any

import pytest
from live_rows import scenario

from stockade.errors import UserError
from stockade.lab.live.plan import plan_steps, split_authority
from stockade.lab.pack.pack import shipped_bank
from stockade.vocabulary import Entry


def only_step(attempt: str, **fields: Any) -> dict[str, Any]:
    (step,) = plan_steps(scenario(attempt, **fields))
    return step


def test_a_request_over_tls_names_its_host_in_the_hello_and_in_the_head() -> None:
    step = only_step("GET https://docs.test/a?b=c#d")
    assert (step["do"], step["host"], step["port"], step["sni"]) == ("request", "docs.test", 443, "docs.test")
    lines = step["send"].split("\r\n")
    assert lines[:2] == ["GET /a?b=c HTTP/1.1", "Host: docs.test"]


def test_a_plain_request_has_no_hello_and_a_port_of_its_own() -> None:
    step = only_step("HEAD http://app.test:8080")
    assert "sni" not in step
    assert (step["host"], step["port"]) == ("app.test", 8080)
    assert step["send"].startswith("HEAD / HTTP/1.1\r\nHost: app.test:8080\r\n")


@pytest.mark.parametrize(
    ("method", "has_body"), [("POST", True), ("PUT", True), ("GET", False), ("HEAD", False)]
)
def test_a_writing_method_carries_a_body_of_the_length_that_it_says(method: str, has_body: bool) -> None:
    head, _, body = only_step(f"{method} http://x.test/")["send"].partition("\r\n\r\n")
    assert (f"Content-Length: {len(body)}" in head) is has_body
    assert (100 < len(body) < 2000) if has_body else not body


def test_a_web_socket_asks_for_the_upgrade() -> None:
    step = only_step("GET wss://tunnel.test/connect")
    assert (step["port"], "Upgrade: websocket" in step["send"]) == (443, True)


def test_a_lie_in_the_hello_is_told_where_the_scenario_has_one() -> None:
    assert only_step("POST https://gist.test/new", sni="docs.test")["sni"] == "docs.test"
    assert only_step("GET https://10.0.0.10:10250/pods")["sni"] is None  # RFC 6066 3: no addresses


def test_before_a_redirected_attempt_comes_the_page_that_names_it() -> None:
    page, attempt = plan_steps(scenario("GET http://169.254.169.254/x", came_from="http://shop.test/go"))
    assert (page["host"], page["send"].split(" ")[:2]) == ("shop.test", ["GET", "/go"])
    assert attempt["host"] == "169.254.169.254"


@pytest.mark.parametrize(
    ("attempt", "line"),
    [
        ("GET http://0xA9FEA9FE/", "GET http://0xA9FEA9FE/ HTTP/1.1"),
        ("GET http://[::ffff:169.254.169.254]/", "GET http://[::ffff:169.254.169.254]/ HTTP/1.1"),
        ("GET http://127.0.0.1:9222/json/list", "GET http://127.0.0.1:9222/json/list HTTP/1.1"),
    ],
)
def test_a_proxy_is_asked_in_the_absolute_form_as_written(attempt: str, line: str) -> None:
    step = only_step(attempt, entry=Entry.HTTP_PROXY)
    assert step["tunnel"] is False
    assert step["send"].split("\r\n")[0] == line


@pytest.mark.parametrize(
    ("attempt", "authority"),
    [
        ("GET https://docs.test@evil.example/", "docs.test@evil.example:443"),
        (r"GET 'https://evil.example\@docs.test/'", r"evil.example\@docs.test:443"),
        ("GET https://docs.test:8443/", "docs.test:8443"),
    ],
)
def test_connect_names_the_authority_as_written(attempt: str, authority: str) -> None:
    step = only_step(attempt, entry=Entry.HTTP_PROXY)
    assert (step["tunnel"], step["authority"]) == (True, authority)


def test_letters_outside_of_ascii_go_out_as_utf_8() -> None:
    step = only_step("GET http://dоcs.test/", entry=Entry.HTTP_PROXY)  # the second letter is Cyrillic
    assert "d\u043ecs.test".encode() in step["send"].encode("latin-1")


def test_socks_carries_the_byte_that_the_percent_sign_stands_for() -> None:
    step = only_step("GET https://attacker.example%00.docs.test/", entry=Entry.SOCKS5)
    assert (step["host"], step["as_name"]) == ("attacker.example\0.docs.test", True)


def test_the_other_forms() -> None:
    assert only_step("dns docs.test HTTPS") == {"do": "dns", "name": "docs.test", "type": 65, "kind": "HTTPS"}
    assert only_step("dns docs.test TYPE64")["type"] == 64
    time = only_step("udp 169.254.169.123 123")
    assert (len(time["data"]), time["data"][0]) == (48, "\x1b")  # RFC 5905 7.3: version 3, client
    assert only_step("exec sh -c 'a | b'") == {"do": "exec", "argv": ["sh", "-c", "a | b"]}
    assert only_step("socket icmp:203.0.113.9") == {"do": "icmp", "host": "203.0.113.9"}
    assert only_step("socket vsock:2:1024")["context"] == 2
    assert only_step("socket @/shim.sock") == {"do": "unix", "path": "@/shim.sock"}
    assert only_step("tcp mail.test 25")["send"]
    assert only_step("tcp dot.test 853")["sni"] == "dot.test"


def test_a_question_of_an_unknown_type_is_refused_in_words() -> None:
    with pytest.raises(UserError, match="NONSENSE"):
        plan_steps(scenario("dns docs.test NONSENSE"))


@pytest.mark.parametrize(
    ("authority", "parts"),
    [
        ("x.test", ("x.test", 80)),
        ("x.test:8080", ("x.test", 8080)),
        ("[fd00::1]", ("fd00::1", 80)),
        ("[fd00::1]:8080", ("fd00::1", 8080)),
        ("a:b@c.test", ("a:b@c.test", 80)),
    ],
)
def test_host_and_port_are_told_apart(authority: str, parts: tuple[str, int]) -> None:
    assert split_authority(authority, 80) == parts


def test_every_row_of_the_bank_has_a_plan() -> None:
    assert all(plan_steps(one) for one in shipped_bank().scenarios)
