"""``stockade phase``: move running rooms to their next phase."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stockade.vocabulary import Phase


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "phase",
        help="move a running room to its next phase",
        description="Move a running room to another phase. Phases go forward only, unless --reopen is given, "
        "which is recorded.",
    )
    parser.add_argument("phase", choices=[str(p) for p in Phase], help="the phase to go to")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="shelf on which to look for the run")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--run", default="last", metavar="ID", help="run to move (default: the last one that runs)"
    )
    which.add_argument("--all", action="store_true", help="every open run on the shelf")
    parser.add_argument("--reopen", action="store_true", help="go back to an earlier phase; recorded")


def run(args: argparse.Namespace) -> int:
    from stockade.errors import HostError
    from stockade.ledger.shelf import find_running, list_runs
    from stockade.ledger.store import default_shelf
    from stockade.run.control import ask_run

    shelf = args.ledger or default_shelf()
    request = {"do": "phase", "phase": args.phase, "reopen": args.reopen}
    if not args.all:
        run_id = find_running(shelf, args.run)
        print(f"{run_id}: {ask_run(run_id, request)['phase']}")
        return 0
    moved = 0
    for run_id in list_runs(shelf):
        try:
            print(f"{run_id}: {ask_run(run_id, request)['phase']}")
        except HostError:
            continue  # not open any more
        moved += 1
    if not moved:
        raise HostError("no-open-run", f"no run of {shelf} is open")
    return 0
