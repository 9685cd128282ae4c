"""Reading ledgers: one run, a shelf of runs in order, and runs as they happen.

A crash can leave half a line at the end of a file. Readers stop at the last whole
record and say how many bytes follow it; anything else that is not a record in its
place is damage, and an error that names the line. Reading takes no lock and never writes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from stockade.errors import IntegrityError, UserError
from stockade.ledger.record import CLOSED, KINDS, RECORD_LIMIT_BYTES, is_run_id

RECORDS_FILE: Final = "records.jsonl"
_CHUNK_BYTES = 1024 * 1024

Record = dict[str, Any]


class RunState(IntEnum):
    """How a run's ledger ends. The zero value claims the least."""

    OPEN = 0
    """No closing record and no writer: cut off, perhaps with records missing."""
    RUNNING = 1
    """No closing record yet, and a process holds the writer's lock."""
    CLOSED = 2
    """The closing record is there."""


class RunReader:
    """Reads one run, and reads on where it stopped when the run has grown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder.name
        self.closed = False
        self.whole_bytes = 0
        """Length of all whole records that were read."""
        self.torn_bytes = 0
        """Bytes after the last whole record: what a crash, or a write that goes on, left."""
        self._next_seq = 0

    def read(self) -> Iterator[Record]:
        """Give the records that were not given yet, in order.

        Raises:
            IntegrityError: A whole line is not the record that belongs there.
            UserError: The run is not there or may not be read.
        """
        try:
            with open(self.folder / RECORDS_FILE, "rb", opener=_no_links) as file:
                if os.fstat(file.fileno()).st_size < self.whole_bytes:
                    raise self._damage("the file became shorter")
                file.seek(self.whole_bytes)
                yield from self._records_of(file)
        except OSError as error:
            raise UserError(
                "ledger-unreadable", f"cannot read run {self.run} in {self.folder.parent}: {error.strerror}"
            ) from error

    def state(self) -> RunState:
        """Say how the run ends, as far as it was read."""
        if self.closed:
            return RunState.CLOSED
        return RunState.RUNNING if _is_locked(self.folder / RECORDS_FILE) else RunState.OPEN

    def _records_of(self, file: Any) -> Iterator[Record]:
        rest = b""
        while chunk := file.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                record = self._parse(line)
                self.whole_bytes += len(line) + 1
                self._next_seq += 1
                self.closed = record["kind"] == CLOSED
                yield record
            if len(rest) > RECORD_LIMIT_BYTES:
                raise self._damage("a line is longer than a record can be")
        self.torn_bytes = len(rest)

    def _parse(self, line: bytes) -> Record:
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damage("not JSON") from error
        if not isinstance(record, dict) or record.get("kind") not in KINDS:
            raise self._damage("not a record")
        if self.closed:
            raise self._damage("a record after run.closed")
        if record.get("run") != self.run:
            raise self._damage("a record of another run")
        if record.get("seq") != self._next_seq or type(record["seq"]) is not int:
            raise self._damage("a record is missing, repeated or in the wrong place")
        return record

    def _damage(self, problem: str) -> IntegrityError:
        place = self.folder / RECORDS_FILE
        return IntegrityError(
            "ledger-damaged", f"{place}: line {self._next_seq + 1} (record {self._next_seq}): {problem}"
        )


def list_runs(shelf: Path) -> list[str]:
    """Name the runs on a shelf, oldest first. Folders that hold no ledger are passed over.

    Order is by the time of the first record, then by name. A run whose first record is
    not durable yet has not begun and is passed over too.

    Raises:
        UserError: The shelf is not there or may not be read.
    """
    return _in_order(shelf, _names(shelf))


def list_resting_runs(shelf: Path) -> list[str]:
    """Name the runs that nobody writes any more, but for the last run: what a follower need not show."""
    return [run for run in list_runs(shelf)[:-1] if not _is_locked(shelf / run / RECORDS_FILE)]


def _names(shelf: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(shelf) if is_run_id(entry.name)]
    except OSError as error:
        raise UserError("ledger-unreadable", f"cannot read the shelf {shelf}: {error.strerror}") from error


def _in_order(shelf: Path, names: list[str]) -> list[str]:
    opened = [(_opened_at(shelf / name), name) for name in names]
    return [name for time, name in sorted(opened, key=lambda o: (o[0] or "", o[1])) if time is not None]


def _opened_at(folder: Path) -> str | None:
    """Time of a run's first record, empty if that is damaged, None if there is no such record."""
    try:
        with open(folder / RECORDS_FILE, "rb", opener=_no_links) as file:
            line = file.readline(RECORD_LIMIT_BYTES + 1)
    except OSError:
        return None
    if not line.endswith(b"\n") and len(line) <= RECORD_LIMIT_BYTES:
        return None
    try:
        time = msgspec.json.decode(line, type=dict[str, Any]).get("time")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""  # reading the run will say what is wrong
    return time if isinstance(time, str) else ""


