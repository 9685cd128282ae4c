"""``stockade prove``: parse the options, run the proof, print."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from stockade.cli.run import LAYERS

if TYPE_CHECKING:
    from stockade.prove.technique import Technique
    from stockade.prove.trial import Judged

SUPPORTED_AT_LEAST = 60


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "prove",
        help="attack a contained worker and show what stops each attack",
        description="Try the attack catalogue in a sealed internet of its own, each attack without "
        "enforcement and with it, and judge by what arrived. No packet can leave this machine.",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the evidence record to this new folder"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="only this attack or group (may be repeated)",
    )
    parser.add_argument("--list", action="store_true", help="list the attacks and stop")
    parser.add_argument("--json", action="store_true", help="one object per line")
    parser.add_argument(
        "--ablate", action="store_true", help="try all again with each layer given up, and print the matrix"
    )
    parser.add_argument(
        "--without-layer",
        action="append",
        default=[],
        choices=LAYERS[:-1],
        metavar="NAME",
        help=f"give one layer up in all of them (may be repeated): {', '.join(LAYERS[:-1])}",
    )
    parser.add_argument("--no-browser", action="store_true", help="leave the attacks through the browser out")
    parser.add_argument(
        "--lanes", type=int, metavar="N", help="how many at a time (default: one a processor)"
    )
    parser.add_argument(
        "--range-only", action="store_true", help="open a shell in the range and attack nothing"
    )
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="[-- CMD...]", help="with --range-only")


def run(args: argparse.Namespace) -> int:
    if args.range_only:
        return _open_range(args.argv)
    from stockade.prove.technique import choose, load_catalogue

    techniques = choose(load_catalogue(), args.only)
    if args.no_browser:
        techniques = [one for one in techniques if not one.is_browser]
    if args.list:
        return _list(techniques, args.json)
    return _prove(args, techniques)


def _open_range(argv: list[str]) -> int:
    from stockade.prove.range import run_in_range

    command = argv[1:] if argv[:1] == ["--"] else argv
    return run_in_range(command or [os.environ.get("SHELL", "/bin/sh")])


def _list(techniques: list[Technique], as_json: bool) -> int:
    for one in techniques:
        if as_json:
            fields = {
                "id": one.id,
                "title": one.title,
                "group": one.group,
                "layer": one.layer,
                "risk": one.risk,
                "references": one.references,
                "not_supported": one.not_supported,
            }
            print(json.dumps(fields))
        else:
            print(f"{one.id:32} {one.layer:10} {one.title}")
    return 0


def _prove(args: argparse.Namespace, techniques: list[Technique]) -> int:
    from stockade.prove.proof import run_proof

    with tempfile.TemporaryDirectory() as scratch:
        evidence = args.out or Path(scratch)
        evidence.mkdir(parents=True, exist_ok=True)
        progress = Progress(len(techniques), sys.stderr)
        started = time.monotonic()
        judged = run_proof(
            techniques, evidence, progress.tell, layers_off=tuple(args.without_layer), lanes=args.lanes
        )
        progress.close()
        if args.json:
            for one in judged:
                print(
                    json.dumps(
                        {"id": one.judgement.id, "result": one.judgement.result, "why": one.judgement.why}
                    )
                )
        else:
            _print_summary(judged, time.monotonic() - started)
    return exit_code(judged, is_whole=not args.only and not args.no_browser)


def exit_code(judged: list[Judged], is_whole: bool) -> int:
    """0 only if every supported attack is blocked and, of a whole proof, enough are; a leak is 4."""
    from stockade.prove.trial import Result

    results = Counter(one.judgement.result for one in judged)
    supported = len(judged) - results[Result.NOT_SUPPORTED]
    if results[Result.LEAKED]:
        return 4
    if results[Result.INCONCLUSIVE] or supported == 0:
        return 1
    return 1 if is_whole and supported < SUPPORTED_AT_LEAST else 0


class Progress:
    """One line that is written over on a terminal, nothing elsewhere; what is not blocked stays on screen."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._done = 0
        self._stream = stream
        self._is_terminal = stream.isatty()

    def tell(self, one: Judged) -> None:
        self._done += 1
        if one.judgement.result not in ("blocked", "not-supported"):
            self._clear()
            print(f"{one.judgement.result:13} {one.judgement.id}: {one.judgement.why}", file=self._stream)
        if self._is_terminal:
            filled = 30 * self._done // self._total
            bar = "█" * filled + "·" * (30 - filled)
            print(f"\r{bar} {self._done}/{self._total} {one.judgement.id:32.32}", end="", file=self._stream)
            self._stream.flush()

    def close(self) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._is_terminal:
            print("\r\033[K", end="", file=self._stream)


def _print_summary(judged: list[Judged], seconds: float) -> None:
    from stockade.prove.trial import Result

    results = Counter(one.judgement.result for one in judged)
    for one in judged:
        if one.judgement.result is Result.NOT_SUPPORTED:
            print(f"not-supported {one.judgement.id}: {one.judgement.why}")
    print(
        f"{len(judged)} attacks in {seconds:.0f} s: {results[Result.BLOCKED]} blocked, "
        f"{results[Result.LEAKED]} leaked, {results[Result.INCONCLUSIVE]} inconclusive, "
        f"{results[Result.NOT_SUPPORTED]} not supported"
    )
