"""The measuring bench itself: starts a client somewhere, asks it for jobs, reads what it cost.

The whole program runs as the first process of a PID namespace and inside a sealed network
namespace (see `run`), so every other process in /proc belongs to this measurement: what a peer
uses is what everybody uses except the bench, the origin and the client. Nothing outlives it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
"""One interpreter for every client, because each sandbox shows /usr."""
ORIGIN_PORT = 9000
TICKS = os.sysconf("SC_CLK_TCK")


class Failed(Exception):  # noqa: N818  # a finding for the table, not a fault
    """A subject did not do what was asked; the reason goes into the table."""


class Client:
    """A running `load.py client`, wherever it runs."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            env={**os.environ, **(environment or {})},
            cwd=HERE,
        )
        self.unread = b""
        self.hello = self.read_answer(30)
        self.host_pid = find_client(self.hello["pid"])

    def ask(self, job: str, timeout_s: float = 120) -> dict[str, Any]:
        """Have one job done."""
        assert self.process.stdin
        try:
            self.process.stdin.write(job.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as problem:
            raise Failed(self.last_words()) from problem
        answer = self.read_answer(timeout_s)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def read_answer(self, timeout_s: float) -> dict[str, Any]:
        """Return the next JSON line that it prints; other lines are a tool's chatter."""
        assert self.process.stdout
        end = time.monotonic() + timeout_s
        while True:
            line, newline, rest = self.unread.partition(b"\n")
            if newline:
                self.unread = rest
                if line.startswith(b"{"):
                    return dict(json.loads(line))
                continue
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not more:
                late = "" if ready else f"no answer in {timeout_s:.0f} s; "
                raise Failed(late + self.last_words())
            self.unread += more

    def last_words(self) -> str:
        """Return the last line of its standard error."""
        return last_line(self.log)

    def close(self) -> None:
        """End it: end of input first, then by signal."""
        assert self.process.stdin
        self.process.stdin.close()
        stop(self.process)


def last_line(log: Path) -> str:
    """Return the end of a log: the last line, and the one before, since a hint often follows a fault."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return " / ".join(line[:150] for line in lines[-2:]) or "it ended without a word"


def stop(process: subprocess.Popen[bytes], patience_s: float = 3.0) -> None:
    """Wait for an end that should come by itself, then ask for it, then force it."""
    for action in (lambda: None, process.terminate, process.kill):
        action()
        try:
            process.wait(patience_s)
            return
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def origin() -> Iterator[None]:
    """Run the server that all load goes to."""
    process = subprocess.Popen([PYTHON, str(HERE / "load.py"), "origin", str(ORIGIN_PORT)])
    ours.add(process.pid)
    wait_for_port(ORIGIN_PORT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def wait_for_port(port: int, address: str = "127.0.0.1", timeout_s: float = 10) -> None:
    """Return when somebody listens."""
    end = time.monotonic() + timeout_s
    while (address, port) not in listening():
        if time.monotonic() > end:
            raise Failed(f"nothing listens on {address}:{port} after {timeout_s:.0f} s")
        time.sleep(0.01)


def listening() -> set[tuple[str, int]]:
    """Return every IPv4 address and port with a listener in this namespace."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if state == "0A":
            number, port = local.split(":")
            found.add((".".join(str(byte) for byte in reversed(bytes.fromhex(number))), int(port, 16)))
    return found


# --- what it cost ---------------------------------------------------------------------------------

ours: set[int] = {os.getpid()}
"""The bench and the origin: never counted."""


def processes() -> list[int]:
    """Return every process of this measurement, ours included."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def find_client(pid_inside: int) -> int:
    """Return the pid here of a client that knows itself by a pid of its own namespace."""
    for pid in processes():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        is_client = len(command) > 2 and command[1].endswith(b"load.py") and command[2] == b"client"
        if is_client and int(status.split("NSpid:")[1].split("\n")[0].split()[-1]) == pid_inside:
            return pid
    raise Failed("the client is not among the processes of this namespace")


def cpu_seconds(client: Client) -> float:
    """Return the processor time of everything but bench, origin and client, children that ended included."""
    return sum(ticks(pid) for pid in processes() if pid not in ours and pid != client.host_pid) / TICKS


def ticks(pid: int) -> int:
    """Return one process's own and its reaped children's ticks."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[11:15])


def memory_kb(client: Client) -> int:
    """Return the proportional set size of everything but bench, origin and client."""
    return sum(pss_kb(pid) for pid in processes() if pid not in ours and pid != client.host_pid)


def pss_kb(pid: int) -> int:
    """Return one process's proportional set size."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def end_leftovers() -> None:
    """Kill what a peer left behind: some leave bridges and even the command running."""
    for pid in processes():
        if pid not in ours and os.getpid() == 1:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def require_seal() -> None:
    """Refuse to run where a packet could leave the machine."""
    names = {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    if names - {"lo"} or os.getpid() != 1:
        sys.exit(f"bench: start me with bench/run; I am process {os.getpid()} and see {sorted(names)}")
