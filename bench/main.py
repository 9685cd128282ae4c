"""`bench/run`: fetch the peers, then measure everything inside a sealed namespace."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import execs
import path
import peers
import report
import rig
import start

FULL = path.Size(rounds=3, concurrency=32, seconds=5, bulk_bytes=4_000_000_000, idle_tunnels=1000)
QUICK = path.Size(rounds=3, concurrency=32, seconds=1, bulk_bytes=500_000_000, idle_tunnels=1000)


def main() -> None:
    """Install outside the seal, measure inside, print and write what came out."""
    options = parse_options()
    if options.install:
        peers.install_all()
        return
    rig.require_seal()
    results: dict[str, Any] = {"machine": report.machine_facts(), "quick": options.quick}
    results |= {"versions": peers.find_all(), "missing": peers.missing}
    folder = Path(tempfile.mkdtemp(prefix="stockade-bench-", dir="/var/tmp"))
    folder.chmod(0o777)
    try:
        peers.write_configurations(folder, rig.ORIGIN_PORT)
        results |= {part: measure(part, folder, options) for part in options.parts}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    out = rig.HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "latest.json").write_text(json.dumps(results, indent=1))
    (out / "latest.md").write_text(report.markdown(results))
    if options.publish:
        report.publish(results, rig.HERE.parent / "docs/benchmarks.md")
    print(report.text(results))


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under three minutes; noisier")
    parser.add_argument("--only", help="of the data path, only rows whose name has this in it (and direct)")
    parser.add_argument("--parts", nargs="+", choices=report.PARTS, default=report.PARTS)
    parser.add_argument("--publish", action="store_true", help="write the tables into docs/benchmarks.md")
    parser.add_argument("--install", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(part: str, folder: Path, options: argparse.Namespace) -> Any:
    """Do one part of the measurement."""
    if part == "start":
        return start.measure_starts(folder, 7 if options.quick else 15)
    if part == "exec":
        return execs.measure_execs(folder, 3 if options.quick else 7, 100 if options.quick else 300)
    if part == "path":
        with rig.origin():
            return path.measure_path(folder, QUICK if options.quick else FULL, options.only)
    return measure_ours(part, folder, options.quick)


def measure_ours(part: str, folder: Path, is_quick: bool) -> Any:
    """Run a measurement that imports Stockade in a process of its own, so that it cannot disturb the rest."""
    environment = {**os.environ, "BENCH_QUICK": "1" if is_quick else ""}
    command = [sys.executable, str(rig.HERE / f"{part}.py"), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return {"missing": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
