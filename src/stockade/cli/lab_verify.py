"""`stockade lab verify`: whether a round's result, or a half day's record, follows from what is in it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.errors import IntegrityError, UserError

if TYPE_CHECKING:
    from stockade.lab.pack.pack import Pack
    from stockade.lab.progress.result import Verified

_LONGEST = 4 << 20  # a result is about 5 KB; a record holds a policy and eight answers


def add_parser(actions: Any) -> None:
    """Add the action to `stockade lab`."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "verify",
        help="say whether a result or record follows from what is in it, and who signed it",
        description="Check the signature of a round's result, draw the round from its seed again and count "
        "its points again. Of a half day's record, replay the bank under its policy again. It cannot be "
        "checked who answered, or how fast.",
        epilog="Exit codes: 0 it verifies, 2 the file cannot be read or the fingerprint is none, "
        "5 it does not verify.",
    )
    parser.add_argument("file", metavar="RESULT", type=Path, help="the file that the lab gave out")
    parser.add_argument(
        "--key",
        metavar="FINGERPRINT",
        help="the key that must have signed: SHA-256 of the 32 bytes of the public key, in hex",
    )
    parser.add_argument(
        "--pack",
        dest="own_pack",
        type=Path,
        metavar="PACK",
        default=argparse.SUPPRESS,  # `lab --pack PACK verify` says the same
        help="the pack.yaml that was played (default: the shipped event bank)",
    )
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Verify, print what was found and give the exit code."""
    from stockade.evidence.verify import parse_fingerprint

    data = _read(args.file)
    args.key = None if args.key is None else parse_fingerprint(args.key)
    try:
        told, lines = (_verify_half_day if _is_half_day(data) else _verify_round)(args, data)
    except IntegrityError as error:
        if not args.json:
            raise
        told = {"file": str(args.file), "verifies": False, "code": error.code, "why": error.message}
        print(json.dumps(told))
        return error.exit_code
    print(json.dumps(told) if args.json else "\n".join(lines))
    return 0


Told = tuple[dict[str, Any], list[str]]


def _is_half_day(data: bytes) -> bool:
    """Which of the two it says it is; nothing is believed yet, the reader of its kind checks it."""
    from stockade.evidence.envelope import parse_envelope
    from stockade.lab.workshop_record import WORKSHOP_TYPE

    try:
        return bool(json.loads(parse_envelope(data).payload)["predicateType"] == WORKSHOP_TYPE)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _verify_round(args: argparse.Namespace, data: bytes) -> Told:
    from stockade.lab.progress.result import verify_result

    verified = verify_result(data, _played_pack(args), args.key)
    return _tell_object(args.file, verified), _tell_lines(args.file, verified)


def _verify_half_day(args: argparse.Namespace, data: bytes) -> Told:
    from stockade.lab.workshop_record import replay_on
    from stockade.lab.workshop_verify import record_lines, record_object, verify_workshop_record

    bank = _played_pack(args)
    found = verify_workshop_record(data, replay=replay_on(bank), bank_digest=bank.digest, pinned=args.key)
    if args.own_pack is not None and not found.is_replayed:
        raise IntegrityError(
            "other-bank",
            "this record is about another pack, or another version of it",
            f"{args.own_pack} has sha256 {bank.digest}",
        )
    return {"file": str(args.file), **record_object(found)}, [f"{args.file}: verifies", *record_lines(found)]


def _played_pack(args: argparse.Namespace) -> Pack:
    from stockade.lab.pack.load import load_pack
    from stockade.lab.pack.pack import shipped_bank

    return shipped_bank() if args.own_pack is None else load_pack(args.own_pack)


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_LONGEST + 1)
    except OSError as error:
        raise UserError("no-result", f"{path}: {error.strerror}") from error
    if len(data) > _LONGEST:
        raise UserError("no-result", f"{path}: too large to be the result of a round")
    return data


def _tell_object(path: Path, verified: Verified) -> dict[str, Any]:
    result = verified.result
    return {
        "file": str(path),
        "verifies": True,
        "sha256": verified.sha256,
        "signed_by": verified.signed_by,
        "key_pinned": verified.is_pinned,
        "bank": {"name": verified.bank, "sha256": verified.bank_digest},
        "learner": result.learner,
        "seed": result.seed,
        "tier": result.tier,
        "clock": result.clock,
        "points": result.points,
        "percent": result.percent,
        "grade": result.grade,
        "leaks": result.leaks,
        "blocks": result.blocks,
        "started": result.started,
        "ended": result.ended,
    }


def _tell_lines(path: Path, verified: Verified) -> list[str]:
    """What a person wants to know; texts of the file are shown so that they cannot act on the terminal."""
    result = verified.result
    pinned = "the key that you asked for" if verified.is_pinned else "key not pinned"
    return [
        f"{path}: verifies: the round and its points follow from the seed and the answers",
        f"signed by {verified.signed_by}, {pinned}",
        f"it says: {result.learner!a} played seed {result.seed} at tier {result.tier} (clock {result.clock}) "
        f"from {result.started} to {result.ended}",
        f"grade {result.grade}: {result.percent:.1f} %, {result.points} points, "
        f"leaks {result.leaks}, wrong blocks {result.blocks}",
        f"scenarios: {verified.bank}, sha256 {verified.bank_digest}",
    ]
