"""Public reports of kind BYPASS-PATH: the roads round a proxy."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
APP, EVIL, EVIL6 = "93.184.216.34", "93.184.216.66", "2606:2800:220:1::66"

BARE_CLIENTS = {
    "env-i": ["env", "-i", "/usr/bin/curl", "-sS", "-m", "5", "http://evil.test/"],
    "noproxy": ["curl", "-sS", "-m", "5", "--noproxy", "*", "http://evil.test/"],
    "raw-address": ["curl", "-sS", "-m", "5", "--noproxy", "*", f"http://{EVIL}/"],
    "resolve-flag": ["curl", "-sS", "-m", "5", "--resolve", f"app.test:80:{EVIL}", "http://app.test/"],
    "connect-to": ["curl", "-sS", "-m", "5", "--connect-to", f"app.test:80:{EVIL}:80", "http://app.test/"],
}


@pytest.mark.parametrize("command", BARE_CLIENTS.values(), ids=BARE_CLIENTS)
def test_r076_a_client_without_proxy_variables_finds_no_other_road(
    stockade: Callable[..., Any], world: World, command: list[str]
) -> None:
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert len(world.arrivals(address=EVIL)) == 1
    world.reset()
    run = stockade(command, allow("app.test"))
    assert run.code != 0 or "403" in run.out or "denied" in run.out.lower()
    assert world.packets() == []
    assert len(run.denials()) == 1


def test_r077_every_port_is_captured(in_the_open: Do, contained: Do, world: World) -> None:
    ports = (22, 25, 3000, 4444, 5432, 6379, 8080, 8443, 9200, 65535)
    steps = [get(host, port, patience=0.3) for host in (EVIL, "10.9.0.1") for port in ports]
    in_the_open(*steps)
    assert {(packet["address"], packet["port"]) for packet in world.packets()} >= {
        (EVIL, port) for port in ports
    }
    world.reset()
    tried = contained(*steps, *[get("10.9.0.2", port) for port in ports], policy=allow("app.test"))
    assert world.packets() == []
    assert len(tried.run.denials()) == 3 * len(ports)


@pytest.mark.parametrize("entry", ENTRIES)
def test_r079_ipv6_is_held_to_the_same_policy(
    in_the_open: Do, contained: Do, world: World, entry: str
) -> None:
    world.set_dns({"evil6.test": {"aaaa": [EVIL6]}})

    def bad(entry: str) -> list[dict[str, Any]]:
        names = [get(host, entry=entry) for host in ("evil6.test", EVIL6)]
        return [*names, get_tls(EVIL6, sni="app.test", entry=entry)]

    in_the_open(*bad("transparent"))
    assert len(world.arrivals(address=EVIL6)) == 3
    world.reset()
    world.set_dns({"evil6.test": {"aaaa": [EVIL6]}})
    steps = [get("six.test", entry=entry), *bad(entry), get("dual.test", entry=entry)]
    tried = contained(*steps, policy=allow("six.test", "dual.test"))
    assert [ok(answer) for answer in tried.answers] == [True, False, False, False, True]
    assert world.packets(address=EVIL6) == []
    assert len(tried.run.denials()) == 3


@pytest.mark.parametrize("entry", ENTRIES)
def test_r080_a_dead_ipv6_address_costs_less_than_a_second(contained: Do, world: World, entry: str) -> None:
    world.swallow("2606:2800:220:1::34")
    tried = contained(get("dual.test", entry=entry), policy=allow("dual.test"))
    assert ok(tried[0])
    assert tried[0]["ms"] < 1000
    assert [arrival["address"] for arrival in world.arrivals()] == [APP]


def test_r082_the_worker_has_no_power_over_its_room(stockade: Callable[..., Any], world: World) -> None:
    script = """
        nft flush ruleset; ip route add 10.9.0.0/24 dev lo; ip link add x type dummy
        ip route flush table all; ip addr del 198.18.0.1/32 dev lo
        unshare -Urn nft list ruleset && echo NAMESPACE
        grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status
        curl -sS -m 5 http://evil.test/; curl -sS -m 5 http://app.test/
    """
    run = stockade(["sh", "-c", script], allow("app.test"))
    facts = dict(line.split(":\t") for line in run.out.splitlines() if ":\t" in line)
    assert {facts[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"
    assert "NAMESPACE" not in run.out
    assert "range-docs-page" in run.out
    assert [request["host"] for request in world.requests()] == ["app.test"]


def test_r083_nothing_but_tcp_has_a_road_and_each_kind_is_on_record(
    in_the_open: Do, contained: Do, world: World
) -> None:
    datagrams = [{"do": "udp", "host": EVIL, "port": port} for port in (443, 123, 3478, 51820, 40000)]
    in_the_open(*datagrams)
    assert len(world.packets(protocol="udp")) == len(datagrams)
    world.reset()
    others = [
        {"do": "icmp", "host": EVIL},
        {"do": "icmp", "host": EVIL6},
        {"do": "send_raw", "host": EVIL, "protocol": 132},
        {"do": "send_raw", "host": EVIL, "protocol": 47},
        {"do": "open_socket", "family": 2, "type": 1, "protocol": 132},  # SCTP
        {"do": "open_socket", "family": 2, "type": 2, "protocol": 136},  # UDP-Lite
        {"do": "open_socket", "family": 2, "type": 1, "protocol": 262},  # MPTCP
        {"do": "open_socket", "family": 17, "type": 3, "protocol": 768},  # packets
    ]
    tried = contained(*datagrams, *others, policy=allow("app.test"))
    assert world.packets() == []
    assert {answer["error"] for answer in tried.answers[: len(datagrams)]} == {"ConnectionRefusedError"}
    assert all("error" in answer for answer in tried.answers)
    assert {record["port"] for record in tried.run.denials(entry="udp")} == {443, 123, 3478, 51820, 40000}


def test_r084_a_client_that_knows_no_proxy_is_judged_by_its_server_name_and_recorded(
    contained: Do, world: World
) -> None:
    tried = contained(get_tls("app.test"), get_tls("evil.test"), policy=allow("app.test"))
    assert [ok(answer) for answer in tried.answers] == [True, False]
    verdicts = [(record["name"], record["verdict"]) for record in tried.run.attempts()]
    assert verdicts == [("app.test", "allow"), ("evil.test", "deny")]
    assert [arrival["sni"] for arrival in world.arrivals(protocol="tcp")] == ["app.test"]


def test_r085_port_22_and_the_hosts_own_network_are_closed(
    in_the_open: Do, contained: Do, world: World
) -> None:
    ssh = {"do": "talk", "raw": ["SSH-2.0-probe\r\n"], "patience": 0.3}
    steps = [ssh | {"host": "evil.test", "port": 22}, ssh | {"host": EVIL, "port": 22}]
    neighbors = [get("10.9.0.1", port, patience=0.3) for port in (22, 80, 443, 8080)]
    in_the_open(*steps, *neighbors)
    assert len(world.arrivals(protocol="tcp")) == 6
    world.reset()
    tried = contained(*steps, *neighbors, policy=allow("app.test"))
    assert world.packets() == []
    heard = {answer.get("reply", "")[:12] for answer in tried.answers}
    # RFC 8446 section 6: a fatal (2) alert access_denied (49) is a record of seven bytes.
    assert heard <= {"", "HTTP/1.1 403", "\x15\x03\x03\x00\x02\x02\x31"}
    assert len(tried.run.denials()) == 6
