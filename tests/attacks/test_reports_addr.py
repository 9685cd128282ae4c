"""Public reports of kind ADDR: other spellings and wrappers of private addresses, metadata, redirects.

Numbers are those of the project's case list; `docs/reports.md` says what each was.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from socket import create_server
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
APP, EVIL, METADATA = "93.184.216.34", "93.184.216.66", "169.254.169.254"


@pytest.fixture
def trap() -> Iterator[Callable[[], bool]]:
    """A listener on all of *host*'s loopback, port 80; the value tells whether anybody came."""
    with (
        closing(create_server(("127.0.0.1", 8899))) as one,
        closing(create_server(("0.0.0.0", 8898))) as other,
    ):
        one.setblocking(False)
        other.setblocking(False)

        def was_reached() -> bool:
            for listener in (one, other):
                try:
                    listener.accept()
                except BlockingIOError:
                    continue
                return True
            return False

        yield was_reached


MAPPED = {
    "dotted-loopback": ("::ffff:127.0.0.1", "ssrf"),
    "hex-loopback": ("::ffff:7f00:1", "ssrf"),
    "hex-metadata": ("::ffff:a9fe:a9fe", "metadata-credentials"),
    "long-private": ("0:0:0:0:0:ffff:10.20.0.5", "ssrf"),
    "nat64-metadata": ("64:ff9b::a9fe:a9fe", "metadata-credentials"),
    "6to4-metadata": ("2002:a9fe:a9fe::1", "metadata-credentials"),
    "compatible-metadata": ("::a9fe:a9fe", "metadata-credentials"),
}


@pytest.mark.parametrize(("address", "risk"), MAPPED.values(), ids=MAPPED)
def test_r030_ipv4_inside_ipv6_is_denied_as_a_literal(
    contained: Do, world: World, address: str, risk: str
) -> None:
    tried = contained(
        get("app.test"),
        get(address, entry="http-proxy", tunnel=True),
        get(address, entry="http-proxy"),
        get(address, entry="socks5"),
        get(address, entry="socks5", as_name=True),
        get("app.test"),
        policy=allow("app.test"),
    )
    assert [ok(answer) for answer in tried.answers] == [True, False, False, False, False, True]
    assert {arrival["address"] for arrival in world.packets()} == {APP}
    assert [denial["risk"] for denial in tried.run.denials()] == [risk] * 4


@pytest.mark.parametrize(("address", "risk"), MAPPED.values(), ids=MAPPED)
def test_r030_ipv4_inside_ipv6_is_denied_as_an_answer(
    contained: Do, world: World, address: str, risk: str
) -> None:
    world.set_dns({"wrapped.test": {"aaaa": [address]}})
    tried = contained(*[get("wrapped.test", entry=entry) for entry in ENTRIES], policy=allow("wrapped.test"))
    assert world.packets() == []
    assert [denial["risk"] for denial in tried.run.denials()] == [risk] * 3
    assert not any(map(ok, tried.answers))


@pytest.mark.parametrize(
    "spelling", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "169.254.43518", "0xa9.254.0251.254"]
)
def test_r033_odd_ipv4_spellings_are_refused_on_every_entry(
    contained: Do, world: World, spelling: str
) -> None:
    tried = contained(
        get(spelling, entry="http-proxy", tunnel=True),
        get(spelling, entry="http-proxy"),
        get(spelling, entry="socks5", as_name=True),
        get("app.test", host_header=spelling),
        get("app.test"),
        policy=allow("app.test"),
    )
    assert [ok(answer) for answer in tried.answers] == [False, False, False, False, True]
    assert {packet["address"] for packet in world.packets()} == {APP}
    assert world.dns_questions(spelling) == []
    assert len(tried.run.denials()) == 4
    assert {denial["control"] for denial in tried.run.denials()} <= {"canonicalise-host", "name-consistency"}


