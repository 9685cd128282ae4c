"""`stockade doctor`: what this host can enforce, found out by trying, and what to install."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockade.sandbox.trial import TrialResult

HOST_CANNOT = 3


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="say what this host can enforce, by trying",
        description="Try each thing that a contained run needs, in throw-away namespaces.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 if everything that is needed works, else 3."""
    from stockade.sandbox.limit_trial import LIMIT_TRIALS
    from stockade.sandbox.seal_trial import SEAL_TRIALS
    from stockade.sandbox.trial import TRIALS, WHOLE_START, run_trials

    results = run_trials((*TRIALS, *SEAL_TRIALS, WHOLE_START, *LIMIT_TRIALS))
    can_run = all(result.works for result in results if result.is_needed)
    if args.json:
        import msgspec

        report = {"can_run": can_run, "trials": msgspec.to_builtins(results)}
        print(msgspec.json.encode(report).decode())
    else:
        print("\n".join(report_lines(results)))
        verdict = "a contained run works here" if can_run else "no contained run is possible here"
        print(f"stockade doctor: {verdict}", file=sys.stderr)
    return 0 if can_run else HOST_CANNOT


def report_lines(results: list[TrialResult]) -> list[str]:
    """One line a trial; for what does not work, what is lost and how to get it below."""
    lines = []
    for result in results:
        state = "ok" if result.works else "MISSING" if result.is_needed else "absent"
        lines.append(f"{state:8} {result.name:16} {result.detail}")
        if not result.works:
            lines.append(f"{'':8} {'':16} lost: {result.lost}")
            lines.append(f"{'':8} {'':16} to get it: {result.remedy}")
    return lines
