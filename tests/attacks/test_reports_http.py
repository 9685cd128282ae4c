"""Public reports of kind HTTP: who is the destination, which request is judged, and what a refusal does."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_steps import ENTRIES, Step, Tried, allow, get, get_tls, ok

from doubles.hellos import GREASE_ECH, alpn, hello, hello_message, in_records, server_name
from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
APP, EVIL, CDN = "93.184.216.34", "93.184.216.66", "93.184.218.7"
APP_ONLY = allow("app.test")
PROXY = "http://198.18.0.1:3128"
# An entry and whether a tunnel is asked for there: every way in which a plain request can be sent.
WAYS = {
    "transparent": ("transparent", False),
    "absolute-form": ("http-proxy", False),
    "connect": ("http-proxy", True),
    "socks5": ("socks5", False),
}


@pytest.fixture
def shared_front(world: World) -> World:
    """Two tenants of one address, as behind a content network."""
    world.set_dns({"one.test": {"a": [CDN]}, "two.test": {"a": [CDN]}})
    return world


# --- R060, R068: tenants of one address ----------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "host"),
    [("http://one.test/", "two.test"), ("http://two.test/", "one.test"), ("http://two.test/", "two.test"),
     ("/", "two.test")],
)  # fmt: skip
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_r060_a_request_for_another_tenant_of_the_same_address_is_refused(
    in_the_open: Do, contained: Do, shared_front: World, way: tuple[str, bool], target: str, host: str
) -> None:
    lie = get("one.test", target=target, host_header=host)
    in_the_open(lie)
    assert [request["host"] for request in shared_front.requests()] == [host]
    shared_front.reset()
    shared_front.set_dns({"one.test": {"a": [CDN]}, "two.test": {"a": [CDN]}})
    entry, tunnel = way
    lie, honest = (step | {"entry": entry, "tunnel": tunnel} for step in (lie, get("one.test")))
    if way == WAYS["absolute-form"]:
        honest = get("one.test", entry=entry)
    tried = contained(lie, honest, policy=allow("one.test"))
    assert tried[0]["reply"].split()[1] in ("400", "403")
    assert ok(tried[1])
    assert [request["host"] for request in shared_front.requests()] == ["one.test"]
    assert len(tried.run.denials()) == 1


@pytest.mark.parametrize("entry", ENTRIES)
def test_r068_inner_host_under_an_honest_server_name_is_a_stated_limit(
    contained: Do, shared_front: World, entry: str
) -> None:
    """Inside TLS it cannot be seen: it goes to the judged address and nowhere else, and the pages say so."""
    inner = get_tls("one.test", host_header="two.test", entry=entry)
    outer = get_tls("one.test", sni="two.test", entry=entry)
    tried = contained(inner, outer, policy=allow("one.test"))
    assert [ok(answer) for answer in tried.answers] == [True, False]
    assert [(one["address"], one["sni"]) for one in shared_front.arrivals(protocol="tcp")] == [
        (CDN, "one.test")
    ]
    [passed] = tried.run.attempts(verdict="allow")
    assert (passed["protocol"], passed["method"], passed["path"]) == ("tls", None, None)
    pages = Path(__file__).resolve().parents[2]
    assert "Inside TLS nothing is seen yet" in (pages / "docs" / "guarantees.md").read_text()
    assert "other Host headers behind an honest server name" in (pages / "SECURITY.md").read_text()


# --- R062: the second request ----------------------------------------------------------------------

SMUGGLED = "GET {evil}/smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n"
HEAD = "POST {app}/upload HTTP/1.1\r\nHost: app.test\r\n"
AMBIGUOUS = {
    "length-and-chunked": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two-lengths": "Content-Length: 5\r\nContent-Length: 0\r\n\r\n12345",
    "length-list": "Content-Length: 5, 0\r\n\r\n12345",
    "signed-length": "Content-Length: +5\r\n\r\n12345",
    "bare-lf": "Content-Length: 5\nX: y\r\n\r\n12345",
    "obs-fold": "X: y\r\n Content-Length: 0\r\nContent-Length: 5\r\n\r\n12345",
    "space-before-colon": "Content-Length : 5\r\n\r\n12345",
    "unknown-coding": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked-twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk-size-signed": "Transfer-Encoding: chunked\r\n\r\n+5\r\n12345\r\n0\r\n\r\n",
    "null-in-field": "X: a\0b\r\nContent-Length: 5\r\n\r\n12345",
}


def written(text: str, way: tuple[str, bool]) -> str:
    """The request text as it is sent this way."""
    whole_url = way == WAYS["absolute-form"]
    places = {"app": "http://app.test", "evil": "http://evil.test"}
    return text.replace("{app}", places["app"] if whole_url else "").replace(
        "{evil}", places["evil"] if whole_url else ""
    )


def talk(way: tuple[str, bool], *texts: str) -> Step:
    entry, tunnel = way
    sends = [written(text, way) for text in texts]
    return get("app.test", entry=entry) | {"tunnel": tunnel, "send": sends, "patience": 0.5}


@pytest.mark.parametrize("form", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_r062_ambiguous_framing_is_refused_and_carries_no_second_request(
    contained: Do, world: World, form: str
) -> None:
    steps = [talk(way, HEAD + form + SMUGGLED) for way in WAYS.values()]
    tried = contained(*steps, get("app.test"), policy=APP_ONLY)
    assert ok(tried[-1])
    assert all(not answer.get("reply", "").startswith("HTTP/1.1 200") for answer in tried.answers[:-1])
    assert "/smuggled" not in str(world.requests())
    assert [request["host"] for request in world.requests()][-1] == "app.test"
    assert world.packets(address=EVIL) == []
    assert "evil.test" not in {question["name"] for question in world.dns_questions()}
    denied = tried.run.denials()
    assert len(denied) >= len(WAYS)
    assert {denial["reason"] for denial in denied} == {"malformed-request"}


@pytest.mark.parametrize("one_write", [False, True], ids=["kept-alive", "one-write"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_r062_the_second_request_is_judged_also_behind_a_body(
    contained: Do, world: World, way: tuple[str, bool], one_write: bool
) -> None:
    first = HEAD + "Content-Length: 5\r\n\r\n12345"
    texts = [first + SMUGGLED] if one_write else [first, SMUGGLED]
    again = "GET {app}/again HTTP/1.1\r\nHost: app.test\r\n\r\n"
    tried = contained(talk(way, *texts), talk(way, first, again), policy=APP_ONLY)
    assert [request["path"].removeprefix("http://app.test") for request in world.requests()] == [
        "/upload", "/upload", "/again",
    ]  # fmt: skip
    heard = "".join(tried[0].get("replies", [])) + tried[0]["reply"]
    assert heard.count(" 200 ") == 1
    assert "403" in heard
    assert len(tried.run.denials()) == 1


# --- R065, R067: the first bytes of a tunnel -------------------------------------------------------


def real_hello(name: str) -> bytes:
    """What a TLS client of today sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