@pytest.mark.parametrize("answer", ["127.0.0.1", "127.8.8.8", "0.0.0.0"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_r034_allowed_name_that_answers_loopback_is_denied_after_resolution(
    in_the_open: Do, contained: Do, world: World, trap: Callable[[], bool], answer: str, entry: str
) -> None:
    world.set_dns({"local.test": {"a": [answer]}})
    in_the_open(get("local.test", 8898, patience=0.1))
    assert trap()
    policy = allow("app.test") + "  - allow: local.test\n    ports: [8898, 8899]\n    protocol: http\n"
    steps = [get("local.test", port, entry=entry) for port in (8898, 8899)]
    tried = contained(*steps, get("app.test", entry=entry), policy=policy)
    assert not trap()
    assert [ok(answer) for answer in tried.answers] == [False, False, True]
    assert {denial["reason"] for denial in tried.run.denials()} <= {"loopback-address", "reserved-address"}


@pytest.mark.parametrize("entry", ENTRIES)
def test_r037_https_straight_to_an_address_is_denied_whatever_the_server_name_says(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    steps = [get_tls(EVIL, sni=sni) for sni in ("", "app.test")]
    in_the_open(*steps)
    assert [arrival["sni"] for arrival in world.arrivals(address=EVIL)] == [None, "app.test"]
    world.reset()
    tried = contained(*[step | {"entry": entry} for step in steps], policy=allow("app.test"))
    assert world.packets() == []
    assert [denial["reason"] for denial in tried.run.denials()] == ["literal-address"] * 2


def test_r038_a_pointer_record_does_not_make_an_address_match(contained: Do, world: World) -> None:
    world.set_dns({"66.216.184.93.in-addr.arpa": {"ptr": ["app.test."]}})
    tried = contained(
        *[get_tls(EVIL, sni="app.test", entry=entry) for entry in ENTRIES],
        get(EVIL, host_header="app.test"),
        policy=allow("app.test"),
    )
    assert world.packets() == []
    assert world.dns_questions() == []
    assert len(tried.run.denials()) == 4


METADATA_PLACES = [
    "169.254.169.254", "fd00:ec2::254", "169.254.170.2", "168.63.129.16", "100.100.100.200",
    "metadata.google.internal", "instance-data",
]  # fmt: skip


@pytest.mark.parametrize("place", METADATA_PLACES)
def test_r039_metadata_is_denied_by_address_and_by_name_and_named_so(
    in_the_open: Do, contained: Do, world: World, place: str
) -> None:
    world.set_dns({name: {"a": [METADATA]} for name in ("metadata.google.internal", "instance-data")})
    in_the_open(get(place, path="/latest/meta-data/iam/"))
    assert len(world.arrivals()) == 1
    steps = [get(place, path="/latest/meta-data/iam/", entry=entry) for entry in ENTRIES]
    put = get(place) | {
        "send": f"PUT /latest/api/token HTTP/1.1\r\nHost: {place}\r\nContent-Length: 0\r\n\r\n"
    }
    world.reset()
    world.set_dns({name: {"a": [METADATA]} for name in ("metadata.google.internal", "instance-data")})
    tried = contained(*steps, put, policy=allow("*.test", "app.example"))
    assert world.packets() == []
    assert world.dns_questions() == []
    denials = tried.run.denials()
    assert len(denials) == 4
    assert {(denial["risk"], denial["class"]) for denial in denials} == {("metadata-credentials", "metadata")}


def test_r042_internal_answer_is_refused_with_its_address_and_with_the_way_to_open_it(
    contained: Do, world: World
) -> None:
    closed = contained(get("priv.test"), policy=allow("priv.test"))
    [denial] = closed.run.denials()
    assert (denial["reason"], denial["address"]) == ("private-address", "10.20.0.5")
    assert "internal" in denial["why"]
    assert "10.20.0.5" in closed.run.err
    assert world.packets() == []
    opened = contained(
        get("priv.test"),
        policy=allow("priv.test")
        + "internal:\n  - {host: priv.test, networks: [10.20.0.0/24], ports: [80]}\n",
    )
    assert ok(opened[0])
    assert [arrival["address"] for arrival in world.arrivals()] == ["10.20.0.5"]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest/", "http://evil.test/", "http://127.0.0.1:8899/"]
)
def test_r043_each_hop_of_a_redirect_is_a_decision_of_its_own(
    stockade: Callable[..., Any], world: World, trap: Callable[[], bool], code: int, target: str
) -> None:
    url = f"http://app.test/redirect?code={code}&to={target}"
    if "127.0.0.1" not in target:  # in the open the third would reach the trap; probe 13 is its control
        opened = subprocess.run(["curl", "-sSL", "-m", "5", "-o", "/dev/null", url], capture_output=True)
        assert opened.returncode == 0
        assert len(world.arrivals()) == 2
        world.reset()
    run = stockade(["curl", "-sS", "-L", "-m", "5", "-x", "http://198.18.0.1:3128", url], allow("app.test"))
    assert [arrival["address"] for arrival in world.arrivals()] == [APP]
    assert not trap()
    assert len(run.denials()) == 1
    assert len(run.attempts(verdict="allow")) == 1


def test_r043_a_python_client_is_stopped_at_the_second_hop_too(
    stockade: Callable[..., Any], world: World
) -> None:
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read())"
    url = "http://app.test/redirect?to=http://evil.test/"
    run = stockade(["/usr/bin/python3", "-c", fetch, url], allow("app.test"))
    assert run.code != 0
    assert [arrival["address"] for arrival in world.arrivals()] == [APP]
    [denial] = run.denials()
    assert denial["name"] == "evil.test"
