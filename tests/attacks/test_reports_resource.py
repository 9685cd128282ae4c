"""Public reports of kind RESOURCE: more of everything than there is room for.

Beside `test_reports_stream.py`: here the excess comes from several processes, is refused on
record, and leaves nothing behind.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
EVIL = "93.184.216.66"
APP_ONLY = allow("app.test")

# Four processes hold 100 connections each, since the worker has the small limit as well. They are told by
# lines: "hold" opens them, "drop" lets them go, "get" is an ordinary request beside them.
CROWD = r"""
import os, socket, sys, urllib.request
children, held = [], []
def hold():
    for _ in range(100):
        try:
            held.append(socket.create_connection(("app.test", 80), 4))
            held[-1].sendall(b"GET /silent HTTP/1.1\r\nHost: app.test\r\n\r\n")
        except ConnectionError: pass  # a reset can come before, at or after the first bytes
for order in sys.stdin:
    if order == "hold\n":
        for _ in range(4):
            ready_in, ready_out = os.pipe(); go_in, go_out = os.pipe()
            if os.fork() == 0:
                os.close(go_out); hold(); os.write(ready_out, b"x"); os.read(go_in, 1); os._exit(0)
            os.close(ready_out); os.close(go_in); children.append((ready_in, go_out))
        print(sum(len(os.read(ready, 1)) for ready, _ in children), flush=True)
    elif order == "drop\n":
        for ready, go in children: os.close(ready); os.close(go)
        for _ in children: os.wait()
        children.clear(); print("dropped", flush=True)
    else:
        try: print(urllib.request.urlopen("http://app.test/", timeout=5).status, flush=True)
        except OSError as problem: print(type(problem).__name__, flush=True)
"""


def descriptors_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_r109_the_excess_is_refused_and_counted_and_descriptors_come_back(
    stockade: Any, world: World
) -> None:
    """With 128 descriptors there is room for 16 connections (two each, and a reserve of 96)."""
    worker = stockade.start(
        ["/usr/bin/python3", "-c", CROWD], APP_ONLY, prefix=["prlimit", "--nofile=128:128"]
    )

    def tell(order: str) -> str:
        worker.stdin.write(order.encode() + b"\n")
        worker.stdin.flush()
        return str(worker.stdout.readline().decode().strip())

    assert tell("get") == "200"
    before = descriptors_of(worker.pid)
    for rounds in (1, 2):
        assert tell("hold") == "4"
        while len([r for r in world.requests() if r["path"] == "/silent"]) < rounds * 16:
            assert worker.poll() is None
        # Two more since the first refusal: what names the command of a refused connection.
        assert descriptors_of(worker.pid) <= before + 2 * 16 + 2
        assert tell("get") in ("RemoteDisconnected", "ConnectionResetError", "URLError")
        assert tell("drop") == "dropped"
        while tell("get") != "200":  # a moment later there is room again
            pass
    assert descriptors_of(worker.pid) <= before + 4  # one connection of the last request, kept for the next
    out, err = worker.communicate(timeout=10)
    run = stockade.finish(worker, out, err)
    assert {denial["reason"] for denial in run.denials()} == {"too-many-connections"}
    assert len(run.denials()) >= 2 * (400 - 16 + 1)
    assert run.report["complete"] is True
    assert len([request for request in world.requests() if request["path"] == "/silent"]) == 2 * 16


THREADS = """
import threading, urllib.request
go, started = threading.Event(), 0
for _ in range(500):  # bounded, and each only waits
    try: threading.Thread(target=go.wait).start()
    except RuntimeError: break
    started += 1
