"""What `stockade prove` says: a line for each result, the summary, the matrix, the report as one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stockade.ledger.record import clean_text

if TYPE_CHECKING:
    from stockade.prove.ablation import Matrix
    from stockade.prove.trial import Judged

RANGE_WELCOME = (
    "range: a sealed internet: allowed.test, evil.test, 169.254.169.254 and others answer, and nobody else."
    "\nrange: no packet leaves this machine; `exit` ends the range and all that runs in it."
)
_WHY_LIMIT = 400


def result_line(one: Judged) -> str:
    """One result on one line; what attacks and servers said is cleaned."""
    return f"{one.judgement.result:13} {one.judgement.id}: {clean_text(one.judgement.why, _WHY_LIMIT)}"


def print_summary(judged: list[Judged], seconds: float, layers_off: Sequence[str] = ()) -> None:
    """What is not supported, then the figures, and what they must not be taken for."""
    from stockade.prove.trial import Result

    results = Counter(one.judgement.result for one in judged)
    _print_not_supported([one for one in judged if one.judgement.result is Result.NOT_SUPPORTED])
    print(
        f"{len(judged)} {'attack' if len(judged) == 1 else 'attacks'} in {seconds:.0f} s: "
        f"{results[Result.BLOCKED]} blocked, {results[Result.LEAKED]} leaked, "
        f"{results[Result.INCONCLUSIVE]} inconclusive, {results[Result.NOT_SUPPORTED]} not supported"
    )
    if not results[Result.LEAKED] and not results[Result.INCONCLUSIVE] and results[Result.BLOCKED]:
        print("each arrived without enforcement; with it nothing arrived, and who refused it is on record")
    if layers_off:
        held = [one.judgement.id for one in judged if one.judgement.result is Result.BLOCKED]
        if held and results[Result.LEAKED]:
            print(f"still blocked, by another layer: {', '.join(held)}")
        print(f"layers given up: {', '.join(layers_off)} (so this is no result about the whole containment)")


def _print_not_supported(judged: list[Judged]) -> None:
    """One line for each reason: as an ordinary user ten attacks share one."""
    by_reason: dict[str, list[str]] = {}
    for one in judged:
        by_reason.setdefault(one.judgement.why, []).append(one.judgement.id)
    for why, names in by_reason.items():
        print(f"not-supported {', '.join(names)}: {clean_text(why, _WHY_LIMIT)}")


def print_matrix(matrix: Matrix) -> None:
    """Attack × what was given up, then what each layer stops alone."""
    columns = ["open", "full", *matrix.layers]
    print(f"\n{'':32} " + " ".join(f"{name:>9}" for name in columns))
    for row in matrix.rows:
        print(f"{row.id:32.32} " + " ".join(f"{_CELLS[cell]:>9}" for cell in row.cells()))
    print(_LEGEND)
    for layer in matrix.layers:
        alone = matrix.held_alone_by(layer)
        held = ", ".join(alone) if alone else "nothing (another layer holds each of these attacks too)"
        print(f"without {layer:9} arrive: {held}")


_CELLS = {"arrived": "●", "blocked": "·", "held": "○", "unclear": "?", "not-supported": "–"}


def as_report(
    judged: list[Judged],
    matrix: Matrix | None,
    layers_off: list[str],
    seconds: float,
    exit_code: int,
) -> dict[str, Any]:
    """The whole result as one object of plain values."""
    from stockade.prove.trial import Result

    results = Counter(one.judgement.result for one in judged)
    report: dict[str, Any] = {
        "exit_code": exit_code,
        "counts": {str(result): results[result] for result in Result},
        "seconds": round(seconds, 1),
        "layers_off": layers_off,
        "attacks": [
            {
                "id": one.judgement.id,
                "result": one.judgement.result,
                "why": clean_text(one.judgement.why, _WHY_LIMIT),
                "stopped_by": one.judgement.stopped_by,
                "seconds": round(one.trial.control.seconds + one.trial.attempt.seconds, 3),
            }
            for one in judged
        ],
    }
    if matrix is not None:
        report["matrix"] = matrix.to_json()
    return report


_LEGEND = """
open: no enforcement at all; full: nothing given up; the others: this layer alone given up.
● it arrived   · nothing arrived, refused as expected   ○ nothing arrived, held otherwise or on no record
? could not be judged   – not supported
"""
