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
# What a learner may set, each with its words; the first holds until another is set.
_SETTINGS: dict[str, tuple[str, ...]] = {
    "clock": CLOCKS,
    "theme": ("system", "light", "dark"),
    "shortcuts": ("on", "off"),
}


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
        return cast(Clock, self.settings(learner)["clock"])

    def settings(self, learner: str) -> dict[str, str]:
        """All that can be set, as it is."""
        rows = self._database.rows("SELECT name, value FROM settings WHERE learner = ?", learner)
        kept = {row["name"]: str(row["value"]) for row in rows}
        return {
            name: kept[name] if kept.get(name) in words else words[0] for name, words in _SETTINGS.items()
        }

    def change_settings(self, learner: str, wanted: dict[str, str]) -> dict[str, str]:
        """Keep what is set anew; a clock is for rounds that begin later.

        Raises:
            UserError: There is no such setting, or it has no such word.
        """
        for name, value in wanted.items():
            words = _SETTINGS.get(name, ())
            if value not in words:
                raise UserError("bad-setting", f"the setting {name} is one of {', '.join(words)}")
        self.find(learner)
        with self._database.change() as change:
            change.executemany(
                "INSERT INTO settings VALUES (?, ?, ?) "
                "ON CONFLICT (learner, name) DO UPDATE SET value = excluded.value",
                [(learner, name, value) for name, value in wanted.items()],
            )
        return self.settings(learner)
