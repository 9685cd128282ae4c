"""All that is kept of a learner: given out as one value, or thrown away."""

from __future__ import annotations

import json
from typing import Any

from stockade.errors import UserError
from stockade.lab.game.moment import Moment
from stockade.lab.game.present import tell_time
from stockade.lab.progress.database import VERSION, Database
from stockade.lab.progress.people import People

CONFIRM = "reset"

# Table → its columns in the export and how its rows are put in order.
_OWN = {
    "settings": ("name, value", "name"),
    "gaps": ("id, text, origin, done, created_ms", "id"),
    "cards": ("scenario, card, due_ms, seen, missed, was_right, at_ms", "scenario"),
    "pages": ("name, text, saved_ms", "name"),
}
_OF_ROUNDS = {
    "steps": ("place, scenario, shown_wall_ms, hints", "place"),
    "answers": (
        "place, scenario, decision, risk, control, ms, at_ms, key_decision, key_risk, key_control, "
        "key_class, is_right",
        "place",
    ),
    "notes": ("name, text", "name"),
}
_ROUND = "id, kind, tier, seed, bank, clock, started_ms, ended_ms, is_left, points, percent, grade"


class Archive:
    """Export and reset."""

    def __init__(self, database: Database, people: People) -> None:
        self._database = database
        self._people = people

    def export(self, learner: str, now: Moment) -> dict[str, Any]:
        """Everything as plain values, with the tables' own names; times are milliseconds since 1970."""
        who = self._people.find(learner)
        rounds = self._database.rows(
            f"SELECT {_ROUND} FROM rounds WHERE learner = ? ORDER BY started_ms, rowid", learner
        )
        return {
            "format": "stockade-lab-progress",
            "version": VERSION,
            "exported_at": tell_time(now.wall_ms),
            "learner": who.name,
            "rounds": [self._of_round(dict(row)) for row in rounds],
            **{table: self._rows(table, *how, "learner", learner) for table, how in _OWN.items()},
        }

    def _of_round(self, row: dict[str, Any]) -> dict[str, Any]:
        tables = {table: self._rows(table, *how, "round", row["id"]) for table, how in _OF_ROUNDS.items()}
        if row["ended_ms"] is None:
            # The numbers of events that are still to be called would be their answers.
            answered = {one["place"] for one in tables["answers"]}
            for step in tables["steps"]:
                if step["place"] not in answered:
                    step["scenario"] = None
        return row | tables

    def _rows(self, table: str, columns: str, order: str, owner: str, value: str) -> list[dict[str, Any]]:
        # The words of the statement are constants of this module; only the owner is a value.
        found = self._database.rows(
            f"SELECT {columns} FROM {table} WHERE {owner} = ? ORDER BY {order}", value
        )
        rows = [dict(row) for row in found]
        for row in rows:
            if "card" in row:
                row["card"] = json.loads(row["card"])
        return rows

    def reset(self, learner: str, confirm: str) -> None:
        """Throw away all that is kept of a learner but the name.

        Raises:
            UserError: It was not confirmed by the word `reset`.
        """
        if confirm != CONFIRM:
            raise UserError("not-confirmed", f'nothing was thrown away: confirm with "{CONFIRM}"')
        self._people.find(learner)
        with self._database.change() as change:
            for table in ("rounds", *_OWN):  # what hangs on a round goes with it
                change.execute(f"DELETE FROM {table} WHERE learner = ?", (learner,))
