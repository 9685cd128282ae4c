"""``stockade evidence``: verify, review and print evidence records."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.errors import IntegrityError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.evidence.manifest import Fault
    from stockade.evidence.verify import Report

EVIDENCE_OPEN = 6


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "evidence",
        help="verify, review and print evidence records",
        description="Work with what `stockade prove --out DIR` has written. Nothing here needs a network.",
        epilog="Exit codes: 0 done, 2 your input, 5 something is not as it was signed, 6 not sealed.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    verify = actions.add_parser("verify", help="say whether every file is as it was signed, and by whom")
    verify.add_argument("folder", metavar="DIR", type=Path, help="the evidence folder")
    verify.add_argument(
        "--key",
        metavar="FINGERPRINT",
        help="the key that must have signed: SHA-256 of the 32 bytes of the public key, in hex",
    )
    verify.add_argument("--json", action="store_true", help="one object")
    review = actions.add_parser(
        "review", help="show the eight questions or the review, or sign answers to them"
    )
    review.add_argument("folder", metavar="DIR", type=Path, help="the evidence folder")
    review.add_argument(
        "--answers",
        metavar="FILE",
        type=Path,
        help="sign these answers (YAML or JSON, by question); without it they are asked for on a terminal, "
        "and elsewhere a form is printed",
    )
    review.add_argument("--reviewer", metavar="NAME", help="who answers (default: your user name)")
    review.add_argument(
        "--sign-key", metavar="FILE", type=Path, help="the reviewer's Ed25519 key (default: your own)"
    )
    review.add_argument(
        "--replace", action="store_true", help="put the answers in the place of an earlier review"
    )
    review.add_argument("--json", action="store_true", help="one object")
    show = actions.add_parser("show", help="print the signed statement, if the folder verifies")
    show.add_argument("folder", metavar="DIR", type=Path, help="the evidence folder")
    show.add_argument("--json", action="store_true", help=argparse.SUPPRESS)  # it is JSON anyway
    schema = actions.add_parser("schema", help="print the JSON Schema of the statement's predicate")
    schema.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    return parser


def run(args: argparse.Namespace) -> int:
    return {"verify": _verify, "review": _review, "show": _show, "schema": _schema}[args.action](args)


# verify


def _verify(args: argparse.Namespace) -> int:
    from stockade.evidence.report import report_lines, report_object
    from stockade.evidence.verify import verify_evidence

    report = verify_evidence(args.folder, args.key)
    if args.json:
        print(json.dumps(report_object(args.folder, report)))
    else:
        print("\n".join(report_lines(args.folder, report)))
    return report.exit_code


# review


def _review(args: argparse.Namespace) -> int:
    from stockade.evidence.manifest import REVIEW_NAME
    from stockade.evidence.review import pick_answers, read_answers, sign_review

    report = _need_verified(args.folder, may_replace_review=args.replace)
    is_wanted = args.answers is not None or args.replace
    if report.review is not None and not is_wanted:
        _print_review(report, args.json)
        return 0
    if report.review is not None and not args.replace:
        raise UserError(
            "already-reviewed", f"{args.folder / REVIEW_NAME} is there", "--replace puts yours in its place"
        )
    if args.answers is not None:
        answers = read_answers(args.answers)
    elif sys.stdin.isatty():
        answers = pick_answers(_ask())
    else:
        print(_form(), end="")
        return 0
    from stockade.evidence.keys import fingerprint, load_or_make_key
    from stockade.evidence.record import now, put_in_place

    key = load_or_make_key(args.sign_key)
    reviewer = args.reviewer or _user_name()
    put_in_place(args.folder / REVIEW_NAME, sign_review(report.payload, answers, reviewer, now(), key))
    print(
        f"stockade: {args.folder / REVIEW_NAME} is written, signed by {fingerprint(key.public_key())}",
        file=sys.stderr,
    )
    return 0


def _need_verified(folder: Path, may_replace_review: bool = False) -> Report:
    """A folder that verifies, but for a review that is to be replaced anyway.

    Raises:
        IntegrityError: It does not.
    """
    from stockade.evidence.manifest import REVIEW_NAME
    from stockade.evidence.verify import verify_evidence

    report = verify_evidence(folder)
    if not report.is_sealed:
        raise UserError("evidence-open", f"{folder} holds no finished evidence")
    _demand_whole([one for one in report.faults if not (may_replace_review and one.file == REVIEW_NAME)])
    return report


def _demand_whole(faults: Sequence[Fault]) -> None:
    if faults:
        raise IntegrityError("evidence-fault", f"{faults[0].file}: {faults[0].problem}")


def _print_review(report: Report, as_json: bool) -> None:
    from stockade.evidence.questions import QUESTIONS

    review = report.review
    assert review is not None
    if as_json:
        fields = ("reviewer", "reviewed", "signed_by", "answers")
        print(json.dumps({name: getattr(review, name) for name in fields}))
        return
    print(
        f"# reviewed by {review.reviewer!a} on {ascii(review.reviewed)[1:-1]}, signed by {review.signed_by}"
    )
    for question in QUESTIONS:
        print(f"\n{question.text}\n{_indent(review.answers[question.key])}")


def _indent(text: str) -> str:
    shown = "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in text)
    return "\n".join(f"  {line}" for line in shown.split("\n"))


def _ask() -> dict[str, str]:
    from stockade.evidence.questions import QUESTIONS

    print("Eight questions; an empty line ends each answer.", file=sys.stderr)
    answers = {}
    for question in QUESTIONS:
        print(f"\n{question.text} {question.help}", file=sys.stderr)
        lines = []
        while line := sys.stdin.readline().rstrip("\n"):
            lines.append(line)
        answers[question.key] = "\n".join(lines)
    return answers


def _form() -> str:
    """An answers file to fill in."""
    from stockade.evidence.questions import QUESTIONS

    lines = ["# Fill in, then: stockade evidence review DIR --answers FILE"]
    for question in QUESTIONS:
        lines += ["", f"# {question.text} {question.help}", f"{question.key}: |", "  "]
    return "\n".join(lines) + "\n"


def _user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


# show and schema


def _show(args: argparse.Namespace) -> int:
    from stockade.evidence.verify import verify_evidence

    report = verify_evidence(args.folder)
    if not report.is_sealed:
        print(f"stockade: {args.folder} holds no finished evidence", file=sys.stderr)
        return EVIDENCE_OPEN
    _demand_whole(report.faults)
    print(json.dumps(json.loads(report.payload), indent=2, ensure_ascii=True))
    return 0


def _schema(args: argparse.Namespace) -> int:
    from stockade.evidence.schema import write_schema

    print(write_schema(), end="")
    return 0
