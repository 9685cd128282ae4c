"""The *Network* cases of the attack on the design: what a worker can do with sockets in its own room.

A connect inside the room succeeds before the decision falls, so nothing here counts
connects: it counts what arrived in the world, and what the ledger says.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_steps import Tried, allow, get, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
APP, EVIL = "93.184.216.34", "93.184.216.66"
APP_ONLY = allow("app.test")

# family, type, protocol
SOCKETS = {
    "vsock": (40, 1, 0),
    "mptcp": (2, 1, 262),
    "udp-lite": (2, 2, 136),
    "sctp": (2, 1, 132),
    "raw": (2, 3, 1),
    "raw6": (10, 3, 58),
    "ping": (2, 2, 1),
    "packet": (17, 3, 0x0300),
    "xdp": (44, 3, 0),
    "netlink-nflog": (16, 3, 12),
    "bluetooth": (31, 3, 1),
    "alg": (38, 5, 0),
    "can": (29, 3, 1),
    "tipc": (30, 1, 0),
}


@pytest.mark.parametrize("numbers", SOCKETS.values(), ids=SOCKETS)
def test_socket_of_another_kind_does_not_open(
    in_the_open: Do, contained: Do, world: World, numbers: tuple[int, int, int]
) -> None:
    family, kind, protocol = numbers
    step = {"do": "open_socket", "family": family, "type": kind, "protocol": protocol}
    if "opened" not in in_the_open(step)[0] and os.geteuid() == 0:
        pytest.skip("this kernel has no such socket, so there is nothing to refuse")
    plain = {"do": "open_socket", "family": 2, "type": 1, "protocol": 6}
    tried = contained(step, plain, policy=APP_ONLY)
    assert "error" in tried[0]
    assert tried[1]["opened"]


def test_vsock_with_high_bits_set_does_not_open(stockade: Callable[..., Any], world: World) -> None:
    """The kernel reads 32 bits of the family, a careless filter 64 (socket(2) by number, x86-64 or arm64)."""
    script = (
        "import ctypes, os, platform; libc = ctypes.CDLL(None, use_errno=True); "
        "number = 41 if platform.machine() == 'x86_64' else 198; "
        "wide = ctypes.c_ulong; "
        "fd = libc.syscall(ctypes.c_long(number), wide(40 | 1 << 32), wide(1), wide(0)); "
        "print('OPENED' if fd >= 0 else 'refused', ctypes.get_errno())"
    )
    run = stockade(["/usr/bin/python3", "-c", script], APP_ONLY)
    assert run.out.startswith("refused"), run.out


@pytest.mark.parametrize("address", [EVIL, "169.254.169.254", "2606:2800:220:1::66"])
def test_own_listener_on_a_public_address_is_not_a_way_past_the_gateway(
    contained: Do, world: World, address: str
) -> None:
    tried = contained({"do": "own_listener", "host": address, "port": 8080}, get("app.test"), policy=APP_ONLY)
    assert "reply" not in tried[0]
    assert ok(tried[1])
    # The kernel lets nobody bind an IPv6 address that is only routed to loopback; an IPv4 one it does.
    assert len(tried.run.denials()) == (":" not in address)


def test_self_connect_on_a_public_address_is_refused(contained: Do, world: World) -> None:
    tried = contained({"do": "self_connect", "host": EVIL, "port": 7777}, get("app.test"), policy=APP_ONLY)
    assert "reply" not in tried[0]
    assert tried[0]["ms"] < 1000
    assert ok(tried[1])
    assert len(tried.run.attempts()) == 2


@pytest.mark.parametrize("address", ["198.18.0.1", "127.0.0.1", EVIL])
def test_the_capture_port_dialled_directly_leads_nowhere(contained: Do, world: World, address: str) -> None:
    tried = contained(get(address, 1, host_header="app.test"), get("app.test"), policy=APP_ONLY)
    assert not ok(tried[0])
    assert ok(tried[1])
    assert [request["host"] for request in world.requests()] == ["app.test"]
    assert len(tried.run.denials()) == (address != "127.0.0.1")  # loopback in the room is the worker's own


@pytest.mark.parametrize("kind", [1, 2], ids=["tcp", "udp"])
@pytest.mark.parametrize(
    ("host", "port"), [("0.0.0.0", 1), ("::", 1), ("0.0.0.0", 53), ("::", 53), ("198.18.0.1", 53)]
)
def test_the_gateways_ports_in_the_room_cannot_be_taken(
    contained: Do, world: World, host: str, port: int, kind: int
) -> None:
    tried = contained(
        {"do": "bind", "host": host, "port": port, "type": kind, "reuse": True},
        {"do": "bind", "host": "127.0.0.1", "port": 8080, "type": kind},
        get("app.test"),
        policy=APP_ONLY,
    )
    assert "error" in tried[0]
    assert tried[1]["bound"]
    assert ok(tried[2])


@pytest.mark.parametrize(("host", "port"), [("198.18.0.1", 3128), ("198.18.0.1", 1080), ("0.0.0.0", 3128)])
def test_a_listener_on_the_proxy_port_does_not_shadow_the_gateways_entry(
    contained: Do, world: World, host: str, port: int
) -> None:
    tried = contained(
        {"do": "own_listener", "host": host, "port": port} | {"hold": True},
        get("app.test", entry="http-proxy" if port == 3128 else "socks5"),
        policy=APP_ONLY,
    )
    assert ok(tried[1])


PLACES = {
    "this-network": "0.1.2.3",
    "class-e": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "multicast": "224.0.0.251",
    "link-local": "169.254.1.1",
    "host": "10.9.0.2",
    "world": "10.9.0.1",
    "synthetic": "198.18.77.77",
    "mapped": "::ffff:93.184.216.66",
    "multicast6": "ff02::1",
    "ula-host": "fd09::2",
    "documentation": "192.0.2.1",
}


@pytest.mark.parametrize("address", PLACES.values(), ids=PLACES)
def test_odd_destination_does_not_leave_over_tcp_or_udp(contained: Do, world: World, address: str) -> None:
    tried = contained(
        get(address, host_header="app.test"),
        get(address, entry="http-proxy", tunnel=True),
        get(address, entry="socks5"),
        {"do": "udp", "host": address, "port": 4444},
        get("app.test"),
        policy=APP_ONLY,
    )
    assert [ok(answer) for answer in tried.answers] == [False, False, False, False, True]
    assert {packet["address"] for packet in world.packets()} == {APP}


def test_a_chosen_source_address_changes_nothing(stockade: Callable[..., Any], world: World) -> None:
    curl = ["curl", "-sS", "-m", "5", "--interface", "169.254.169.254"]
    bad = stockade([*curl, "http://evil.test/"], APP_ONLY)
    assert world.packets() == []
    assert len(bad.denials()) == 1
    stockade([*curl, "http://app.test/"], APP_ONLY)
    assert {arrival["source"] for arrival in world.arrivals()} <= {"10.9.0.2"}


@pytest.mark.slow
def test_a_flood_of_questions_is_counted_to_the_last_or_reported_as_lost(
    stockade: Callable[..., Any], world: World
) -> None:
    script = """
