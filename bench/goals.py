"""The numbers to reach, beside what this run reached. The goals are those of the design, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Row = dict[str, Any]


class Goal(NamedTuple):
    """One line to reach.

    Attributes:
        what: In plain words.
        limit: The number to reach.
        is_least: True if more is better.
        part: Key of the results.
        row: Name of the row in that part.
        key: Name of the reading, or how to get it from the row and the whole part.
    """

    what: str
    limit: float
    is_least: bool
    part: str
    row: str
    key: str | Callable[[Row, list[Row]], float]


def beyond_direct(row: Row, rows: list[Row]) -> float:
    """Return what a single connection waits longer than direct, at the 99th percentile."""
    direct = next(other for other in rows if other["name"] == "direct")
    return float(row["alone_p99_ms"] - direct["alone_p99_ms"])


def flatness(row: Row, rows: list[Row]) -> float:
    """Return how much slower 100,000 rules are than 10."""
    return float(rows[0]["per_s"] / row["per_s"])


LAB_ANSWER = "answer, 30 learners, one a second each"
INSIDE, PROXY = "stockade, transparent", "stockade, its proxy entry"
GOALS = (
    Goal("cold start, ms", 100, False, "start", "stockade run -- true", "median_ms"),
    Goal("tunnels/s inside, ratio to direct", 0.35, True, "path", INSIDE, "tunnels_ratio"),
    Goal("bulk inside, ratio to direct", 0.6, True, "path", INSIDE, "bulk_ratio"),
    Goal("proxy CPU s per GB", 0.6, False, "path", INSIDE, "cpu_s_per_gb"),
    Goal("tunnels/s as a plain proxy, ratio", 0.5, True, "path", PROXY, "tunnels_ratio"),
    Goal("added latency of one connection, p99 ms", 1.0, False, "path", INSIDE, beyond_direct),
    Goal("KB per idle tunnel", 8, False, "path", INSIDE, "kb_per_tunnel"),
    Goal("decisions: 10 rules ÷ 100,000 rules", 1.5, False, "engine", "100,000", flatness),
    Goal("durable records/s in groups of 100", 20_000, True, "ledger", "100", "per_s"),
    Goal("lab: first paint, worst ms", 1000, False, "lab", "first paint, nothing cached", "max_ms"),
    Goal("lab: an answer, 30 learners, p99 ms", 100, False, "lab", LAB_ANSWER, "p99_ms"),
    Goal("lab: run it, warm, p99 ms", 1000, False, "lab", "run it, warm", "p99_ms"),
)
FLOOR = (
    ("cold start, ms", "start", "stockade run -- true", "median_ms", ("codex, through npm", "srt"), False),
    (
        "tunnels/s inside",
        "path",
        INSIDE,
        "tunnels_ratio",
        ("codex, through its bridge", "srt, through socat"),
        True,
    ),
    ("bulk inside", "path", INSIDE, "bulk_ratio", ("codex, through its bridge", "srt, through socat"), True),
)
"""Ahead of codex and srt: the least that counts."""


def compare_goals(results: dict[str, Any]) -> list[list[str]]:
    """Return a table: goal, limit, reached, whether; of the parts that this run measured."""
    cells = [["goal", "to reach", "reached", ""]]
    for goal in (goal for goal in GOALS if goal.part in results):
        rows = results.get(goal.part)
        row = find_row(rows, goal.row)
        sign = "≥" if goal.is_least else "≤"
        value = None if row is None else read(goal.key, row, rows or [])
        is_met = value is not None and (value >= goal.limit if goal.is_least else value <= goal.limit)
        reached = "not measured" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
        cells.append([goal.what, f"{sign} {goal.limit:,}", reached, "yes" if is_met else "no"])
    return cells + list(compare_floor(results))


def compare_floor(results: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the comparison with each peer that has to be left behind."""
    for what, part, row_name, key, others, is_more_better in FLOOR:
        if part not in results:
            continue
        mine = find_row(results.get(part), row_name)
        for name in others:
            theirs = find_row(results.get(part), name)
            if mine is None or theirs is None:
                yield [f"{what}: ahead of {name}", "", "not measured", "no"]
                continue
            is_ahead = mine[key] > theirs[key] if is_more_better else mine[key] < theirs[key]
            sign = ">" if is_more_better else "<"
            figures = f"{mine[key]:.3g}", f"{sign} {theirs[key]:.3g}"
            yield [f"{what}: ahead of {name}", figures[1], figures[0], "yes" if is_ahead else "no"]


def find_row(rows: Any, name: str) -> Row | None:
    """Return a row that was measured, by its name, its number of rules or its group."""
    for row in rows if isinstance(rows, list) else []:
        names = {row.get("name"), f"{row.get('rules', -1):,}", str(row.get("group"))}
        if name in names and "missing" not in row:
            return dict(row)
    return None


def read(key: str | Callable[[Row, list[Row]], float], row: Row, rows: list[Row]) -> float | None:
    """Return one reading."""
    return row.get(key) if isinstance(key, str) else key(row, rows)
