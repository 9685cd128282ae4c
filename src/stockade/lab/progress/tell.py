"""A kept round in one line, without the scenarios that it was played with."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from stockade.lab.game.present import tell_time
from stockade.lab.game.rounds import Kind, Status
from stockade.lab.progress.database import Database


class RoundLine(Struct, frozen=True, kw_only=True):
    """One round of the list; `points`, `percent` and `grade` are there once it is over."""

    id: str
    kind: Kind
    tier: int | None
    seed: str
    status: Status
    answered: int
    count: int
    points: int | None
    percent: float | None
    grade: str | None
    started_at: str
    ended_at: str | None
    bank_digest: str


def list_rounds(database: Database, learner: str) -> list[RoundLine]:
    """All rounds and drills of a learner, the latest first."""
    rows = database.rows(
        "SELECT r.*, (SELECT count(*) FROM answers a WHERE a.round = r.id) AS answered, "
        "(SELECT count(*) FROM steps s WHERE s.round = r.id) AS count "
        "FROM rounds r WHERE learner = ? ORDER BY started_ms DESC, rowid DESC",
        learner,
    )
    return [tell_line(row) for row in rows]


def tell_line(row: sqlite3.Row) -> RoundLine:
    """A row of `rounds`, with its counts `answered` and `count`."""
    ended = row["ended_ms"]
    status: Status = "broken-off" if row["is_left"] else "open" if ended is None else "done"
    return RoundLine(
        id=row["id"],
        kind=row["kind"],
        tier=row["tier"],
        seed=row["seed"],
        status=status,
        answered=row["answered"],
        count=row["count"],
        points=row["points"],
        percent=row["percent"],
        grade=row["grade"],
        started_at=tell_time(row["started_ms"]),
        ended_at=None if ended is None else tell_time(ended),
        bank_digest=row["bank"],
    )
