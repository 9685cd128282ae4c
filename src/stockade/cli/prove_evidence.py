"""The evidence record around a proof: opened before it, sealed after it, gone if it comes to no end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stockade.evidence.record import OpenRecord
    from stockade.prove.ablation import Matrix
    from stockade.prove.technique import Technique
    from stockade.prove.trial import Judged


@contextmanager
def recorded(args: argparse.Namespace, techniques: list[Technique]) -> Iterator[OpenRecord | None]:
    """A record in `--out`, with what is expected in it; what is not sealed in the end is taken away again.

    Raises:
        UserError: The folder is in use, or the key cannot be used; nothing has been tried.
    """
    if args.out is None:
        yield None
        return
    from stockade.evidence.record import OpenRecord
    from stockade.prove.execution import BASE_POLICY

    record = OpenRecord(
        args.out, techniques, policy=BASE_POLICY, layers_off=args.without_layer, key_file=args.sign_key
    )
    try:
        yield record
    except (
        BaseException
    ):  # a signal as well: half a record is worth nothing, and the folder can be used again
        record.discard()
        raise


def seal(
    record: OpenRecord,
    args: argparse.Namespace,
    judged: list[Judged],
    matrix: Matrix | None,
    seconds: float,
    code: int,
) -> None:
    """Write and sign what was seen, and say where it is and how it is verified.

    Args:
        code: The exit code that the proof earned.
    """
    from stockade.evidence.record import now
    from stockade.evidence.statement import Circumstances

    sealed = record.seal(
        judged,
        Circumstances(
            command=("stockade", *sys.argv[1:]),
            started=record.expected_at,
            finished=now(),
            seconds=round(seconds, 3),
            expected_at=record.expected_at,
            is_whole=not args.only and not args.no_browser,
            is_passed=code == 0,
            layers_off=tuple(args.without_layer),
            lanes=args.lanes,
        ),
        None if matrix is None else matrix.to_json(),
    )
    print(f"stockade: evidence for people: {sealed.page}", file=sys.stderr)
    print(
        f"stockade: check it with: stockade evidence verify {args.out} --key {sealed.signer}", file=sys.stderr
    )
