"""`stockade lab`: learn the egress call on real traffic, and what belongs to its packs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    from stockade.cli import lab_check, lab_verify

    parser: argparse.ArgumentParser = subparsers.add_parser(
        "lab",
        help="learn the egress call on real traffic",
        description="Learn to call allow, proxy+log or deny on what executors really try. Without an action, "
        "serve the lab's pages on this machine alone (127.0.0.1), print their address on a line of its own, "
        "and open a browser. Ctrl-C or SIGTERM ends it; it is meant to end so, and the exit code is 0.",
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="listen on this port (default: any free one)"
    )
    parser.add_argument("--no-open", action="store_true", help="print the address and open no browser")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="keep the learners' progress here (default: $XDG_DATA_HOME/stockade/lab)",
    )
    parser.add_argument(
        "--pack",
        dest="own_pack",
        type=Path,
        metavar="PACK",
        help="play this pack.yaml instead of the shipped event bank; its progress is kept apart",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    lab_check.add_parser(actions)
    lab_verify.add_parser(actions)


def run(args: argparse.Namespace) -> int:
    if args.action == "check":
        from stockade.cli import lab_check

        return lab_check.run(args)
    if args.action == "verify":
        from stockade.cli import lab_verify

        return lab_verify.run(args)
    from stockade.lab.web.serve import serve_lab

    return serve_lab(args.port, args.data, args.own_pack, may_open=not args.no_open)
