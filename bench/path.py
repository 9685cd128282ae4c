"""The data path: tunnels, bulk and idle memory, every contestant once per round, direct first."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

import peers
import rig
from subjects import SUBJECTS, Subject, running


class Size(NamedTuple):
    """How much is done, so that a run is bounded in count and time."""

    rounds: int
    concurrency: int
    seconds: float
    bulk_bytes: int
    idle_tunnels: int


def measure_path(folder: Path, size: Size, only: str | None) -> list[dict[str, Any]]:
    """Return one row per contestant, with medians over the rounds."""
    chosen = [subject for subject in SUBJECTS if subject.view == "direct" or not only or only in subject.name]
    readings: dict[str, list[dict[str, float]]] = {subject.name: [] for subject in chosen}
    problems = {row.name: peers.missing[row.peer] for row in chosen if row.peer in peers.missing}
    for number in range(size.rounds):
        for subject in chosen:
            if subject.name in problems:
                continue
            print(f"bench: round {number + 1}, {subject.name}", file=sys.stderr)
            try:
                reading = measure_subject(subject, folder, size, is_last=number == size.rounds - 1)
                readings[subject.name].append(reading)
            except rig.Failed as problem:
                problems[subject.name] = str(problem)
    baseline = readings["direct"]
    return [path_row(row, readings[row.name], baseline, problems.get(row.name)) for row in chosen]


def measure_subject(subject: Subject, folder: Path, size: Size, is_last: bool) -> dict[str, float]:
    """Measure one contestant once; memory only in the last round, on a proxy that has worked."""
    with running(subject, folder) as client:
        reading = {**measure_alone(client, size), **measure_tunnels(client, size)}
        reading |= measure_bulk(client, size)
        if is_last:
            reading |= measure_memory(client, size)
    return reading


def measure_alone(client: rig.Client, size: Size) -> dict[str, float]:
    """Time tunnels one after the other: what a single connection waits, without a queue."""
    answer = client.ask(f"tunnels 1 {size.seconds / 4}")
    return {"alone_p50_ms": answer["p50_ms"], "alone_p99_ms": answer["p99_ms"]}


def measure_tunnels(client: rig.Client, size: Size) -> dict[str, float]:
    """Count short tunnels, and what they cost everybody but the client."""
    before = rig.cpu_seconds(client)
    answer = client.ask(f"tunnels {size.concurrency} {size.seconds}")
    spent = rig.cpu_seconds(client) - before
    if not answer["tunnels"]:
        raise rig.Failed(f"no tunnel worked, {answer['errors']} failed: {client.last_words()}")
    return {
        "tunnels_per_s": answer["tunnels"] / answer["seconds"],
        "p50_ms": answer["p50_ms"],
        "p99_ms": answer["p99_ms"],
        "errors": answer["errors"],
        "cpu_s_per_1000": spent / answer["tunnels"] * 1000,
    }


def measure_bulk(client: rig.Client, size: Size) -> dict[str, float]:
    """Time one long download. Some peers lose the end of it, which is an error and no reason to stop."""
    before = rig.cpu_seconds(client)
    answer = client.ask(f"bulk {size.bulk_bytes}")
    spent = rig.cpu_seconds(client) - before
    if answer["bytes"] < 0.9 * size.bulk_bytes:
        raise rig.Failed(f"the download ended after {answer['bytes']} bytes")
    return {
        "cut_downloads": answer["errors"],
        "gbit_per_s": answer["bytes"] * 8 / answer["seconds"] / 1e9,
        "cpu_s_per_gb": spent / answer["bytes"] * 1e9,
    }


def measure_memory(client: rig.Client, size: Size) -> dict[str, float]:
    """Compare memory before and with many open tunnels. User memory: kernel buffers are not in it."""
    before = rig.memory_kb(client)
    kept = client.ask(f"hold {size.idle_tunnels}")["open"]
    during = rig.memory_kb(client)
    client.ask("release")
    return {"idle_mb": before / 1024, "kb_per_tunnel": (during - before) / max(kept, 1), "tunnels_kept": kept}


def path_row(
    subject: Subject, readings: list[dict[str, float]], baseline: list[dict[str, float]], problem: str | None
) -> dict[str, Any]:
    """Put the readings of all rounds into one row. A ratio is the median of the rounds' own ratios."""
    row: dict[str, Any] = {"name": subject.name, "view": subject.view}
    if not readings:
        return {**row, "missing": problem or "not run"}
    for key in (
        "alone_p50_ms",
        "alone_p99_ms",
        "tunnels_per_s",
        "p50_ms",
        "p99_ms",
        "gbit_per_s",
        "cpu_s_per_1000",
        "cpu_s_per_gb",
    ):
        row[key] = statistics.median(reading[key] for reading in readings)
    for key, name in (("tunnels_per_s", "tunnels_ratio"), ("gbit_per_s", "bulk_ratio")):
        pairs = zip(readings, baseline, strict=False)
        row[name] = statistics.median(mine[key] / theirs[key] for mine, theirs in pairs)
    if subject.view == "direct" or not subject.is_cpu_whole:
        row["cpu_s_per_1000"] = row["cpu_s_per_gb"] = None
    row["errors"] = sum(reading["errors"] + reading["cut_downloads"] for reading in readings)
    row |= {key: readings[-1].get(key) for key in ("idle_mb", "kb_per_tunnel", "tunnels_kept")}
    return {**row, "rounds": readings, **({"problem": problem} if problem else {})}
