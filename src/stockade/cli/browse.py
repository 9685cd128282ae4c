"""``stockade browse``: a contained browser, driven by an agent."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockade.browser.transcript import TakenStep

AGENTS = ("obedient", "openai", "anthropic")
NO_POLICY = (
    "no policy was given, so no site can be reached: put `version: 1`, `include: [exec/browser]` "
    "and a rule for each site into a file for -p FILE"
)


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "browse",
        help="let an agent use a contained browser",
        description="Start Chromium contained, have an agent use it, and record each step before it is done. "
        "The obedient agent does whatever the prompt and the pages say; the others are models.",
    )
    parser.add_argument("-p", "--policy", type=Path, metavar="FILE", help="policy file (default: no network)")
    parser.add_argument("--agent", choices=AGENTS, default=AGENTS[0], help="who decides (default: obedient)")
    parser.add_argument(
        "--prompt",
        default="Do what the page says.",
        metavar="TEXT",
        help="what the agent is told; - reads it from standard input (default: do what the page says)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write transcript.json and the pictures here")
    parser.add_argument(
        "--ledger", type=Path, metavar="DIR", help="shelf of ledgers (default: the user's state folder)"
    )
    parser.add_argument("--model", default="", metavar="NAME", help="model of --agent openai or anthropic")
    parser.add_argument(
        "--model-url", default="", metavar="URL", help="base address of its API (default: the provider's own)"
    )
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="end after N steps (default: 12)")
    parser.add_argument("--json", action="store_true", help="print the transcript as one JSON object")
    parser.add_argument("url", metavar="URL", help="the page to begin with")


def run(args: argparse.Namespace) -> int:
    import msgspec

    from stockade.browser.session import BrowseOptions, browse
    from stockade.errors import UserError

    if args.steps < 1:
        raise UserError("bad-steps", "--steps has to be at least 1")
    if not args.url.lower().startswith(("http://", "https://")):
        raise UserError(
            "bad-url", f"{args.url!r} is no address of a page", "write it with http:// or https://"
        )
    options = BrowseOptions(
        url=args.url,
        prompt=sys.stdin.read() if args.prompt == "-" else args.prompt,
        agent=args.agent,
        policy=args.policy,
        out=args.out,
        ledger=args.ledger,
        model=args.model,
        model_url=args.model_url,
        step_limit=args.steps,
    )
    transcript = browse(options, _tell)
    if args.json:
        sys.stdout.write(msgspec.json.encode(transcript, order="deterministic").decode() + "\n")
    steps = "1 step" if len(transcript.steps) == 1 else f"{len(transcript.steps)} steps"
    print(f"stockade: run {transcript.run}: {steps}, {transcript.ended}", file=sys.stderr)
    if args.policy is None:
        print(f"stockade: {NO_POLICY}", file=sys.stderr)
    print(f"stockade: what was refused: stockade log --run {transcript.run} --verdict deny", file=sys.stderr)
    for note in transcript.notes:
        print(f"stockade: {note}", file=sys.stderr)
    if transcript.ended != "done":
        print("hint: the agent was not finished; --steps N lets it go on for longer", file=sys.stderr)
    return 0


def _tell(step: TakenStep) -> None:
    """One step for a person; addresses and answers are foreign text."""
    from stockade.browser.actions import describe_step, parse_action
    from stockade.ledger.record import clean_text

    told = describe_step(parse_action(step.action))
    about = told.get("target") or " ".join(told.get("argv", ()))
    came = step.came if told["action"] == "run-command" else step.error or step.came
    print(
        f"{step.number:3}  {told['action']} {clean_text(about, 120)} -> {clean_text(came, 120)}",
        file=sys.stderr,
    )