HELLOS = {
    "other-name": (hello(b"evil.test"), "name-mismatch"),
    "no-name": (hello(None), "sni-missing"),
    "two-names": (in_records(hello_message([server_name(b"app.test", b"evil.test")])), "malformed-tls"),
    "nul": (hello(b"app.test\0.evil.test"), "malformed-host"),
    "address": (hello(EVIL.encode()), "name-mismatch"),
    "outer-name-of-ech": (hello(b"cover.test", GREASE_ECH), "name-mismatch"),
    "no-extensions": (in_records(hello_message(None)), "sni-missing"),
    "not-a-client's": (in_records(b"\2" + hello_message([server_name(b"app.test")])[1:]), "malformed-tls"),
    "endless": (b"\x16\3\1\0\5\1\xff\xff\xff\xff", "head-too-large"),
    "ssh-banner": (b"SSH-2.0-probe\r\n", "not-the-protocol"),
    "plain-http": (b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n", "not-the-protocol"),
}


def first_bytes(entry: str, *pieces: bytes, port: int = 443, host: str = "app.test", **more: Any) -> Step:
    raw = [piece.decode("latin-1") for piece in pieces]
    return {"do": "talk", "host": host, "port": port, "entry": entry, "raw": raw, "patience": 1.0, **more}


@pytest.mark.parametrize(("first", "reason"), HELLOS.values(), ids=HELLOS)
def test_r065_r067_a_tunnel_without_the_judged_name_is_closed_and_recorded(
    contained: Do, world: World, first: bytes, reason: str
) -> None:
    tried = contained(*[first_bytes(entry, first) for entry in ENTRIES], get_tls("app.test"), policy=APP_ONLY)
    assert ok(tried[-1])
    assert [arrival["sni"] for arrival in world.arrivals(protocol="tcp")] == ["app.test"]
    assert [denial["reason"] for denial in tried.run.denials()] == [reason] * len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES)
