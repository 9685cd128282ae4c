"""The matrix: which attacks arrive when one layer alone is given up."""

from __future__ import annotations

import pytest
from msgspec import structs

from stockade.prove.ablation import Cell, Matrix, Row, make_row, weigh_trial
from stockade.prove.technique import Group, Layer, Stopped, Technique, Witness
from stockade.prove.trial import Trial, Try
from stockade.vocabulary import Risk

TECHNIQUE = Technique(
    id="example",
    title="An example",
    group=Group.COMMANDS,
    layer=Layer.NOTIFY,
    risk=Risk.BOUNDARY_TAMPERING,
    references=("CWE-77",),
    arrives=(Witness(what="command"),),
    stopped=(Stopped(reason=("program-not-listed",)),),
)
ARRIVAL = {"what": "command"}
CONTROL = Try(is_done=True, allowed_before=True, allowed_after=True, arrived=(ARRIVAL,))
BLOCKED = Try(
    is_done=True,
    allowed_before=True,
    allowed_after=True,
    denials=({"reason": "program-not-listed", "layer": "notify"},),
    closing={"complete": True},
    exit_code=0,
)


def trial(attempt: Try, **more: object) -> Trial:
    return structs.replace(Trial(id="example", control=CONTROL, attempt=attempt), **more)


SILENT = structs.replace(BLOCKED, denials=())
LEAKED = structs.replace(BLOCKED, arrived=(ARRIVAL,))
BROKEN = structs.replace(BLOCKED, is_done=False)


@pytest.mark.parametrize(
    ("attempt", "cell"),
    [
        (BLOCKED, Cell.BLOCKED),
        (SILENT, Cell.HELD),
        (LEAKED, Cell.ARRIVED),
        (BROKEN, Cell.UNCLEAR),
        (structs.replace(SILENT, allowed_after=False), Cell.UNCLEAR),
    ],
)
def test_nothing_arrived_is_told_from_nothing_was_tried(attempt: Try, cell: Cell) -> None:
    assert weigh_trial(TECHNIQUE, trial(attempt)) is cell


def test_a_row_holds_the_control_the_full_trial_and_each_layer() -> None:
    row = make_row(TECHNIQUE, trial(BLOCKED), {"room": trial(BLOCKED), "notify": trial(SILENT)})
    assert (row.open, row.full) == (Cell.ARRIVED, Cell.BLOCKED)
    assert row.cells() == [Cell.ARRIVED, Cell.BLOCKED, Cell.BLOCKED, Cell.HELD]


def test_a_control_that_did_not_arrive_is_unclear_and_not_supported_stays_so() -> None:
    dead = trial(BLOCKED, control=structs.replace(CONTROL, arrived=()))
    assert make_row(TECHNIQUE, dead, {}).open is Cell.UNCLEAR
    apart = trial(Try(), not_supported="needs gcc")
    assert make_row(TECHNIQUE, apart, {"room": apart}).cells() == [Cell.NOT_SUPPORTED] * 3


def row(name: str, full: Cell, **without: Cell) -> Row:
    return Row(id=name, open=Cell.ARRIVED, full=full, without=without)


MATRIX = Matrix(
    layers=("room", "notify"),
    rows=(
        row("only-room", Cell.BLOCKED, room=Cell.ARRIVED, notify=Cell.BLOCKED),
        row("both", Cell.BLOCKED, room=Cell.BLOCKED, notify=Cell.HELD),
        row("leaks-anyway", Cell.ARRIVED, room=Cell.ARRIVED, notify=Cell.ARRIVED),
        row("unclear", Cell.BLOCKED, room=Cell.BLOCKED, notify=Cell.UNCLEAR),
    ),
)


def test_a_layer_holds_alone_what_arrives_without_it_and_not_with_all() -> None:
    assert MATRIX.held_alone_by("room") == ["only-room"]
    assert MATRIX.held_alone_by("notify") == []


def test_what_no_single_layer_lets_through_is_held_by_several() -> None:
    assert MATRIX.held_by_several() == ["both"]


def test_the_matrix_is_plain_values_for_a_report() -> None:
    report = MATRIX.to_json()
    assert report["layers"] == ["room", "notify"]
    assert report["rows"][0] == {
        "id": "only-room", "open": "arrived", "full": "blocked",
        "without": {"room": "arrived", "notify": "blocked"},
    }  # fmt: skip
    assert report["held_alone_by"] == {"room": ["only-room"], "notify": []}
