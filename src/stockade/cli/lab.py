"""`stockade lab`: learn the egress call on real traffic, and what belongs to its packs."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    from stockade.cli import lab_check, lab_verify

    parser: argparse.ArgumentParser = subparsers.add_parser(
        "lab",
        help="learn the egress call on real traffic",
        description="Learn to call allow, proxy+log or deny on what executors really try.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    lab_check.add_parser(actions)
    lab_verify.add_parser(actions)
    parser.set_defaults(lab_parser=parser)


def run(args: argparse.Namespace) -> int:
    if args.action == "check":
        from stockade.cli import lab_check

        return lab_check.run(args)
    if args.action == "verify":
        from stockade.cli import lab_verify

        return lab_verify.run(args)
    args.lab_parser.print_help(sys.stderr)
    return 2
