"""What a seal costs a command that runs under it: each program it starts, and each system call it makes.

The same small C program (`loop.c`) runs inside every contestant and starts another one that ends
at once, by 1, 8 and 32 callers at a time. Stockade records each of these commands before it runs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

import peers
import rig
from subjects import STOCKADE, codex_command, codex_environment, srt_command

CALLERS = (1, 8, 32)
CALLS = ("getpid", "openat+close", "mmap+munmap")
NOTHING = "int main(void) { return 0; }\n"
POLICY = """\
version: 1
exec:
  allow: [./loop, ./nothing]
"""
ANY = "version: 1\nexec: {mode: any}\n"
BARE = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]

Contestant = tuple[str | None, list[str], dict[str, str], bool]


def contestants(folder: Path, work: Path) -> dict[str, Contestant]:
    """Return row -> (peer, command up to what runs in it, environment, whether that is one string)."""
    run = [str(STOCKADE), "run", "-q", "--ledger", str(folder / "ledger"), "-p"]
    listed, any_program = str(work / "policy.yaml"), str(work / "any.yaml")
    sandlock = [str(peers.SANDLOCK), str(folder / "sandlock_run.py"), str(work)]
    return {
        "direct": (None, [], {}, False),
        "bubblewrap alone": ("bubblewrap", BARE, {}, False),
        "stockade": ("stockade", [*run, listed, "--"], {}, False),
        "stockade, mode any": ("stockade", [*run, any_program, "--"], {}, False),
        "stockade, no eye": ("stockade", [*run, listed, "--without-layer=notify", "--"], {}, False),
        "codex": ("codex", codex_command(), codex_environment(), False),
        "srt": ("srt", srt_command(folder), {}, True),
        "sandlock": ("sandlock", sandlock, {}, False),
    }


def measure_execs(folder: Path, rounds: int, count: int) -> list[dict[str, Any]]:
    """Measure every contestant `rounds` times, in turn; a ratio is the median over the rounds."""
    work = make_programs(folder)
    rows = contestants(folder, work)
    readings: dict[str, list[dict[str, float]]] = {name: [] for name in rows}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for name, contestant in rows.items():
            if name in failed or contestant[0] in peers.missing:
                continue
            try:
                readings[name].append(read_all(contestant, work, count))
            except rig.Failed as problem:
                failed[name] = str(problem)
            rig.end_leftovers()
    return [
        exec_row(name, peer, readings[name], readings["direct"], failed.get(name))
        for name, (peer, *_) in rows.items()
    ]


def make_programs(folder: Path) -> Path:
    """Compile what runs inside, in a folder that every sandbox shows."""
    work = folder / "execs"
    work.mkdir(exist_ok=True)
    (work / "nothing.c").write_text(NOTHING)
    # Static, so that what is measured is the start of a program and not the search for its libraries.
    for source, name in ((rig.HERE / "loop.c", "loop"), (work / "nothing.c", "nothing")):
        subprocess.run(["cc", "-O2", "-static", "-o", str(work / name), str(source)], check=True)
    (work / "policy.yaml").write_text(POLICY)
    (work / "any.yaml").write_text(ANY)
    return work


def read_all(contestant: Contestant, work: Path, count: int) -> dict[str, float]:
    """Run the loop in one contestant: commands by each number of callers, then system calls."""
    found = {}
    for callers in CALLERS:
        words = ["execs", str(count * min(callers, 4)), str(callers), "./nothing"]
        found |= {f"{name}_{callers}": value for name, value in run_loop(contestant, work, words).items()}
    return found | run_loop(contestant, work, ["calls"])


def run_loop(contestant: Contestant, work: Path, words: list[str]) -> dict[str, float]:
    _peer, start, environment, is_one_string = contestant
    loop = ["./loop", *words]
    command = [*start, " ".join(loop)] if is_one_string else [*start, *loop]
    done = subprocess.run(
        command,
        cwd=work,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise rig.Failed(f"exit {done.returncode}: {said[-1][:200] if said else ''}")
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: float(line[1]) for line in lines if len(line) == 2}


def exec_row(
    name: str,
    peer: str | None,
    readings: list[dict[str, float]],
    direct: list[dict[str, float]],
    problem: str | None,
) -> dict[str, Any]:
    """Return one row of the table."""
    if not readings:
        return {"name": name, "missing": problem or peers.missing.get(peer or "", "not run")}
    row: dict[str, Any] = {"name": name}
    for key in readings[0]:
        row[key] = statistics.median(reading[key] for reading in readings)
        pairs = zip(readings, direct, strict=False)
        row[f"{key}_ratio"] = statistics.median(mine[key] / theirs[key] for mine, theirs in pairs)
    row["added_us"] = statistics.median(
        mine["us_1"] - theirs["us_1"] for mine, theirs in zip(readings, direct, strict=False)
    )
    return row
