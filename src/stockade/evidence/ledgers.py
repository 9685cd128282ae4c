"""What the ledgers of a proof say of themselves: their first and last records, and how many between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from stockade.ledger.record import CLOSED
from stockade.ledger.shelf import RunReader, list_runs


class LedgerSummary(Struct, frozen=True):
    """One run's ledger: its name, file below the evidence's folder, first record, count, how it ended."""

    run: str
    file: str
    opened: dict[str, Any]
    records: int
    is_closed: bool


def read_ledgers(folder: Path, shelf_name: str = "ledger") -> list[LedgerSummary]:
    """All ledgers of an evidence folder, by name.

    Raises:
        IntegrityError: One of them is damaged.
    """
    shelf = folder / shelf_name
    if not shelf.is_dir():
        return []
    return sorted((_read(shelf, run, shelf_name) for run in list_runs(shelf)), key=lambda one: one.run)


def _read(shelf: Path, run: str, shelf_name: str) -> LedgerSummary:
    count = 0
    opened: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for last in RunReader(shelf / run).read():  # the last one is looked at below
        opened = opened or last
        count += 1
    file = f"{shelf_name}/{run}/records.jsonl"
    return LedgerSummary(run, file, opened, count, last.get("kind") == CLOSED)