go.set()
print(started)
print(urllib.request.urlopen('http://app.test/', timeout=5).status)
"""


def test_r111_threads_meet_the_process_limit_as_well(stockade: Callable[..., Any], world: World) -> None:
    limited = stockade(["/usr/bin/python3", "-c", THREADS], APP_ONLY + "limits: {processes: 64}\n")
    assert limited.out.split()[1] == "200"
    assert 8 < int(limited.out.split()[0]) < 64
    free = stockade(["/usr/bin/python3", "-c", THREADS], APP_ONLY)
    assert free.out.split() == ["500", "200"]


CHAIN = "f=/tmp/again.sh; printf 'sh %s & sh %s & wait' $f $f > $f; sh $f 2>&1 | head -n 1; echo over"


def test_r111_a_shell_that_starts_itself_stays_inside_its_limit_and_the_host_goes_on(
    stockade: Callable[..., Any], world: World
) -> None:
    """Doubles without end inside; `head` leaves at the first complaint and the end takes all with it."""
    run = stockade(["sh", "-c", CHAIN], APP_ONLY + "limits: {processes: 48}\n")
    assert "over" in run.out
    assert "Cannot fork" in run.out
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and _runs(pid, b"again.sh")] == []


def _runs(pid: str, word: bytes) -> bool:
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return False


BOMB = """
import os, sys, time, urllib.request
made = refused = 0
for _ in range(int(sys.argv[1])):
    try:
        if os.fork() == 0: time.sleep(30); os._exit(0)
        made += 1
    except BlockingIOError: refused += 1
print(made, refused)
print(urllib.request.urlopen("http://app.test/", timeout=5).status)
"""
HOG = """
import os, sys, urllib.request
print(urllib.request.urlopen("http://app.test/", timeout=5).status, flush=True)
held = [os.urandom(1 << 10) * (1 << 10) for _ in range(256)]
print("held", len(held))
"""


def closing(run: Any) -> dict[str, Any]:
    (record,) = [record for record in run.records if record["kind"] == "run.closed"]
    return dict(record)


@pytest.mark.needs("root", "cgroup")
def test_r111_a_fork_bomb_is_bounded_counted_and_named_as_the_reason(
    stockade: Callable[..., Any], world: World
) -> None:
    """1,000 tries, 256 processes: the worker and 255 more. The host and the gateway go on."""
    run = stockade(["/usr/bin/python3", "-c", BOMB, "1000"], APP_ONLY + "limits: {processes: 256}\n")
    assert run.out.split() == ["255", "745", "200"]
    assert "stockade: process limit of 256 reached: refused 745 times" in run.err
    for told in (closing(run), run.report):
        (reached,) = told["limits_reached"]
        assert (reached["name"], reached["amount"]) == ("processes", 256)
        assert told["usage"]["processes_refused"] == 745
        assert told["complete"] is True
    free = stockade(["/usr/bin/python3", "-c", BOMB, "500"], APP_ONLY + "limits: {processes: 600}\n")
    assert free.out.split() == ["500", "0", "200"]
    assert closing(free)["limits_reached"] == []
    assert "process limit" not in free.err


@pytest.mark.needs("root", "cgroup")
def test_r111_a_memory_hog_is_killed_and_the_run_says_by_which_limit(
    stockade: Callable[..., Any], world: World
) -> None:
    """256 MiB against 64 MiB: killed, on record, and all traffic before it is there."""
    run = stockade(["/usr/bin/python3", "-c", HOG], APP_ONLY + "limits: {memory: 64MiB}\n")
    assert (run.code, run.out) == (128 + 9, "200\n")
    assert "stockade: memory limit of 64MiB reached: 1 process killed" in run.err
    for told in (closing(run), run.report):
        assert [reached["name"] for reached in told["limits_reached"]] == ["memory"]
        assert (told["exit_of"], told["exit_code"], told["failure"]) == ("command", 137, None)
        assert told["complete"] is True
    free = stockade(["/usr/bin/python3", "-c", HOG], APP_ONLY + "limits: {memory: 512MiB}\n")
    assert free.out == "200\nheld 256\n"
    assert closing(free)["limits_reached"] == []


@pytest.mark.needs("root", "cgroup")
def test_r111_many_small_processes_that_use_up_memory_end_in_the_same_way(
    stockade: Callable[..., Any], world: World
) -> None:
    """A chain of shells that only the limit on time ends; whomever the kernel chooses, the reason is told."""
    run = stockade(["sh", "-c", CHAIN], APP_ONLY + "limits: {memory: 32MiB, processes: 1000, time: 8s}\n")
    assert "memory" in [reached["name"] for reached in closing(run)["limits_reached"]]
    assert closing(run)["failure"] is None
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and _runs(pid, b"again.sh")] == []


def _stage_of(pid: int) -> int:
    """The sandbox's first process, two below the supervisor."""
    for _ in range(2):
        pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    return pid