import socket, struct
wire = struct.pack('!HHHHHH', 1, 256, 1, 0, 0, 0) + b'\\1x\\4evil\\4test\\0' + struct.pack('!HH', 1, 1)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.connect(('9.9.9.9', 53)); s.setblocking(False)
    for n in range(20000):
        try: s.send(wire)
        except OSError: pass
import urllib.request as u
print(u.urlopen('http://app.test/', timeout=5).status)
"""
    run = stockade(["/usr/bin/python3", "-c", script], APP_ONLY)
    assert run.out == "200\n", run.err
    assert world.dns_questions("x.evil.test") == []
    closing = run.records[-1]
    assert closing["kind"] == "run.closed"
    if not closing["complete"]:
        assert closing["inexact_by"] is None or closing["inexact_by"] > 0
        assert "inexact" in run.err


@pytest.mark.slow
def test_a_flood_of_udp_is_refused_and_recorded_or_reported_as_lost(
    stockade: Callable[..., Any], world: World
) -> None:
    script = """
import socket
sent = 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for n in range(20000):
        try: s.sendto(b'x', ('8.8.8.8', 443)); sent += 1
        except OSError: pass
import urllib.request as u
print(u.urlopen('http://app.test/', timeout=5).status)
"""
    run = stockade(["/usr/bin/python3", "-c", script], APP_ONLY)
    assert run.out == "200\n", run.err
    assert world.packets(address="8.8.8.8") == []
    closing = run.records[-1]
    assert closing["kind"] == "run.closed"
    recorded = sum(record.get("count", 1) for record in run.attempts(entry="udp"))
    assert recorded >= 20000 or not closing["complete"]


def wait_for(path: Path) -> None:
    while not path.exists():
        os.sched_yield()


@pytest.mark.parametrize("lives_on", [True, False], ids=["worker-lives-on", "worker-ends"])
def test_attempts_made_while_the_gateway_stands_still_are_counted(
    stockade: Any, world: World, workspace: Path, lives_on: bool
) -> None:
    """300 connects are made and given up while the supervisor stands still (SIGSTOP).

    If the worker lives on, all are on record. If it ends first, those that are not are
    counted, and the run does not call itself complete.
    """
    script = f"""
