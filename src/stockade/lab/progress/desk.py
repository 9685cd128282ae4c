"""What a learner writes: notes to a round, the gap log, a policy draft, the workshop's steps."""

from __future__ import annotations

import json
from typing import Any

from stockade.errors import UserError
from stockade.lab.game.debrief import QUESTIONS, GapLine
from stockade.lab.game.moment import Moment
from stockade.lab.progress.database import Database
from stockade.lab.progress.people import Missing

LONGEST_NOTE = 4_000
LONGEST_GAP = 400
LONGEST_PAGE = 256 << 10
_DRAFT, _WORKSHOP = "policy", "workshop"


class Desk:
    """Texts of all learners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # notes

    def notes(self, number: str) -> dict[str, str]:
        rows = self._database.rows("SELECT name, text FROM notes WHERE round = ? ORDER BY name", number)
        return {row["name"]: row["text"] for row in rows}

    def put_note(self, number: str, key: str, text: str) -> None:
        if key not in {question[0] for question in QUESTIONS}:
            raise Missing("no-such-question", f"there is no review question {key[:40]!r}")
        _refuse_long(text, LONGEST_NOTE)
        with self._database.change() as change:
            change.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (number, key, text))

    # the gap log

    def gaps(self, learner: str) -> list[GapLine]:
        """What is still open first, the latest first."""
        rows = self._database.rows(
            "SELECT id, text, origin, done FROM gaps WHERE learner = ? ORDER BY done, id DESC", learner
        )
        return [GapLine(row["id"], row["text"], row["origin"], bool(row["done"])) for row in rows]

    def add_gap(self, learner: str, text: str, origin: str, now: Moment) -> GapLine:
        """A new line; `origin` says where it comes from, such as a round or a scenario."""
        text = text.strip()
        if not text:
            raise UserError("empty-text", "write what you want to close")
        _refuse_long(text, LONGEST_GAP)
        _refuse_long(origin, LONGEST_GAP)
        with self._database.change() as change:
            done = change.execute(
                "INSERT INTO gaps (learner, text, origin, created_ms) VALUES (?, ?, ?, ?)",
                (learner, text, origin, now.wall_ms),
            )
        return GapLine(int(done.lastrowid or 0), text, origin, False)

    def change_gap(self, learner: str, number: int, text: str | None, done: bool | None) -> GapLine:
        """Other words for a line, or whether it is closed.

        Raises:
            Missing: The learner has no such line.
        """
        found = next((gap for gap in self.gaps(learner) if gap.id == number), None)
        if found is None:
            raise Missing("no-such-gap", "there is no such line in the gap log")
        changed = GapLine(
            number,
            found.text if text is None else text.strip() or found.text,
            found.origin,
            found.done if done is None else done,
        )
        _refuse_long(changed.text, LONGEST_GAP)
        with self._database.change() as change:
            change.execute(
                "UPDATE gaps SET text = ?, done = ? WHERE id = ?", (changed.text, int(changed.done), number)
            )
        return changed

    # pages

    def draft(self, learner: str) -> str | None:
        """The policy as it was last kept; None if there is none."""
        return self._page(learner, _DRAFT)

    def put_draft(self, learner: str, text: str, now: Moment) -> None:
        self._put_page(learner, _DRAFT, text, now)

    def workshop(self, learner: str) -> dict[str, Any]:
        """The workshop's steps and notes, as they were kept."""
        text = self._page(learner, _WORKSHOP)
        value: dict[str, Any] = json.loads(text) if text else {}
        return value

    def put_workshop(self, learner: str, value: dict[str, Any], now: Moment) -> None:
        self._put_page(learner, _WORKSHOP, json.dumps(value, sort_keys=True), now)

    def _page(self, learner: str, name: str) -> str | None:
        rows = self._database.rows("SELECT text FROM pages WHERE learner = ? AND name = ?", learner, name)
        return str(rows[0]["text"]) if rows else None

    def _put_page(self, learner: str, name: str, text: str, now: Moment) -> None:
        _refuse_long(text, LONGEST_PAGE)
        with self._database.change() as change:
            change.execute(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?)", (learner, name, text, now.wall_ms)
            )


def _refuse_long(text: str, limit: int) -> None:
    if len(text) > limit:
        raise UserError("text-too-long", f"a text here has at most {limit} characters, not {len(text)}")
    if "\x00" in text:
        raise UserError("bad-text", "a text holds no NUL")