def find_run(shelf: Path, wanted: str) -> str:
    """Give the full name of a run: ``last``, a name, or the only name that ends or begins so.

    Raises:
        UserError: No run, or more than one, is meant.
    """
    runs = list_runs(shelf)
    if not runs:
        raise UserError("no-runs", f"there is no run on the shelf {shelf}")
    if wanted == "last":
        return runs[-1]
    if wanted in runs:
        return wanted
    meant = [run for run in runs if run.startswith(wanted) or run.endswith(wanted)]
    if len(meant) == 1:
        return meant[0]
    many = "more than one run is" if meant else "no run is"
    raise UserError(
        "no-such-run", f"{many} called {wanted!r} on the shelf {shelf}", f"the last one is {runs[-1]}"
    )


def find_running(shelf: Path, wanted: str) -> str:
    """As `find_run`, but ``last`` is the last run that still goes on, if one does."""
    if wanted == "last":
        running = [run for run in list_runs(shelf) if _is_locked(shelf / run / RECORDS_FILE)]
        if running:
            return running[-1]
    return find_run(shelf, wanted)


class ShelfFollower:
    """Gives the new records of all runs, or of one, each time it is asked.

    Args:
        shelf: May be missing; then there is nothing yet.
        run: Only this one.
        passed_over: Runs whose records are not wanted.
    """

    def __init__(self, shelf: Path, run: str | None = None, passed_over: Iterable[str] = ()) -> None:
        self._shelf = shelf
        self._only = run
        self._passed_over = set(passed_over)
        self._readers: dict[str, RunReader] = {}
        self._given_up: set[RunReader] = set()
        self.damages: list[IntegrityError] = []

    def read(self) -> Iterator[tuple[RunReader, Record]]:
        """Give what was written since the last call: runs in order, records in order within each.

        A damaged run does not hide the others: its whole records come, the error goes to `damages`.
        """
        for run in self._new_runs():
            self._readers[run] = RunReader(self._shelf / run)
        for reader in self._readers.values():
            if not reader.closed and reader not in self._given_up:
                yield from self._records_of(reader)

    def _records_of(self, reader: RunReader) -> Iterator[tuple[RunReader, Record]]:
        try:
            for record in reader.read():
                yield reader, record
        except IntegrityError as error:
            self.damages.append(error)
            self._given_up.add(reader)

    def readers(self) -> list[RunReader]:
        """The runs that were met so far, oldest first."""
        return list(self._readers.values())

    def _new_runs(self) -> list[str]:
        if self._only is not None:
            return [] if self._readers else [self._only]
        known = self._passed_over.union(self._readers)
        names = _names(self._shelf) if self._shelf.exists() else []
        return _in_order(self._shelf, [name for name in names if name not in known])


def _no_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _is_locked(path: Path) -> bool:
    """True if a writer holds the lock; tried with a shared lock that is given back at once."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False
