"""The file that keeps what learners did: SQLite, in the user's data folder.

One file for all learners of this machine. Several processes may have it open: each change is one
transaction that takes the write lock first, so of two that do the same, the second sees what the first did.
A file that is damaged, of another program or of a newer version is refused and never written to.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stockade.errors import HostError, UserError

FILE_NAME = "progress.db"
VERSION = 1
APPLICATION = 0x53544B4C  # "STKL", in the file's header: tells our files from other SQLite files
_WAIT_S = 5.0

_SCHEMA = """
CREATE TABLE learners (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL UNIQUE, created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE settings (
  learner TEXT NOT NULL REFERENCES learners ON DELETE CASCADE, name TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (learner, name)
) STRICT;
CREATE TABLE rounds (
  id TEXT PRIMARY KEY, learner TEXT NOT NULL REFERENCES learners ON DELETE CASCADE,
  kind TEXT NOT NULL, tier INTEGER, seed TEXT NOT NULL, bank TEXT NOT NULL, clock TEXT NOT NULL,
  started_ms INTEGER NOT NULL, ended_ms INTEGER, is_left INTEGER NOT NULL DEFAULT 0,
  points INTEGER, percent REAL, grade TEXT
) STRICT;
CREATE INDEX rounds_of ON rounds (learner, started_ms);
CREATE TABLE steps (
  round TEXT NOT NULL REFERENCES rounds ON DELETE CASCADE, place INTEGER NOT NULL, scenario TEXT NOT NULL,
  shown_wall_ms INTEGER, shown_mono_ms INTEGER, shown_start TEXT, hints INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (round, place)
) STRICT;
-- One answer to one event, whoever asks: the key holds it, not only the code.
CREATE TABLE answers (
  round TEXT NOT NULL, place INTEGER NOT NULL, decision TEXT NOT NULL, risk TEXT NOT NULL,
  control TEXT NOT NULL, ms INTEGER, at_ms INTEGER NOT NULL,
  scenario TEXT NOT NULL, key_decision TEXT NOT NULL, key_risk TEXT NOT NULL, key_control TEXT NOT NULL,
  key_class TEXT NOT NULL, is_right INTEGER NOT NULL,
  PRIMARY KEY (round, place), FOREIGN KEY (round, place) REFERENCES steps ON DELETE CASCADE
) STRICT;
CREATE TABLE notes (
  round TEXT NOT NULL REFERENCES rounds ON DELETE CASCADE, name TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (round, name)
) STRICT;
CREATE TABLE gaps (
  id INTEGER PRIMARY KEY AUTOINCREMENT, learner TEXT NOT NULL REFERENCES learners ON DELETE CASCADE,
  text TEXT NOT NULL, origin TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0, created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE cards (
  learner TEXT NOT NULL REFERENCES learners ON DELETE CASCADE, scenario TEXT NOT NULL, card TEXT NOT NULL,
  due_ms INTEGER NOT NULL, seen INTEGER NOT NULL, missed INTEGER NOT NULL, was_right INTEGER NOT NULL,
  at_ms INTEGER NOT NULL, PRIMARY KEY (learner, scenario)
) STRICT;
CREATE TABLE pages (
  learner TEXT NOT NULL REFERENCES learners ON DELETE CASCADE, name TEXT NOT NULL, text TEXT NOT NULL,
  saved_ms INTEGER NOT NULL, PRIMARY KEY (learner, name)
) STRICT;
"""


def default_folder() -> Path:
    """Where a user's progress lies (XDG base directory specification)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return base / "stockade" / "lab"


class Database:
    """One connection, used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self.path = path

    def rows(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        """What a SELECT finds."""
        with self._lock, _mapped(self.path):
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """A transaction with the write lock from its beginning: all of it or nothing."""
        with self._lock, _mapped(self.path):
            if self._connection.in_transaction:  # a change that is part of a larger one
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def open_database(folder: Path | None) -> Database:
    """Open the file in a folder, which is made if it is missing; None keeps all in memory.

    Raises:
        HostError: The folder or the file cannot be used.
        UserError: The file is damaged, of another program, or of a newer version.
    """
    path = None if folder is None else _make_place(folder)
    with _mapped(path):
        connection = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=_WAIT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return Database(connection, path)


def _make_place(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / FILE_NAME
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise HostError(
            "no-place-for-progress", f"cannot keep progress in {folder}: {error.strerror}", "--data DIR"
        ) from error
    return path


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise UserError("progress-not-ours", f"{path} is a file of another program", "--data DIR")
    if version > VERSION:
        raise UserError(
            "progress-newer",
            f"{path} was written by a newer Stockade (format {version}; this one knows {VERSION})",
            "use that version, or --data DIR for another place",
        )
    if tables:
        _refuse_damaged(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    # A crash of the program loses nothing, a power cut at most the last answers.
    connection.execute("PRAGMA synchronous = NORMAL")
    _make_tables(connection)


def _refuse_damaged(connection: sqlite3.Connection, path: Path | None) -> None:
    said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise _damaged(path, str(said))


def _make_tables(connection: sqlite3.Connection) -> None:
    """Of two processes that open a new file at once, the second finds the tables made."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in _SCHEMA.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _damaged(path: Path | None, said: str) -> UserError:
    return UserError(
        "progress-damaged",
        f"{path} cannot be read as a progress file: {said.splitlines()[0]}",
        "move it away to begin anew, or --data DIR for another place; it was not changed",
    )


@contextmanager
def _mapped(path: Path | None) -> Iterator[None]:
    """Give faults of SQLite and of the disk our names, once."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise HostError(
            "progress-unavailable",
            f"{path or 'progress'}: {error}",
            "is the disk full, or another program at it?",
        ) from error
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        with suppress(IndexError):
            raise _damaged(path, str(error)) from error
        raise
