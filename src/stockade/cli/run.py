"""``stockade run``: parse the options, call `run.session`, print."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stockade.vocabulary import Identity, Phase

LAYERS = ("room", "mounts", "memfd", "landlock", "seccomp", "notify", "privileges")


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "run",
        help="run a command with default-deny egress",
        description="Run a command in a room whose only way out is the gateway. "
        "Without a policy everything outbound is denied, and the summary says how to allow what was tried.",
    )
    parser.add_argument(
        "-p", "--policy", type=Path, metavar="FILE", help="policy file (default: deny everything)"
    )
    parser.add_argument(
        "--phase", choices=[str(p) for p in Phase], default="work", help="phase of the run (default: work)"
    )
    parser.add_argument(
        "--identity",
        choices=[str(i) for i in Identity],
        default="agent",
        help="whose run it is (default: agent)",
    )
    parser.add_argument(
        "--ledger", type=Path, metavar="DIR", help="shelf of ledgers (default: the user's state folder)"
    )
    parser.add_argument(
        "--resolve",
        action="append",
        default=[],
        metavar="NAME=ADDR",
        help="use this address for this name instead of asking a resolver (may be repeated)",
    )
    parser.add_argument(
        "--read",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="file or folder that the command may read besides the view (may be repeated)",
    )
    parser.add_argument(
        "--write",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="folder that the command may write (may be repeated)",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="pass a variable to the command (may be repeated); otherwise it gets the usual few only",
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write a JSON report of the run to this file"
    )
    parser.add_argument(
        "--name-commands",
        action="store_true",
        help="record which command opened each connection, also of those let through (refusals always)",
    )
    parser.add_argument(
        "--debugging-pipe",
        action="store_true",
        help="standard input and output become the command's descriptors 3 and 4, as a browser that is "
        "driven from outside has them; its own output goes to standard error",
    )
    parser.add_argument(
        "--run-id",
        default="",
        metavar="ID",
        help="call the run so in the ledger (default: by time and chance)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    parser.add_argument("--json", action="store_true", help="with --dry-run: print all of it as one object")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary at the end")
    parser.add_argument(
        "--without-layer",
        action="append",
        default=[],
        choices=LAYERS,
        metavar="NAME",
        help=f"give one layer up; it is recorded (may be repeated): {', '.join(LAYERS[:-1])}",
    )
    parser.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="-- CMD...", help="the command and its arguments"
    )


def run(args: argparse.Namespace) -> int:
    from stockade.run.options import parse_options
    from stockade.run.start import run_contained

    return run_contained(parse_options(args))
