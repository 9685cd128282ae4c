"""How many records a second become durable, by the size of the group that waits together.

Run by `main.py` with a folder on the disk to be measured; prints rows as JSON. The group is
what the gateway has in flight at once: it appends that many attempts, and goes on when the
ledger has said of each that it is on the disk.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from stockade.ledger.record import new_run_id
from stockade.ledger.store import Ledger

GROUPS = (1, 10, 100, 1000)
ATTEMPT = {
    "verdict": "allow",
    "risk": "benign",
    "control": "allowlist-exact",
    "reason": "listed",
    "rule": "policy.yaml:3",
    "class": "approved-test",
    "phase": "work",
    "identity": "agent",
    "entry": "transparent",
    "protocol": "tcp",
    "name": "app.test",
    "address": "127.0.0.1",
    "port": 9000,
    "method": None,
    "path": None,
    "why": "app.test is listed for this port.",
    "policy": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}


def measure(shelf: Path, group: int, seconds: float) -> dict[str, float]:
    """Write groups for a while, each only after the one before is durable."""
    told: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    failures: list[Exception] = []
    run = new_run_id(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.urandom(4))
    ledger = Ledger.open(shelf, run, wake=told.put, on_failure=failures.append)
    ledger.append("run.opened", {}, lambda _seq: None)
    told.get(timeout=10)()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        durable: list[int] = []
        for _ in range(group):
            ledger.append("attempt", ATTEMPT, durable.append)
        while len(durable) < group:
            told.get(timeout=10)()
        times.append(time.perf_counter() - began)
    ledger.close()
    if failures:
        raise failures[0]
    return summary(group, times)


def summary(group: int, times: list[float]) -> dict[str, float]:
    """Return one row of the table."""
    times.sort()
    return {
        "group": group,
        "per_s": group * len(times) / sum(times),
        "p50_ms": statistics.median(times) * 1e3,
        "p99_ms": times[len(times) * 99 // 100] * 1e3,
    }


def main() -> None:
    """Measure every group size."""
    seconds = 0.7 if os.environ.get("BENCH_QUICK") else 3.0
    shelf = Path(sys.argv[1]) / "ledger-bench"
    json.dump([measure(shelf, group, seconds) for group in GROUPS], sys.stdout)


if __name__ == "__main__":
    main()
