"""``stockade prove``: parse the options, run the proof, print."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.cli.run import LAYERS

if TYPE_CHECKING:
    from stockade.prove.ablation import Matrix
    from stockade.prove.technique import Technique
    from stockade.prove.trial import Judged

REMOVABLE = LAYERS[:-1]
SUPPORTED_AT_LEAST = 60


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "prove",
        help="attack a contained worker and show what stops each attack",
        description="Try the attack catalogue in a sealed internet of its own, each attack without "
        "enforcement and with it, and judge by what arrived. No packet can leave this machine. "
        f"Exit code 0: every supported attack is blocked, and at least {SUPPORTED_AT_LEAST} are supported "
        "(of those chosen, one); 4: one leaked; 1: one could not be judged.",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the evidence record to this new folder"
    )
    parser.add_argument(
        "--sign-key",
        type=Path,
        metavar="FILE",
        help="sign the evidence record with this Ed25519 key (default: your own, made at first use)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="only this attack or group (may be repeated)",
    )
    parser.add_argument("--list", action="store_true", help="list the attacks and stop")
    parser.add_argument(
        "--json", action="store_true", help="the result as one object; with --list one object per line"
    )
    parser.add_argument(
        "--ablate", action="store_true", help="try all again with each layer given up, and print the matrix"
    )
    parser.add_argument(
        "--without-layer",
        action="append",
        default=[],
        choices=REMOVABLE,
        metavar="NAME",
        help=f"give one layer up in all of them (may be repeated): {', '.join(REMOVABLE)}",
    )
    parser.add_argument("--no-browser", action="store_true", help="leave the attacks through the browser out")
    parser.add_argument(
        "--lanes", type=int, metavar="N", help="how many at a time (default: three for two processors)"
    )
    parser.add_argument(
        "--range-only", action="store_true", help="open a shell in the range and attack nothing"
    )
    parser.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="[-- CMD...]", help="with --range-only, instead of a shell"
    )


def run(args: argparse.Namespace) -> int:
    _refuse_what_does_not_go_together(args)
    if args.range_only:
        return _open_range(args.argv)
    from stockade.prove.technique import choose, load_catalogue

    techniques = choose(load_catalogue(), args.only)
    if args.no_browser:
        techniques = [one for one in techniques if not one.is_browser]
    if args.list:
        return _list(techniques, args.json)
    with _ended_by_signals():
        return _prove(args, techniques)


def _refuse_what_does_not_go_together(args: argparse.Namespace) -> None:
    from stockade.errors import UserError

    if args.argv and not args.range_only:
        raise UserError(
            "stray-argument",
            f"{args.argv[-1]!r} belongs to no option",
            "attacks are chosen with --only ID, a command goes with --range-only -- CMD",
        )
    if args.range_only and (args.out or args.list or args.ablate or args.only or args.without_layer):
        raise UserError("range-alone", "--range-only attacks nothing; leave the other options out")
    if args.lanes is not None and args.lanes < 1:
        raise UserError("bad-lanes", "--lanes has to be 1 or more")
    if args.ablate and args.without_layer:
        raise UserError("ablate-alone", "--ablate gives up each layer in turn; leave --without-layer out")


def _open_range(argv: list[str]) -> int:
    from stockade.prove.range import run_in_range

    command = argv[1:] if argv[:1] == ["--"] else argv
    own = str(Path(sys.executable).parent)  # so that `stockade` is a command there
    os.environ["PATH"] = f"{own}:{os.environ.get('PATH', os.defpath)}"
    if not command:
        from stockade.cli.prove_words import RANGE_WELCOME

        print(RANGE_WELCOME, file=sys.stderr)
    return run_in_range(command or [os.environ.get("SHELL") or "/bin/sh"])


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
            missing = f"  (not supported: {one.not_supported})" if one.not_supported else ""
            print(f"{one.id:32} {one.layer:10} {one.title}{missing}")
    return 0


def _prove(args: argparse.Namespace, techniques: list[Technique]) -> int:
    from stockade.cli.progress import Progress
    from stockade.cli.prove_evidence import recorded, seal
    from stockade.cli.prove_words import as_report, print_matrix, print_summary, result_line

    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="stockade-prove-") as scratch,
        recorded(args, techniques) as record,
    ):
        evidence = args.out or Path(scratch)
        progress = Progress(len(techniques) * (1 + len(REMOVABLE) * args.ablate), sys.stderr)

        def tell(one: Judged) -> None:
            if one.judgement.result not in ("blocked", "not-supported"):
                progress.say(result_line(one))
            progress.step(one.judgement.id)

        try:
            judged, matrix = _try_all(args, techniques, evidence, Path(scratch), tell, progress.step)
        finally:
            progress.close()
        seconds = time.monotonic() - started
        code = exit_code(judged, is_whole=not args.only and not args.no_browser)
        if record is not None:
            seal(record, args, judged, matrix, seconds, code)
    if args.json:
        print(json.dumps(as_report(judged, matrix, args.without_layer, seconds, code)))
        return code
    print_summary(judged, seconds, args.without_layer)
    if matrix is not None:
        print_matrix(matrix)
    return code


def _try_all(
    args: argparse.Namespace, techniques: list[Technique], evidence: Path, scratch: Path, tell: Any, step: Any
) -> tuple[list[Judged], Matrix | None]:
    from stockade.prove.proof import run_proof

    judged = run_proof(techniques, evidence, tell, layers_off=tuple(args.without_layer), lanes=args.lanes)
    if not args.ablate:
        return judged, None
    from stockade.prove.ablation import ablate

    return judged, ablate(techniques, judged, REMOVABLE, scratch / "ablation", step, lanes=args.lanes)


def exit_code(judged: list[Judged], is_whole: bool) -> int:
    """0 only if every supported attack is blocked and, of a whole proof, enough are; a leak is 4."""
    from collections import Counter

    from stockade.prove.trial import Result

    results = Counter(one.judgement.result for one in judged)
    supported = len(judged) - results[Result.NOT_SUPPORTED]
    if results[Result.LEAKED]:
        return 4
    if results[Result.INCONCLUSIVE] or supported == 0:
        return 1
    return 1 if is_whole and supported < SUPPORTED_AT_LEAST else 0


class _Ended(BaseException):
    """A signal asks us to end; what is running is ended on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP leave through the same `finally` blocks as a Ctrl-C."""

    def leave(number: int, _frame: object) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)  # once is enough: ending takes a moment
        raise _Ended(number)

    before = {number: signal.signal(number, leave) for number in _ENDING}
    try:
        yield
    except _Ended as end:
        print("stockade: ended before the proof was complete; nothing was written", file=sys.stderr)
        sys.exit(128 + end.number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
