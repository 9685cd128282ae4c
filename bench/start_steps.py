"""Where the time of a start goes, step by step: the sandbox alone, without gateway and ledger.

Usage (in a sealed namespace): unshare -n .venv/bin/python bench/start_steps.py [RUNS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from stockade.reactor import Reactor
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import Sandbox


def start_once(workspace: Path) -> dict[str, float]:
    """One start of `true`; milliseconds since the build began for each step, and the plan's own cost."""
    began = time.monotonic()
    request = SandboxRequest(argv=("true",), workspace=workspace, caller_environment=dict(os.environ))
    plan = plan_sandbox(request, probe_host(request))
    planned = (time.monotonic() - began) * 1000
    reactor = Reactor()
    sandbox = Sandbox(plan, reactor)
    sandbox.build()
    sandbox.go(lambda _how: reactor.stop())
    reactor.run()
    sandbox.close()
    reactor.close()
    return {"probe and plan": planned, **sandbox.step_times_ms}


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 40
    with tempfile.TemporaryDirectory() as folder:
        rows = [start_once(Path(folder)) for _ in range(runs)]
    print(f"{runs} starts, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, milliseconds")
    for step in rows[0]:
        values = sorted(row[step] for row in rows)
        print(f"{step:18} best {values[0]:6.1f}   median {values[runs // 2]:6.1f}")


if __name__ == "__main__":
    main()
