"""Which command opened which connection: real rooms, as root and as an ordinary user."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "bwrap")]

PYTHON = "/usr/bin/python3"
ALLOWED = "rules: [{allow: allowed.test, ports: [80]}]\n"
# Says who it is, then does steps; `tcp` opens a connection, sends a request and waits for the refusal.
PRELUDE = """
import os, signal, socket, sys, time
def tcp(address, family=socket.AF_INET, port=80, wait=True):
    s = socket.socket(family)
    s.settimeout(5)
    s.connect((address, port))
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: x.test\\r\\n\\r\\n")
    if wait:
        s.recv(1000)
    return s
print(os.getpid(), flush=True)
"""


def python(stockade: Any, program: str, *, policy: str | None = None, extra: list[str] | None = None) -> Any:
    run = stockade([PYTHON, "-I", "-c", PRELUDE + program], policy, extra=extra)
    assert run.code == 0, run.err
    return run


def commands(run: Any, **wanted: Any) -> list[Any]:
    return [attempt["command"] for attempt in run.denials(**wanted)]


def closing(run: Any) -> dict[str, int]:
    counts: dict[str, int] = run.records[-1]["command_names"]
    return counts


def test_a_refused_curl_is_named_in_its_connection_and_its_questions(stockade: Any) -> None:
    run = stockade(["sh", "-c", "sleep 0; curl -s -m 5 http://denied.test/?q=secret; true"], "")
    [of_curl] = [record["seq"] for record in run.attempts(entry="exec") if record["argv"][0] == "curl"]
    named = commands(run) + commands(run, entry="dns")
    assert len(named) >= 2
    for command in named:
        assert command["program"] == "/usr/bin/curl"
        assert command["argv"][:4] == ["curl", "-s", "-m", "5"]
        assert command["argv"][4].startswith("http://denied.test/?[redacted 8 bytes ")
        assert command["exec"] == of_curl
    assert len({command["pid"] for command in named}) == 1
    assert closing(run) == {"named": len(named), "unknown": 0, "not_looked_up": 0}


def test_what_is_let_through_is_named_only_on_demand(stockade: Any, world: World) -> None:
    command = ["curl", "-s", "-m", "5", "http://allowed.test/"]
    plain = stockade(command, ALLOWED)
    asked = stockade(command, ALLOWED, extra=["--name-commands"])
    assert [a["verdict"] for a in plain.attempts()] == [a["verdict"] for a in asked.attempts()] == ["allow"]
    assert all("command" not in attempt for attempt in plain.records)
    assert [a["command"]["program"] for a in asked.attempts()] == ["/usr/bin/curl"]
    questions = asked.attempts(entry="dns")
    own = [question for question in questions if question.get("by") == "gateway"]
    assert own
    assert all(("command" in question) == (question not in own) for question in questions)
    assert [run.records[0]["commands_named"] for run in (plain, asked)] == ["refused", "all"]


def test_all_families_are_named(stockade: Any) -> None:
    run = python(
        stockade,
        "a = tcp('203.0.113.1'); b = tcp('2001:db8::1', socket.AF_INET6)\n"
        "c = tcp('::ffff:203.0.113.2', socket.AF_INET6)\n",
    )
    named = commands(run)
    assert [attempt["address"] for attempt in run.denials()] == ["203.0.113.1", "2001:db8::1", "203.0.113.2"]
    assert {(c["pid"], c["program"]) for c in named} == {(int(run.out), os.path.realpath(PYTHON))}


def test_questions_and_refused_datagrams_are_named(stockade: Any) -> None:
    run = python(
        stockade,
        "question = bytes.fromhex('123401000001000000000000') + b'\\6denied\\4test\\0\\0\\1\\0\\1'\n"
        "for family, server in ((2, '9.9.9.9'), (10, '2001:db8::9')):\n"
        "    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(5)\n"
        "    s.sendto(question, (server, 53)); s.recv(500)\n"
        "t = socket.create_connection(('9.9.9.9', 53), 5)\n"
        "t.sendall(len(question).to_bytes(2, 'big') + question); t.recv(500)\n"
        "u = socket.socket(2, socket.SOCK_DGRAM); u.settimeout(5)\n"
        "u.connect(('8.8.8.8', 443)); u.send(b'x')\n"
        "try: u.recv(9)\nexcept OSError: pass\n"
        "tcp('203.0.113.1')\n",  # answered after the filter's log was read: the socket is still there
    )
    named = commands(run, entry="dns") + commands(run, entry="udp")
    assert len(named) == 4
    assert {c["pid"] for c in named} == {int(run.out)}


def test_a_forked_child_is_named_for_its_own_and_its_parent_for_what_it_inherited(stockade: Any) -> None:
    run = python(
        stockade,
        "shared = socket.create_connection(('203.0.113.1', 80), 5)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print(os.getpid(), flush=True)\n"
        "    tcp('203.0.113.2')\n"
        "    shared.sendall(b'GET / HTTP/1.1\\r\\nHost: x.test\\r\\n\\r\\n'); shared.recv(1000)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n",
    )
    parent, child = map(int, run.out.split())
    [own] = [a["command"] for a in run.denials(address="203.0.113.2")]
    [inherited] = [a["command"] for a in run.denials(address="203.0.113.1")]
    assert (own["pid"], own.get("also")) == (child, None)
    assert (inherited["pid"], inherited["also"]) == (parent, [child])


def test_f28_an_undumpable_process_is_named_too(stockade: Any) -> None:
    run = python(
        stockade, "import ctypes\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\ntcp('203.0.113.1')"
    )
    assert [c["pid"] for c in commands(run)] == [int(run.out)]


def test_one_that_has_ended_is_not_known_and_nobody_is_named_in_its_place(
    stockade: Any, workspace: Path
) -> None:
    # Stockade is stopped while one process connects, sends and ends; another stays, with sockets of its own.
    program = (
        "stay = [socket.create_server(('127.0.0.1', 0)) for _ in range(5)]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    tcp('203.0.113.1', wait=False)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "open('done', 'w').close()\n"
        "while os.path.exists('done'): time.sleep(0.01)\n"
        "tcp('203.0.113.2')\n"
    )
    worker = stockade.start([PYTHON, "-I", "-c", PRELUDE + program], extra=["--write", "."])
    assert worker.stdout is not None
    first = worker.stdout.readline()
    worker.send_signal(signal.SIGSTOP)
    try:
        wait_for(workspace / "done")
    finally:
        worker.send_signal(signal.SIGCONT)
    (workspace / "done").unlink()
    out, err = worker.communicate(timeout=15)
    run = stockade.finish(worker, first + out, err)
    assert run.code == 0, run.err
    assert [a["command"] for a in run.denials(address="203.0.113.1")] == [None]
    assert [a["command"]["pid"] for a in run.denials(address="203.0.113.2")] == [int(first)]
    assert closing(run)["unknown"] == 1


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.01)


BURST = """
null = os.open("/dev/null", 0)
for n in range(int(os.environ["HELD"])):  # above all sockets, where the search begins
    os.dup2(null, 500 + n)
def one(n):
    s = socket.socket(); s.settimeout(10)
    s.connect((f"203.0.{n >> 8}.{n & 255}", 80))
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: x.test\\r\\n\\r\\n")
    return s
for first in range(0, int(os.environ["TIMES"]), 100):
    for s in [one(n) for n in range(first, first + 100)]:
        s.recv(1000); s.close()
"""


@pytest.mark.parametrize(("times", "held", "is_paid"), [(200, 0, True), (500, 3000, False)])
def test_a_burst_of_refusals_is_recorded_to_the_last_and_looked_up_within_its_allowance(
    stockade: Any, times: int, held: int, is_paid: bool
) -> None:
    run = python(stockade, BURST, extra=["--env", f"TIMES={times}", "--env", f"HELD={held}"])
    named, counts = commands(run), closing(run)
    assert len(named) == times
    assert sum(counts.values()) == times
    assert counts["unknown"] == 0
    assert (counts["not_looked_up"] == 0) == is_paid
    assert sum(command is None for command in named) == counts["not_looked_up"]
    assert {c["pid"] for c in named if c is not None} == {int(run.out)}
    assert run.records[-1]["complete"]