import os, socket, sys
open('up', 'w').close()
while not os.path.exists('go'): os.sched_yield()
for n in range(300):
    s = socket.socket(); s.setblocking(False)
    try: s.connect(('{EVIL}', 80))
    except OSError: pass
    s.close()
open('tried', 'w').close()
if {lives_on}: sys.stdin.read()
"""
    worker = stockade.start(["/usr/bin/python3", "-c", script], APP_ONLY, extra=["--write", "."])
    wait_for(workspace / "up")
    os.kill(worker.pid, signal.SIGSTOP)
    (workspace / "go").touch()
    wait_for(workspace / "tried")
    os.kill(worker.pid, signal.SIGCONT)
    if lives_on:
        while len(stockade.read_ledger(stockade.ledger)) < 301:
            pass
    out, err = worker.communicate(b"", timeout=10)
    run = stockade.finish(worker, out, err)
    closing = run.records[-1]
    assert closing["kind"] == "run.closed"
    assert closing["complete"] == lives_on or len(run.denials()) == 300
    assert len(run.denials()) + (closing["inexact_by"] or 0) == 300
    assert world.packets() == []


def test_connect_and_immediate_reset_is_on_record(stockade: Callable[..., Any], world: World) -> None:
    script = """
import socket, struct
for n in range(100):
    s = socket.create_connection(('93.184.216.66', 80))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()
print('done')
"""
    run = stockade(["/usr/bin/python3", "-c", script], APP_ONLY)
    assert run.out == "done\n"
    assert len(run.denials()) == 100
    assert run.records[-1]["complete"]
    assert world.packets() == []


@pytest.mark.slow
def test_burning_names_ends_in_servfail_and_leaves_known_names_alone(
    stockade: Callable[..., Any], world: World
) -> None:
    """A room may ask for 20,000 names in a run; an address is never given to a second name."""
    script = """
import socket, struct
def wire(name):
    labels = b''.join(bytes([len(l)]) + l for l in name.encode().split(b'.'))
    return struct.pack('!HHHHHH', 1, 256, 1, 0, 0, 0) + labels + b'\\0' + struct.pack('!HH', 1, 1)
def ask(s, names):
    for name in names: s.send(wire(name))
    return [(r[3] & 15, r[-4:]) for r in (s.recv(600) for _ in names)]
seen, answered, refused = set(), 0, 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(5); s.connect(('9.9.9.9', 53))
    first = ask(s, ['app.test'])
    for start in range(0, 21000, 100):
        for code, address in ask(s, [f'n{n}.evil.test' for n in range(start, start + 100)]):
            if code == 0:
                assert address not in seen; seen.add(address); answered += 1
            refused += code == 2
    assert ask(s, ['app.test']) == first
print(answered, refused)
import urllib.request as u
print(u.urlopen('http://app.test/', timeout=5).status)
"""
    run = stockade(["/usr/bin/python3", "-c", script], APP_ONLY)
    lines = run.out.splitlines()
    answered, refused = map(int, lines[0].split())
    assert answered + refused == 21000
    assert refused > 0
    assert lines[1] == "200"
    assert "too-many-names" in {record["reason"] for record in run.attempts(entry="dns")}
    assert {question["name"] for question in world.dns_questions()} == {"app.test"}
