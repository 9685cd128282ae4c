"""Everything that is kept of learners, behind one door."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from stockade.lab.game.book import Book
from stockade.lab.game.moment import Moment
from stockade.lab.pack.pack import Pack
from stockade.lab.progress.archive import Archive
from stockade.lab.progress.database import Database, open_database
from stockade.lab.progress.desk import Desk
from stockade.lab.progress.people import People
from stockade.lab.progress.play import Play
from stockade.lab.progress.proof import Proof
from stockade.lab.progress.review import Review


class Store:
    """The parts, each with its own business.

    Attributes:
        people: Learners and settings.
        play: Rounds and drills.
        desk: Notes, gap log, policy draft, workshop.
        review: Schedule, numbers, history.
        proof: Signed results and share cards.
        archive: Export and reset.
    """

    def __init__(self, database: Database, pack: Pack) -> None:
        self.database = database
        self.book = Book(pack)
        self.people = People(database)
        self.desk = Desk(database)
        self.review = Review(database, self.book)
        self.play = Play(database, self.book, self.people, self.desk, self.review)
        self.proof = Proof(self.play, self.people)
        self.archive = Archive(database, self.people)

    def close(self) -> None:
        self.database.close()


def open_store(folder: Path | None, pack: Pack) -> Store:
    """Open the store in a folder; None keeps it in memory.

    Raises:
        HostError: The folder or the file cannot be used.
        UserError: The file is damaged, of another program, or of a newer version.
    """
    return Store(open_database(folder), pack)


class Now:
    """The clock that the server hands in: made once at its start, called for each request."""

    def __init__(self) -> None:
        self._start = secrets.token_hex(8)

    def __call__(self) -> Moment:
        return Moment(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000, self._start)
