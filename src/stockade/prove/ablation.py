"""Which layer stops what: the catalogue tried again with each layer given up in turn.

What arrives when one layer alone is missing is what that layer stops alone: nothing else would.
What still does not arrive is held by more than one. The controls and the trials with nothing
given up are those of the proof before; they are not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from stockade.prove.judge import find_problem, judge
from stockade.prove.proof import Job, run_jobs
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged, Result, Trial
from stockade.vocabulary import Word


class Cell(Word):
    """What came of one attack with one thing given up.

    `held`: nothing arrived and the trial is sound, but the refusal that is expected with all layers is not
    on record: another layer held it, or none tells who.
    """

    ARRIVED = "arrived"
    BLOCKED = "blocked"
    HELD = "held"
    UNCLEAR = "unclear"
    NOT_SUPPORTED = "not-supported"


class Row(Struct, frozen=True, kw_only=True):
    """One attack.

    Attributes:
        open: Without any enforcement (the control).
        full: With nothing given up.
        without: With each layer alone given up, in the order of the matrix.
    """

    id: str
    open: Cell
    full: Cell
    without: dict[str, Cell]

    def cells(self) -> list[Cell]:
        return [self.open, self.full, *self.without.values()]


class Matrix(Struct, frozen=True, kw_only=True):
    """Attack × layer."""

    layers: tuple[str, ...]
    rows: tuple[Row, ...]

    def held_alone_by(self, layer: str) -> list[str]:
        """The attacks that arrive when this layer alone is given up: nothing else would stop them."""
        return [
            row.id for row in self.rows if row.without[layer] is Cell.ARRIVED and row.full is not Cell.ARRIVED
        ]

    def held_by_several(self) -> list[str]:
        """The attacks that no single layer, when given up, lets through."""
        return [
            row.id
            for row in self.rows
            if row.full in (Cell.BLOCKED, Cell.HELD)
            and all(cell in (Cell.BLOCKED, Cell.HELD) for cell in row.without.values())
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what each layer holds alone."""
        return {
            "layers": list(self.layers),
            "rows": [
                {
                    "id": row.id,
                    "open": row.open,
                    "full": row.full,
                    "without": {layer: str(cell) for layer, cell in row.without.items()},
                }
                for row in self.rows
            ],
            "held_alone_by": {layer: self.held_alone_by(layer) for layer in self.layers},
            "held_by_several": self.held_by_several(),
        }


def ablate(
    techniques: Iterable[Technique],
    judged: Sequence[Judged],
    layers: Sequence[str],
    scratch: Path,
    step: Callable[[str], None],
    *,
    lanes: int | None = None,
) -> Matrix:
    """Try each technique with each layer alone given up.

    Args:
        judged: The same techniques with nothing given up; their controls are used again.
        scratch: A folder for the ledgers of these runs, which are no evidence.
        step: Called after each trial.

    Raises:
        HostError, ContainmentError: As `run_jobs`.
    """
    chosen = list(techniques)
    full = {one.trial.id: one.trial for one in judged}
    found: dict[tuple[str, str], Trial] = {}

    def note(job: Job, trial: Trial) -> None:
        control = full[trial.id].control
        found[trial.id, job.layers_off[0]] = structs.replace(trial, control=control)
        step(f"{job.technique.id} without {job.layers_off[0]}")

    tried = [one for one in chosen if full[one.id].not_supported is None]
    run_jobs(
        [Job(one, (layer,), has_control=False) for one in tried for layer in layers], scratch, note, lanes
    )
    return Matrix(
        layers=tuple(layers),
        rows=tuple(
            make_row(one, full[one.id], {layer: found.get((one.id, layer), full[one.id]) for layer in layers})
            for one in chosen
        ),
    )


def make_row(technique: Technique, full: Trial, without: dict[str, Trial]) -> Row:
    """Pure: one attack's trials as a row."""
    return Row(
        id=technique.id,
        open=_weigh_control(full),
        full=weigh_trial(technique, full),
        without={layer: weigh_trial(technique, trial) for layer, trial in without.items()},
    )


def weigh_trial(technique: Technique, trial: Trial) -> Cell:
    """Pure: what one trial shows in the matrix."""
    match judge(technique, trial).result:
        case Result.BLOCKED:
            return Cell.BLOCKED
        case Result.LEAKED:
            return Cell.ARRIVED
        case Result.NOT_SUPPORTED:
            return Cell.NOT_SUPPORTED
        case _:
            return Cell.UNCLEAR if find_problem(technique, trial) else Cell.HELD


def _weigh_control(trial: Trial) -> Cell:
    if trial.not_supported is not None:
        return Cell.NOT_SUPPORTED
    return Cell.ARRIVED if trial.control.arrived else Cell.UNCLEAR
