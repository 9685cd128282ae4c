"""Public reports of kinds STREAM and RESOURCE: long, large, silent, half-closed, many."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
PROXY = ["-x", "http://198.18.0.1:3128"]
ROADS = {
    "transparent": [],
    "http-proxy": PROXY,
    "connect": [*PROXY, "-p"],
    "socks5": ["-x", "socks5h://198.18.0.1:1080"],
}
APP_ONLY = allow("app.test")


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r098_five_requests_on_one_pooled_connection_all_succeed(
    stockade: Callable[..., Any], world: World, road: list[str]
) -> None:
    urls = [f"http://app.test/status/200?n={number}" for number in range(5)]
    run = stockade(
        ["curl", "-sS", "-m", "10", "-w", "%{http_code} %{num_connects}\\n", *road, *urls], APP_ONLY
    )
    codes = [line.split() for line in run.out.splitlines() if line[:3].isdigit()]
    assert [code for code, _ in codes] == ["200"] * 5
    assert sum(int(connects) for _, connects in codes) == 1
    assert len(world.requests()) == 5
    assert len(run.attempts(verdict="allow")) == 5


FRAME = "\x81\x85\0\0\0\0hello"  # RFC 6455 section 5.7, with a mask of zeros
UPGRADE = (
    "GET {target} HTTP/1.1\r\nHost: app.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize("early", [False, True], ids=["after-101", "with-the-request"])
@pytest.mark.parametrize("road", ["transparent", "socks5", "http-proxy", "connect", "tls"])
def test_r099_websocket_frames_pass_both_ways(contained: Do, world: World, road: str, early: bool) -> None:
    entry = {"connect": "http-proxy", "tls": "transparent"}.get(road, road)
    request = UPGRADE.format(target="http://app.test/ws" if road == "http-proxy" else "/ws")
    step = (get_tls if road == "tls" else get)("app.test", entry=entry, tunnel=road == "connect")
    step["send"] = [request + FRAME] if early else [request, FRAME]
    step["patience"] = 0.7
    tried = contained(step, policy=APP_ONLY)
    heard = "".join(tried[0].get("replies", [])) + tried[0]["reply"]
    # RFC 6455 section 1.3: the accept value of the sample key.
    assert "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in heard
    assert heard.endswith("\x81\x05hello")


@pytest.mark.parametrize("entry", ENTRIES)
def test_r099_an_unasked_101_opens_no_raw_pipe(contained: Do, world: World, entry: str) -> None:
    tried = contained(get("app.test", path="/unsolicited-101", entry=entry), get("app.test"), policy=APP_ONLY)
    assert "raw bytes after 101" not in tried[0].get("reply", "")
    assert ok(tried[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/sse?count=2&silence=1.5", "/slow?s=3"], ids=["between-events", "before-head"]
)
@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r101_silence_is_not_cut(
    stockade: Callable[..., Any], world: World, road: list[str], path: str
) -> None:
    """Seconds stand for the report's minutes: the only cut there may be is a configured one, and none is."""
    run = stockade(["curl", "-sS", "-N", "-m", "12", *road, f"http://app.test{path}"], APP_ONLY)
    assert run.code == 0, run.err
    assert "data: end" in run.out or "slow but there" in run.out


@pytest.mark.parametrize("entry", ENTRIES)
def test_r102_a_clients_close_is_passed_on_and_leaks_nothing(contained: Do, world: World, entry: str) -> None:
    """The server of /silent answers nothing and ends only when the client does."""
    silent = get("app.test", path="/silent", entry=entry, half_close=True, patience=2)
    silent["send"] = silent["send"].replace("Connection: close\r\n", "")
    tried = contained(*[silent] * 300, get("app.test", entry=entry), policy=APP_ONLY)
    assert ok(tried[-1])
    assert all(answer.get("ended") for answer in tried.answers[:-1])
    assert {arrival["closed"] for arrival in world.arrivals()} == {"done"}
    assert len(world.arrivals()) == 301


FORMS: dict[str, list[str]] = {
    "length": [],
    "chunked": ["-H", "Transfer-Encoding: chunked"],
    "expect": ["-H", "Expect: 100-continue"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "megabytes"), [*product(FORMS, (1, 13)), ("length", 64), ("chunked", 64)], ids=str
)
@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r104_uploads_arrive_whole(
    stockade: Callable[..., Any],
    world: World,
    workspace: Path,
    road: list[str],
    form: str,
    megabytes: int,
) -> None:
    block = hashlib.sha256(b"upload").digest() * 32768  # 1 MiB
    with (workspace / "body").open("wb") as file:
        for _ in range(megabytes):
            file.write(block)
    expected = hashlib.sha256(block * megabytes).hexdigest()
    upload = [
        "curl",
        "-sS",
        "-m",
        "15",
        "-X",
        "POST",
        "-T",
        "body",
        *FORMS[form],
        *road,
        "http://app.test/upload",
    ]
    run = stockade(upload, APP_ONLY)
    assert run.out == f"{expected} {megabytes << 20}\n", run.err


