"""Tables for people: text for the terminal, Markdown for docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from goals import compare_goals

PARTS = ("start", "exec", "path", "engine", "ledger", "lab")
Column = tuple[str, Callable[[dict[str, Any]], Any]]


def machine_facts() -> dict[str, str]:
    """Say on what this was measured."""
    release = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    memory = Path("/proc/meminfo").read_text().split()[1]
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":")[1].strip() for line in cpuinfo if "model name" in line]
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    return {
        "system": f"{release}, Linux {platform.release()}",
        "processors": f"{os.cpu_count()} × {models[0] if models else platform.machine()}",
        "memory": f"{int(memory) / 1024 / 1024:.0f} GB",
        "load before": f"{os.getloadavg()[0]:.1f} (0 is quiet)",
        "user": "root" if os.geteuid() == 0 else "ordinary user",
        "commit": commit or "unknown",
        "python": platform.python_version(),
    }


def number(key: str, pattern: str) -> Callable[[dict[str, Any]], str]:
    """Return a reader of one number of a row."""
    return lambda row: "n/m" if row.get(key) is None else pattern.format(row[key])


START: list[Column] = [
    ("start, `true` inside", lambda row: row["name"]),
    ("median ms", number("median_ms", "{:.1f}")),
    ("ratio to bubblewrap", number("ratio", "{:.1f}")),
    ("min–max", lambda row: f"{row['min_ms']:.0f}–{row['max_ms']:.0f}"),
]
EXEC: list[Column] = [
    ("starting a program", lambda row: row["name"]),
    ("µs, 1 caller", number("us_1", "{:,.0f}")),
    ("added µs", number("added_us", "{:,.0f}")),
    ("ratio", number("us_1_ratio", "{:.2f}")),
    ("8 callers: /s", number("per_s_8", "{:,.0f}")),
    ("ratio", number("per_s_8_ratio", "{:.2f}")),
    ("32 callers: /s", number("per_s_32", "{:,.0f}")),
    ("ratio", number("per_s_32_ratio", "{:.2f}")),
    ("getpid ns", number("getpid", "{:.0f}")),
    ("openat+close ns", number("openat+close", "{:,.0f}")),
    ("ratio", number("openat+close_ratio", "{:.2f}")),
    ("mmap+munmap ratio", number("mmap+munmap_ratio", "{:.2f}")),
]
PATH: list[Column] = [
    ("", lambda row: row["name"]),
    ("tunnels/s", number("tunnels_per_s", "{:,.0f}")),
    ("ratio", number("tunnels_ratio", "{:.2f}")),
    ("p50 ms", number("p50_ms", "{:.1f}")),
    ("p99 ms", number("p99_ms", "{:.1f}")),
    ("alone p50", number("alone_p50_ms", "{:.2f}")),
    ("p99", number("alone_p99_ms", "{:.2f}")),
    ("CPU s per 1,000", number("cpu_s_per_1000", "{:.3f}")),
    ("Gbit/s", number("gbit_per_s", "{:.1f}")),
    ("ratio", number("bulk_ratio", "{:.2f}")),
    ("CPU s per GB", number("cpu_s_per_gb", "{:.2f}")),
    ("idle MB", number("idle_mb", "{:.0f}")),
    ("KB per tunnel", number("kb_per_tunnel", "{:.1f}")),
    ("tunnels kept", number("tunnels_kept", "{:,.0f}")),
    ("errors", number("errors", "{:.0f}")),
]
ENGINE: list[Column] = [
    ("rules", number("rules", "{:,}")),
    ("load s", number("load_s", "{:.2f}")),
    ("compile s", number("compile_s", "{:.2f}")),
    ("slowest first decision ms", number("first_ms", "{:.1f}")),
    ("decisions/s", number("per_s", "{:,.0f}")),
    ("p50 µs", number("p50_us", "{:.1f}")),
    ("p99 µs", number("p99_us", "{:.1f}")),
]
LEDGER: list[Column] = [
    ("records in a group", number("group", "{:,}")),
    ("durable records/s", number("per_s", "{:,.0f}")),
    ("ms per group, p50", number("p50_ms", "{:.2f}")),
    ("p99", number("p99_ms", "{:.2f}")),
]
LAB: list[Column] = [
    ("the lab", lambda row: row["name"]),
    ("p50 ms", number("p50_ms", "{:,.1f}")),
    ("p99 ms", number("p99_ms", "{:,.1f}")),
    ("worst ms", number("max_ms", "{:,.1f}")),
    ("requests/s", number("per_s", "{:,.0f}")),
    ("MB", number("mb", "{:.0f}")),
]


def sections(results: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return title and table of every part that was measured."""
    found = []
    goals = compare_goals(results)
    if len(goals) > 1:
        found.append(("Goals of the lab" if set(results) & set(PARTS) == {"lab"} else "Goals", goals))
    if "start" in results:
        found.append(("Cold start", table(START, results["start"])))
    if "exec" in results:
        found.append(("Commands and system calls under the seal", table(EXEC, results["exec"])))
    if "path" in results:
        for title, view in (("As the sandboxed client sees it", "inside"), ("As a plain proxy", "proxy")):
            rows = [row for row in results["path"] if row["view"] in ("direct", view)]
            found.append((title, table(PATH, rows)))
    for part, title, columns in (
        ("engine", "Decisions", ENGINE),
        ("ledger", "Ledger", LEDGER),
        ("lab", "The lab", LAB),
    ):
        if part in results:
            rows = results[part] if isinstance(results[part], list) else [{"name": part, **results[part]}]
            found.append((title, table(columns, rows)))
    return found


