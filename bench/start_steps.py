"""Where the time of a start goes, step by step: the sandbox with its seal, without gateway and ledger.

Usage (in a sealed namespace): unshare -n .venv/bin/python bench/start_steps.py [RUNS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from stockade.reactor import READ, Reactor
from stockade.sandbox.eye import Eye
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import Sandbox


def start_once(workspace: Path, cache: Path) -> dict[str, float]:
    """One start of `true`; milliseconds since the build began for each step, and the plan's own cost."""
    began = time.monotonic()
    request = SandboxRequest(
        argv=("true",),
        workspace=workspace,
        caller_environment=dict(os.environ),
        run_id=f"bench-{os.urandom(4).hex()}",
        cache_folder=str(cache),
    )
    plan = plan_sandbox(request, probe_host(request))
    planned = (time.monotonic() - began) * 1000
    reactor = Reactor()
    sandbox = Sandbox(plan, reactor)
    sandbox.build()
    eye = sandbox.eye
    assert eye is not None
    reactor.watch(eye.fileno(), READ, lambda _events: let_go_on(eye))
    sandbox.go(lambda _how: reactor.stop())
    reactor.run()
    sandbox.close()
    reactor.close()
    return {"probe and plan": planned, **sandbox.step_times_ms}


def let_go_on(eye: Eye) -> None:
    """Without gateway and ledger nobody judges or records, so each command goes on at once."""
    sighting = eye.receive()
    if sighting is not None:
        eye.let_go_on(sighting)


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 40
    with tempfile.TemporaryDirectory() as folder:
        workspace, cache = Path(folder) / "workspace", Path(folder) / "cache"
        workspace.mkdir()
        start_once(workspace, cache)  # not counted: it searches the library folders, which is then remembered
        rows = [start_once(workspace, cache) for _ in range(runs)]
    print(f"{runs} starts, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, milliseconds")
    for step in rows[0]:
        values = sorted(row[step] for row in rows)
        print(f"{step:18} best {values[0]:6.1f}   median {values[runs // 2]:6.1f}")


if __name__ == "__main__":
    main()