def peak_memory_kb(pid: int) -> int:
    """VmHWM of one process (proc(5)): the most it ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS)
def test_r107_a_slow_reader_of_a_large_body_does_not_fill_memory(
    stockade: Any, world: World, road: list[str]
) -> None:
    """512 MiB each way at full speed, then 200 MB for a reader who takes 1 MB/s for two seconds."""
    curl = f"curl -sS {' '.join(road)}"
    script = f"""
        {curl} -m 10 -o /dev/null -w '%{{size_download}}\\n' http://app.test/bytes/536870912
        head -c 536870912 /dev/zero | {curl} -m 10 -T - -X POST http://app.test/upload
        {curl} -m 2 --limit-rate 1M -o /dev/null http://app.test/bytes/200000000
        echo ready; read line
    """
    worker = stockade.start(["sh", "-c", script], APP_ONLY)
    assert worker.stdout is not None
    lines = [worker.stdout.readline().decode() for _ in range(3)]
    peak = peak_memory_kb(worker.pid)
    worker.communicate(b"\n", timeout=5)
    assert lines[0] == "536870912\n"
    assert lines[1].endswith(" 536870912\n")
    assert lines[2] == "ready\n"
    assert peak < 150_000


def test_r108_when_the_gateway_dies_the_worker_ends_and_reaches_nothing(stockade: Any, world: World) -> None:
    """In the middle of a transfer, while another process tries and tries to get out."""
    download = "curl -sS -N 'http://app.test/drip/1000?gap=0.02'"
    script = f"{download} & while :; do curl -s -m 1 http://evil.test/; done"
    worker = stockade.start(["sh", "-c", f"echo up; {script}"], APP_ONLY)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"up\n"
    while not world.arrivals(port=80):
        pass
    os.kill(worker.pid, signal.SIGKILL)
    worker.stdout.read()  # end of file: the last process that held the other end is gone
    worker.wait()
    assert world.packets(address="93.184.216.66") == []
    records = stockade.read_ledger(stockade.ledger)
    assert "run.closed" not in {record["kind"] for record in records}  # `stockade log` calls such a run open
    world.reset()
    assert stockade(["curl", "-sS", "http://app.test/"], APP_ONLY).code == 0  # the next run starts clean
    assert [request["path"] for request in world.requests()] == ["/"]


def test_r109_more_connections_than_descriptors_do_not_stop_the_gateway(contained: Do, world: World) -> None:
    """The gateway may hold 128 descriptors; the worker opens 400 connections and keeps them a while."""
    flood = {"do": "many", "host": "app.test", "port": 80, "count": 400}
    tried = contained(flood, get("app.test"), policy=APP_ONLY, prefix=["prlimit", "--nofile=128:128"])
    assert ok(tried[1])
    assert tried.run.report["exit_code"] == 0


@pytest.mark.slow
def test_r110_slow_head_senders_and_declared_bodies_leave_room_for_a_real_request(
    stockade: Any, world: World, probe_file: Path
) -> None:
    declared = "POST /upload HTTP/1.1\r\nHost: app.test\r\nContent-Length: 33554432\r\n\r\n"
    steps = [
        {"do": "many", "host": "app.test", "port": 80, "count": 70, "data": "G", "hold": True},
        {"do": "many", "host": "app.test", "port": 80, "count": 64, "data": declared, "hold": True},
        get("app.test"),
    ]
    script = f"/usr/bin/python3 probe.py '{json.dumps(steps)}'; echo ready; read line"
    worker = stockade.start(["sh", "-c", script], APP_ONLY)
    assert worker.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "ready\n":
        lines.append(worker.stdout.readline().decode())
        assert lines[-1], lines
    peak = peak_memory_kb(worker.pid)
    worker.communicate(b"\n", timeout=5)
    assert ok(json.loads(lines[2]))
    assert json.loads(lines[2])["ms"] < 1500
    assert peak < 150_000


@pytest.mark.slow
def test_r113_each_run_keeps_its_own_log_on_a_shared_shelf_whatever_the_amount(
    stockade: Any, world: World, probe_file: Path, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelf"
    request = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    flood = json.dumps([{"do": "many", "host": "evil.test", "port": 80, "count": 500, "data": request}])
    for _ in range(3):
        done = stockade(["/usr/bin/python3", "probe.py", flood], APP_ONLY, extra=["--ledger", str(shelf)])
        assert done.code == 0
    records = stockade.read_ledger(shelf)
    assert len({record["run"] for record in records}) == 3
    assert sum(record["kind"] == "run.closed" for record in records) == 3
    denied = [
        record for record in records if record["kind"] == "attempt" and record["entry"] == "transparent"
    ]
    assert len(denied) == 1500
    assert world.packets() == []


def test_r073_a_thousand_refusals_leave_gateway_and_worker_alive(contained: Do, world: World) -> None:
    started = time.monotonic()
    request = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    flood = {"do": "many", "host": "evil.test", "port": 80, "count": 1000, "data": request}
    tried = contained(flood, get("app.test"), policy=APP_ONLY)
    assert ok(tried[1])
    assert len(tried.run.denials()) == 1000
    assert world.packets(address="93.184.216.66") == []
    assert time.monotonic() - started < 15


BOMB = """
import os, sys, threading, time, urllib.request
children, refused = [], ''
for n in range(500):  # bounded, and each child only waits for its parent's pipe
    try: pid = os.fork()
    except OSError as problem: refused = problem.strerror; break
    if pid == 0: time.sleep(8); os._exit(0)
    children.append(pid)
for pid in children: os.kill(pid, 9); os.waitpid(pid, 0)
print(len(children), refused)
print(urllib.request.urlopen('http://app.test/', timeout=5).status)
"""


def test_r111_a_fork_bomb_meets_the_process_limit_and_the_run_goes_on(
    stockade: Callable[..., Any], world: World
) -> None:
    run = stockade(["/usr/bin/python3", "-c", BOMB], APP_ONLY + "limits: {processes: 64}\n")
    forks, reason = run.out.splitlines()[0].split(" ", 1)
    assert 8 < int(forks) < 64
    assert reason == os.strerror(errno.EAGAIN)  # fork(2): RLIMIT_NPROC was encountered
    assert run.out.splitlines()[1] == "200"


def test_r111_control_without_the_limit_all_forks_succeed(stockade: Callable[..., Any], world: World) -> None:
    run = stockade(["/usr/bin/python3", "-c", BOMB], APP_ONLY)
    assert run.out.splitlines() == ["500 ", "200"]