def test_r065_an_honest_hello_in_three_segments_passes_unchanged(
    contained: Do, world: World, entry: str
) -> None:
    whole = real_hello("app.test")
    grease = in_records(hello_message([server_name(b"APP.test."), alpn(b"http/1.1"), GREASE_ECH]), 5, 60)
    tried = contained(
        first_bytes(entry, whole[:3], whole[3:80], whole[80:], gap=0.05),
        first_bytes(entry, grease[:9], grease[9:], gap=0.05),
        policy=APP_ONLY,
    )
    assert tried[0]["reply"].startswith("\x16\x03\x03")  # ServerHello: the real server read a real hello
    assert [attempt["verdict"] for attempt in tried.run.attempts()] == ["allow", "allow"]
    assert [arrival["address"] for arrival in world.arrivals(protocol="tcp")] == [APP, APP]


@pytest.mark.parametrize("entry", ENTRIES)
def test_r067_a_server_that_speaks_first_is_reached_if_listed_and_not_waited_for_if_not(
    contained: Do, world: World, entry: str
) -> None:
    world.set_dns({"mail.test": {"a": [APP]}})
    policy = "rules:\n  - {allow: mail.test, ports: [25], protocol: tcp}\n"
    tried = contained(
        first_bytes(entry, port=25, host="mail.test"),
        first_bytes(entry, port=25, host="evil.test", patience=3.0),
        policy=policy,
    )
    assert tried[0]["reply"].startswith("220 ")
    assert not tried[1].get("reply")
    assert tried[1]["ms"] < 2000
    assert world.packets(address=EVIL) == []
    assert [denial["name"] for denial in tried.run.denials()] == ["evil.test"]


# --- R069: a relay inside --------------------------------------------------------------------------

RELAY = r"""
import socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    for end in (a, b):
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def relay(to):
    listener = socket.create_server(("127.0.0.1", 0))
    def serve():
        while True:
            inside, outside = listener.accept()[0], socket.create_connection(to)
            threading.Thread(target=pump, args=(inside, outside), daemon=True).start()
            threading.Thread(target=pump, args=(outside, inside), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()
proxy = ("198.18.0.1", 3128)
one = relay(proxy)
two = relay(one)
for road in (proxy, one, two):
    for name in ("evil.test", "app.test"):
        for more in ("", "Proxy-Authorization: Basic eDp5\r\n", "Via: 1.1 relay\r\nX-Forwarded-For: ::1\r\n"):
            with socket.create_connection(road, 5) as line:
                line.sendall(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n{more}\r\n".encode())
                print(name, line.recv(4000).split()[1].decode())
"""


def test_r069_a_relay_inside_changes_no_verdict(stockade: Callable[..., Any], world: World) -> None:
    run = stockade(["/usr/bin/python3", "-c", RELAY], APP_ONLY)
    assert run.code == 0, run.err
    assert run.out.splitlines() == (["evil.test 403"] * 3 + ["app.test 200"] * 3) * 3
    assert len(run.denials()) == 9
    assert {denial["name"] for denial in run.denials()} == {"evil.test"}
    assert world.packets() == []  # nothing was said in the tunnels, so nothing was dialled


# --- R071, R074, R075: clients at the proxy entry ---------------------------------------------------

URLLIB = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode())"
ORDINARY = {
    "curl": ["curl", "-sSf", "-m", "5"],
    "wget": ["wget", "-q", "-T", "5", "-t", "1", "-O", "-"],
    "urllib": ["/usr/bin/python3", "-c", URLLIB],
}


@pytest.mark.parametrize("command", ORDINARY.values(), ids=ORDINARY)
@pytest.mark.needs("wget")
def test_r071_clients_with_http_proxy_set_fetch_plain_http(
    stockade: Callable[..., Any], world: World, command: list[str]
) -> None:
    run = stockade(["env", f"http_proxy={PROXY}", *command, "http://app.test/"], APP_ONLY)
    assert "range-docs-page" in run.out, run.err
    assert [attempt["entry"] for attempt in run.attempts()] == ["http-proxy"]
    assert [request["path"] for request in world.requests()] == ["/"]  # origin form, as a server expects


