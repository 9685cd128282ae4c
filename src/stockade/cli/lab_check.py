"""`stockade lab check`: is each key of a scenario pack what the engine says and what really happens?"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockade.lab.check import RowCheck
    from stockade.lab.live.client import LiveBench
    from stockade.lab.pack.pack import Pack
    from stockade.lab.pack.scenario import Scenario
    from stockade.policy.model import Policy


def add_parser(actions: Any) -> None:
    parser: argparse.ArgumentParser = actions.add_parser(
        "check",
        help="check the keys of a scenario pack by the engine and by a live run",
        description="Decide each scenario of a pack by the engine, then try those that can be tried for "
        "real, in a contained worker in a sealed internet of its own, and compare both with the key. "
        "Exit code 0: all agree; 2: the pack does not load, or a key differs; 3: this host cannot make the "
        "range; 4: something arrived that was refused.",
    )
    parser.add_argument(
        "pack", nargs="?", type=Path, metavar="PACK", help="a pack.yaml (default: the shipped event bank)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="only this scenario (may be repeated)"
    )
    parser.add_argument("--no-live", action="store_true", help="ask the engine alone; try nothing")
    parser.add_argument("--json", action="store_true", help="the result as one object")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of a pack and stop")


def run(args: argparse.Namespace) -> int:
    if args.schema:
        from stockade.lab.pack.schema import build_schema

        print(json.dumps(build_schema(), indent=2))
        return 0
    from stockade.lab.check import choose_rows, exit_code
    from stockade.lab.pack.load import load_pack
    from stockade.lab.pack.pack import shipped_bank

    named = args.pack or args.own_pack  # `lab check PACK` as well as `lab --pack PACK check`
    pack = shipped_bank() if named is None else load_pack(named)
    rows = choose_rows(pack, args.only)
    checked = _check(pack, rows, is_live=not args.no_live)
    code = exit_code(checked)
    if args.json:
        print(json.dumps(as_report(pack, checked, code)))
    else:
        print("\n".join(report_lines(pack, checked, is_live=not args.no_live)))
    return code


def _check(pack: Pack, rows: Sequence[Scenario], *, is_live: bool) -> list[RowCheck]:
    from stockade.cli.progress import Progress
    from stockade.lab.check import Standing, check_rows
    from stockade.lab.pack.scenario import Live

    live_card = _live_card(pack)
    tried = [one for one in rows if one.live is Live.YES] if is_live else []
    if not tried:
        return check_rows(pack, rows, live_card, None)
    bench = _open_bench(pack)
    progress = Progress(len(rows), sys.stderr)

    def tell(row: RowCheck) -> None:
        if row.standing in (Standing.DIFFERS, Standing.LEAKED):
            progress.say(f"{row.id}: {row.problems[0]}")
        progress.step(row.id)

    try:
        return check_rows(pack, rows, live_card, bench, tell)
    finally:
        progress.close()
        bench.close()


def _live_card(pack: Pack) -> Policy:
    from stockade.lab.live.card import write_live_card
    from stockade.policy.load import load_policy

    with tempfile.TemporaryDirectory(prefix="stockade-card-") as folder:
        return load_policy(write_live_card(pack.policy, pack.folder, Path(folder)))


def _open_bench(pack: Pack) -> LiveBench:
    from stockade.errors import HostError
    from stockade.lab.live.client import BenchState, LiveBench

    bench = LiveBench(pack)
    bench.start()
    if bench.wait_until_ready() is not BenchState.READY:
        why = bench.why or "the bench did not become ready in time"
        bench.close()
        raise HostError("no-bench", f"nothing can be tried here: {why}", "--no-live asks the engine alone")
    return bench


def report_lines(pack: Pack, rows: Sequence[RowCheck], *, is_live: bool) -> list[str]:
    """The result for people."""
    from stockade.lab.check import Standing

    counts = Counter(row.standing for row in rows)
    tried = sum(row.live is not None for row in rows)
    lines = [f"{pack.name}: {len(rows)} of {len(pack.scenarios)} scenarios, digest {pack.digest[:16]}"]
    waiting = [row for row in rows if row.waiting is not None]
    if waiting:
        lines.append(f"waiting for a control, not tried: {len(waiting)}")
        lines += [
            f"  {row.id:8} {row.waiting.control:22} {row.waiting.why}" for row in waiting if row.waiting
        ]
    missed = [row for row in rows if row.standing is Standing.NOT_TRIED and row.live is not None]
    lines += [f"not tried here: {row.id}: {row.live.why}" for row in missed if row.live]
    for row in rows:
        if row.problems:
            lines.append(f"{row.id}  {row.attempt}")
            lines += [f"    {problem}" for problem in row.problems]
    bad = counts[Standing.DIFFERS] + counts[Standing.LEAKED]
    agreeing = (
        f"agree with their keys: {len(rows) - bad} of {len(rows)}" if bad else "all agree with their keys"
    )
    how = f"tried for real: {tried}" if is_live else "nothing was tried for real"
    lines.append(f"{agreeing}; {how}" + (f"; different: {bad}" if bad else ""))
    return lines


def as_report(pack: Pack, rows: Sequence[RowCheck], code: int) -> dict[str, Any]:
    """The result for scripts."""
    import msgspec

    return {
        "pack": str(pack.file),
        "name": pack.name,
        "digest": pack.digest,
        "code": code,
        "standings": dict(Counter(row.standing.value for row in rows)),
        "rows": [msgspec.to_builtins(row) for row in rows],
    }
