"""Who plays: learners by name, and their settings."""

from __future__ import annotations

import secrets
import unicodedata
from typing import cast

from msgspec import Struct

from stockade.errors import UserError
from stockade.lab.game.moment import Moment
from stockade.lab.game.tiers import CLOCKS, Clock
from stockade.lab.progress.database import Database

DEFAULT_NAME = "you"
LONGEST_NAME = 40


class Missing(UserError):  # noqa: N818
    """There is no such thing."""


class Learner(Struct, frozen=True):
    """Somebody who plays on this machine; a name is no account and protects nothing."""

    id: str
    name: str


def parse_name(text: str) -> str:
    """A name as it is shown: printable, one space between words, up to 40 characters.

    Raises:
        UserError: It is empty, too long, or holds what cannot be shown.
    """
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError("bad-name", f"a name has 1 to {LONGEST_NAME} characters that can be shown")
    return name


class People:
    """The learners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enter(self, text: str, now: Moment) -> Learner:
        """The learner of this name, who is new if there was none; capitals make no other person."""
        name = parse_name(text)
        folded = name.casefold()
        with self._database.change() as change:
            found = change.execute("SELECT id, name FROM learners WHERE folded = ?", (folded,)).fetchone()
            if found is None:
                found = {"id": secrets.token_hex(8), "name": name}
                change.execute(
                    "INSERT INTO learners VALUES (?, ?, ?, ?)", (found["id"], name, folded, now.wall_ms)
                )
        return Learner(found["id"], found["name"])

    def find(self, learner: str) -> Learner:
        """
        Raises:
            Missing: There is no such learner.
        """
        for row in self._database.rows("SELECT id, name FROM learners WHERE id = ?", learner):
            return Learner(row["id"], row["name"])
        raise Missing("no-such-learner", "there is no such learner")

    def all(self) -> list[Learner]:
        """Everybody, in order of name."""
        rows = self._database.rows("SELECT id, name FROM learners ORDER BY folded")
        return [Learner(row["id"], row["name"]) for row in rows]

    def clock(self, learner: str) -> Clock:
        """The clock setting, `on` if none was made."""
        rows = self._database.rows("SELECT value FROM settings WHERE learner = ? AND name = 'clock'", learner)
        return cast(Clock, rows[0]["value"]) if rows else "on"

    def set_clock(self, learner: str, clock: str) -> Clock:
        """Keep a clock setting; it is for rounds that begin later.

        Raises:
            UserError: It is none.
        """
        if clock not in CLOCKS:
            raise UserError("bad-setting", f"the clock is one of {', '.join(CLOCKS)}")
        self.find(learner)
        with self._database.change() as change:
            change.execute(
                "INSERT INTO settings VALUES (?, 'clock', ?) "
                "ON CONFLICT (learner, name) DO UPDATE SET value = excluded.value",
                (learner, clock),
            )
        return clock
