"""Look-ups by the gateway: sources, order, and what is asked of whom."""

from ipaddress import ip_address
from pathlib import Path

import pytest

from stockade.gateway.resolve import Proceed, Resolver, addresses_in_hosts_file
from stockade.net.host import Host
from stockade.prove.world_client import World
from stockade.reactor import Reactor

NAME = Host(name="app.test")


class Asked:
    """Stands for the ledger: notes the questions and lets them go."""

    def __init__(self, *, lets_go: bool = True) -> None:
        self.names: list[str] = []
        self._lets_go = lets_go

    def __call__(self, host: Host, proceed: Proceed) -> None:
        self.names.append(host.name)
        if self._lets_go:
            proceed()


def look_up(resolver: Resolver, reactor: Reactor, host: Host, asked: Asked) -> tuple[list[str], str | None]:
    answers: list[tuple[list[str], str | None]] = []
    resolver.resolve(host, asked, lambda found, error: answers.append(([str(a) for a in found], error)))
    while not answers:
        reactor.turn(1.0)
    return answers[0]


def test_what_the_operator_gave_is_used_and_nobody_is_asked(tmp_path: Path) -> None:
    reactor, asked = Reactor(), Asked()
    resolver = Resolver(reactor, {"app.test": (ip_address("10.20.0.5"),)}, tmp_path / "hosts")
    assert look_up(resolver, reactor, NAME, asked) == (["10.20.0.5"], None)
    assert asked.names == []


def test_the_hosts_file_is_read_as_the_machine_reads_it(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# c\n10.1.1.1 other app.test # x\nnonsense app.test\n::5 APP.test\n10.9.9.9 wapp.test\n"
    )
    assert [str(a) for a in addresses_in_hosts_file(hosts, "app.test")] == ["10.1.1.1", "::5"]
    assert addresses_in_hosts_file(tmp_path / "missing", "app.test") == ()


@pytest.mark.needs("world")
def test_both_families_come_as_one_list(world: World) -> None:
    world.set_dns({"two.test": {"a": ["93.184.216.34", "93.184.216.35"], "aaaa": ["2606:2800:220:1::34"]}})
    reactor, asked = Reactor(), Asked()
    found, error = look_up(Resolver(reactor, {}), reactor, Host(name="two.test"), asked)
    assert (sorted(found), error) == (["2606:2800:220:1::34", "93.184.216.34", "93.184.216.35"], None)
    assert asked.names == ["two.test"]


@pytest.mark.needs("world")
def test_the_question_waits_until_it_is_on_record(world: World) -> None:
    reactor, asked = Reactor(), Asked(lets_go=False)
    Resolver(reactor, {}).resolve(Host(name="allowed.test"), asked, lambda *_: None)
    reactor.turn(0.3)
    assert asked.names == ["allowed.test"]
    assert world.dns_questions("allowed.test") == []


@pytest.mark.needs("world")
def test_many_who_wait_for_one_name_cost_one_question(world: World) -> None:
    reactor, asked = Reactor(), Asked()
    resolver = Resolver(reactor, {})
    answers: list[tuple[object, ...]] = []
    for _ in range(20):
        resolver.resolve(Host(name="allowed.test"), asked, lambda found, _error: answers.append(found))
    while len(answers) < 20:
        reactor.turn(1.0)
    assert len(set(answers)) == 1
    assert asked.names == ["allowed.test"]
    assert len([q for q in world.dns_questions("allowed.test") if q["type"] == "A"]) == 1


@pytest.mark.needs("world")
def test_r052_a_moved_service_is_found_again_when_its_time_is_up(world: World) -> None:
    reactor, asked = Reactor(), Asked()
    resolver = Resolver(reactor, {})
    world.set_dns({"moves.test": {"a": ["93.184.216.34"], "ttl": 1}})
    assert look_up(resolver, reactor, Host(name="moves.test"), asked)[0] == ["93.184.216.34"]
    world.set_dns({"moves.test": {"a": ["93.184.216.99"], "ttl": 1}})
    assert look_up(resolver, reactor, Host(name="moves.test"), asked)[0] == ["93.184.216.34"]
    later = reactor.now() + 1.1  # the TTL of one second, handed in as time instead of waited for
    reactor.now = lambda: later  # type: ignore[method-assign]
    assert look_up(resolver, reactor, Host(name="moves.test"), asked)[0] == ["93.184.216.99"]


@pytest.mark.needs("world")
def test_a_name_that_does_not_exist_has_no_address_and_a_word_why(world: World) -> None:
    reactor, asked = Reactor(), Asked()
    assert look_up(Resolver(reactor, {}), reactor, Host(name="nowhere.invalid"), asked) == (
        [],
        "no-such-name",
    )


@pytest.mark.needs("world")
def test_r038_nobody_asks_for_the_name_of_an_address(world: World) -> None:
    reactor, asked = Reactor(), Asked()
    look_up(Resolver(reactor, {}), reactor, Host(name="allowed.test"), asked)
    assert [q for q in world.dns_questions() if q["type"] == "PTR"] == []


@pytest.mark.needs("world")
def test_names_of_a_silent_server_do_not_hold_up_those_of_others(world: World) -> None:
    """Forty names of one zone are asked for and nobody answers; another zone's name comes at once."""
    silent = {f"n{number}.silent.test": {"drop": True} for number in range(40)}
    world.set_dns({**silent, "lively.other": {"a": ["93.184.216.35"]}})
    reactor, asked = Reactor(), Asked()
    resolver = Resolver(reactor, {})
    for name in silent:
        resolver.resolve(Host(name=name), asked, lambda *_: None)
    began = reactor.now()
    assert look_up(resolver, reactor, Host(name="lively.other"), asked)[0] == ["93.184.216.35"]
    assert reactor.now() - began < 4