def table(columns: Sequence[Column], rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return cells, the head first. A contestant that is missing keeps its row and says why."""
    cells = [[head for head, _ in columns]]
    for row in rows:
        if "missing" in row:
            cells.append([row["name"], f"not measured: {row['missing']}"])
        else:
            cells.append([str(read(row)) for _, read in columns])
            if "problem" in row:
                cells.append(["", f"then stopped: {row['problem']}"])
    return cells


def text(results: dict[str, Any]) -> str:
    """Return everything as aligned columns."""
    lines = []
    for title, cells in sections(results):
        whole = [row for row in cells if len(row) == len(cells[0])]
        widths = [max(len(row[index]) for row in whole) for index in range(len(cells[0]))]
        widths[0] = max(len(row[0]) for row in cells)
        lines += ["", title, ""]
        for row in cells:
            first, *rest = row
            if len(row) == len(cells[0]):
                rest = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
            lines.append("  " + "  ".join([first.ljust(widths[0]), *rest]))
    return "\n".join(lines)


def markdown(results: dict[str, Any]) -> str:
    """Return everything as Markdown tables."""
    facts = {**results["machine"], **results["versions"]}
    lines = ["; ".join(f"{name} {fact}" for name, fact in facts.items())]
    if results["quick"]:
        lines.append("\n**A quick run: noisier than a full one.**")
    for title, cells in sections(results):
        lines += ["", f"### {title}", "", row_of(cells[0]), row_of(["---"] * len(cells[0]))]
        lines += [row_of(row + [""] * (len(cells[0]) - len(row))) for row in cells[1:]]
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- figures: bench/run --publish writes them -->", "<!-- end of figures -->"
# The lab has no peers to stand beside, so its figures may come from a run of their own.
LAB_BEGIN, LAB_END = "<!-- figures of the lab: the same, or with --parts lab -->", "<!-- end of the lab's -->"


def publish(results: dict[str, Any], page: Path) -> None:
    """Put the tables of this run between the marks of a page."""
    common = {key: results[key] for key in ("machine", "versions", "quick")}
    lab = {"lab": results["lab"]} if "lab" in results else {}
    rest = {key: value for key, value in results.items() if key not in (*common, "lab", "missing")}
    for begin, end, parts in ((BEGIN, END, rest), (LAB_BEGIN, LAB_END, lab)):
        if parts:
            before, _, old = page.read_text().partition(begin)
            _, _, after = old.partition(end)
            page.write_text(f"{before}{begin}\n\n{markdown({**common, **parts})}\n{end}{after}")


def row_of(cells: list[str]) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"