@pytest.mark.needs("root", "cgroup")
def test_r111_if_the_sandbox_itself_goes_for_want_of_memory_the_limit_is_the_reason(
    stockade: Callable[..., Any], world: World
) -> None:
    """The kernel's choice cannot be forced, so the test kills the stage; once without a kill before it."""
    for use, code in (("python3 -c 'bytearray(256 << 20)'", 137), ("true", 104)):
        policy = APP_ONLY + "limits: {memory: 64MiB}\n"
        worker = stockade.start(["sh", "-c", f"{use}; echo ready; read line"], policy)
        assert worker.stdout.readline() == b"ready\n"
        os.kill(_stage_of(worker.pid), 9)
        run = stockade.finish(worker, *worker.communicate(timeout=10))
        assert run.code == code
        assert (closing(run)["failure"] or {}).get("code") == (None if code == 137 else "sandbox-died")


@pytest.mark.needs("root", "cgroup")
def test_a_limit_that_somebody_takes_away_while_it_runs_is_a_failure_of_the_run(
    stockade: Callable[..., Any], world: World
) -> None:
    worker = stockade.start(["sh", "-c", "echo ready; read line"], APP_ONLY + "limits: {memory: 64MiB}\n")
    assert worker.stdout.readline() == b"ready\n"
    (opened,) = [record for record in stockade.read_ledger(stockade.ledger) if record["kind"] == "run.opened"]
    group = Path(opened["enforced"]["limits"]["memory"]["group"])
    name = "memory.max" if (group / "memory.max").exists() else "memory.memsw.limit_in_bytes"
    (group / name).write_text(str(1 << 30))
    if name != "memory.max":
        (group / "memory.limit_in_bytes").write_text(str(1 << 30))
    run = stockade.finish(worker, *worker.communicate(b"\n", timeout=10))
    assert run.code == 104
    assert "limit-lost" in run.err
    assert closing(run)["failure"]["code"] == "limit-lost"
    kept = stockade(["sh", "-c", "read line"], APP_ONLY + "limits: {memory: 64MiB}\n", stdin=b"\n")
    assert kept.code == 0


def test_an_endless_file_ends_at_its_limit_and_the_run_goes_on(
    stockade: Callable[..., Any], workspace: Path
) -> None:
    command = ["sh", "-c", "head -c 8388608 /dev/zero > f; echo $?; echo on"]
    limited = stockade(command, "limits: {file-size: 1MiB}\n", extra=["--write", "."])
    code, on = limited.out.split()
    assert (limited.code, on) == (0, "on")
    assert code == str(128 + signal.SIGXFSZ)
    assert (workspace / "f").stat().st_size == 1 << 20
    free = stockade(command, "rules: []\n", extra=["--write", "."])
    assert free.out.split() == ["0", "on"]
    assert (workspace / "f").stat().st_size == 8 << 20


@pytest.mark.parametrize("entry", ENTRIES)
def test_r113_each_of_many_denials_is_on_record_and_the_summary_stays_short(
    contained: Do, world: World, entry: str
) -> None:
    """Nothing is left out of the log; what repeats is counted where people read."""
    names = [f"n{number}.evil.test" for number in range(40)]
    steps = [get(name, entry=entry, patience=1) for name in names for _ in range(3)]
    tried = contained(*steps, get("app.test", entry=entry), policy=APP_ONLY)
    assert ok(tried[-1])
    assert [denial["name"] for denial in tried.run.denials()] == [name for name in names for _ in range(3)]
    assert len(tried.run.err.splitlines()) < 20
    assert "3× n" in tried.run.err
    assert "other kinds of refusal" in tried.run.err
    assert world.packets(address=EVIL) == []
    assert tried.run.report["complete"] is True
    assert tried.run.out == "" or "stockade:" not in tried.run.out  # the log is not mixed into the output
