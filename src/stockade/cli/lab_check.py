"""`stockade lab check`: is each key of a scenario pack what the engine says and what really happens?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


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
    from stockade.errors import InternalError

    raise InternalError("not-built", "lab check is being built")