def test_r071_the_package_tool_of_the_system_fetches_through_the_proxy(
    stockade: Callable[..., Any], world: World
) -> None:
    helper = ["/usr/lib/apt/apt-helper", "-o", f"Acquire::http::Proxy={PROXY}", "-o", "Acquire::Retries=0"]
    script = f"cd /tmp && {' '.join(helper)} download-file http://%s/ out && cat out"
    good = stockade(["sh", "-c", script % "app.test"], APP_ONLY)
    assert "range-docs-page" in good.out, good.err
    bad = stockade(["sh", "-c", script % "evil.test"], APP_ONLY)
    assert bad.code != 0
    assert "403" in bad.out + bad.err
    assert world.packets(address=EVIL) == []


def test_r074_a_denial_is_403_and_nobody_is_asked_for_credentials(
    stockade: Callable[..., Any], world: World
) -> None:
    """curl, git and pip, with credentials in the proxy's URL and every method of authentication allowed."""
    proxy = "http://user:s3cr3tpart@198.18.0.1:3128"
    curl = f"curl -sk -m 5 -o /dev/null -w '%{{http_code}} %{{http_connect}}\\n' --proxy-anyauth -x {proxy}"
    git = f"git -c http.proxy={proxy} -c http.proxyAuthMethod=anyauth -c http.sslVerify=false ls-remote"
    pip = "/usr/bin/python3 -m pip download -q --no-deps --retries 0 --timeout 5 --no-cache-dir -d /tmp/x"
    pip += f" --disable-pip-version-check --trusted-host evil.test --proxy {proxy}"
    script = f"""
        for url in http://app.test/ http://evil.test/ https://app.test/ https://evil.test/
        do {curl} $url; done
        {git} https://git.test/range.git | tail -n 1
        {git} https://evil.test/range.git; echo git $?
        {pip} -i https://evil.test/simple/ range-tiny; echo pip $?
    """
    run = stockade(
        ["env", "HOME=/tmp", "GIT_TERMINAL_PROMPT=0", "sh", "-c", script], allow("app.test", "git.test")
    )
    lines = run.out.splitlines()
    assert lines[:4] == ["200 000", "403 000", "200 200", "000 403"]
    assert "refs/heads/" in lines[4]
    assert "git 128" in lines
    assert "pip 1" in lines
    assert "CONNECT tunnel failed, response 403" in run.err
    assert "407" not in run.out + run.err
    assert "s3cr3tpart" not in json.dumps(run.records[1:])
    assert "proxy-authorization" not in str(world.requests()).lower()
    assert world.packets(address=EVIL) == []


@pytest.mark.needs("node", "git")
def test_r075_each_client_shows_that_it_was_policy_and_ways_round_it_are_recorded(
    stockade: Callable[..., Any], world: World
) -> None:
    node = "fetch('http://evil.test/').then(async r => console.log(r.status, await r.text()))"
    script = f"""
        curl -si -m 5 http://evil.test/
        curl -si -m 5 -x {PROXY} https://evil.test/
        git ls-remote http://evil.test/range.git
        node -e "{node}"
        curl -s -m 5 --noproxy '*' --resolve evil.test:80:{EVIL} http://evil.test/
        dig +tries=1 +time=2 @8.8.8.8 evil.test
    """
    run = stockade(["env", "HOME=/tmp", "sh", "-c", script], APP_ONLY)
    assert run.out.count("X-Stockade-Reason: not-listed") == 2  # once transparent, once for CONNECT
    assert (
        run.out.count('"reason":"not-listed"') == 2
    )  # curl and node show the body, of CONNECT curl does not
    assert run.out.count('"reason":"literal-address"') == 1
    assert "sandbox's policy and not a network fault" in run.out
    assert "error: 403" in run.err
    by = [(denial["name"] or denial["address"], denial["entry"]) for denial in run.denials()]
    assert by == [("evil.test", "transparent"), ("evil.test", "http-proxy"), ("evil.test", "transparent"),
                  ("evil.test", "transparent"), (EVIL, "transparent")]  # fmt: skip
    assert run.attempts(entry="dns", verdict="deny", name="evil.test")
    assert world.packets() == []
    assert world.dns_questions() == []
