"""Cold start: the whole command from nothing to its end, `true` inside, one permitted name or none.

Stockade remembers from run to run which files of the library folders are programs. Its first row
is a first run, which has to look; the others are every run after that.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import peers
import rig
from subjects import STOCKADE, codex_command, codex_environment, srt_command

TRUE = "/bin/true"
BARE = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", TRUE]

FORGOTTEN = "no-cache"
"""A folder for what is remembered that is emptied before each run."""
UNSEALED = [f"--without-layer={name}" for name in ("mounts", "memfd", "landlock", "seccomp", "notify")]


def contestants(folder: Path) -> dict[str, tuple[str | None, list[str], dict[str, str]]]:
    """Return row -> (peer, command, environment)."""
    codex = codex_environment()
    state = {"XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    forgetful = {"XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder / FORGOTTEN)}
    run = [str(STOCKADE), "run"]
    (folder / "coding.yaml").write_text("version: 1\ninclude: [exec/coding]\n")
    shim = [peers.which("node") or peers.node(), str(peers.CODEX_SHIM), *codex_command()[1:], TRUE]
    sandlock = [str(peers.SANDLOCK), str(folder / "sandlock_run.py"), "/work", TRUE]
    return {
        "true, no sandbox": (None, [TRUE], {}),
        "bubblewrap alone": ("bubblewrap", BARE, {}),
        "stockade, nothing remembered": ("stockade", [*run, "--", "true"], forgetful),
        "stockade run -- true": ("stockade", [*run, "--", "true"], state),
        "stockade, exec/coding": ("stockade", [*run, "-p", str(folder / "coding.yaml"), "--", "true"], state),
        "stockade, seal given up": ("stockade", [*run, *UNSEALED, "--", "true"], state),
        "codex, native binary": ("codex", [*codex_command(), TRUE], codex),
        "codex, through npm": ("codex", shim, codex),
        "srt": ("srt", [*srt_command(folder), TRUE], {}),
        "sandlock, python": ("sandlock", sandlock, {}),
    }


def measure_starts(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """Run every contestant `repeats` times, in turn, after one run that is not counted."""
    rows = contestants(folder)
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    times: dict[str, list[float]] = {name: [] for name in rows}
    failed: dict[str, str] = {}
    for repeat in range(repeats + 1):
        for name, (peer, command, environment) in rows.items():
            if name in failed or peer in peers.missing:
                continue
            shutil.rmtree(folder / FORGOTTEN, ignore_errors=True)
            try:
                seconds = time_command(command, environment, workspace)
            except rig.Failed as problem:
                failed[name] = str(problem)
                continue
            if repeat:
                times[name].append(seconds * 1e3)
            rig.end_leftovers()
    bare = times["bubblewrap alone"]
    return [start_row(name, peer, times[name], bare, failed.get(name)) for name, (peer, _, _) in rows.items()]


def time_command(command: list[str], environment: dict[str, str], workspace: Path) -> float:
    """Time one command from fork to exit, in an empty folder: Stockade looks through its workspace."""
    began = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=workspace,
        env={**os.environ, **environment},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise rig.Failed(f"exit {done.returncode}: {words[-1][:200] if words else ''}")
    return seconds


def start_row(
    name: str, peer: str | None, times: list[float], bare: list[float], problem: str | None
) -> dict[str, Any]:
    """Return one row of the table."""
    if not times:
        return {"name": name, "missing": problem or peers.missing.get(peer or "", "not run")}
    row = {"name": name, "median_ms": statistics.median(times), "min_ms": min(times), "max_ms": max(times)}
    if bare:
        row["ratio"] = statistics.median(mine / theirs for mine, theirs in zip(times, bare, strict=False))
    return row
