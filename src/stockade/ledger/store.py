"""Writing a ledger: the only module of this package that changes the disk.

`append` gives a sequence number at once and never waits for the disk. A committer
thread takes everything that one turn of the caller's loop has queued, writes it with one
`write`, makes it durable with one `fdatasync`, and only then says so in the loop. It is
woken once a turn and not by each record: else it fights the loop for the interpreter
lock and commits groups of one (measured: half as many tunnels a second).

What must stay true: **`on_durable` is called only for a record that is on the disk, in
order, and after the first failure never again.** The gateway acts in `on_durable`, so a
ledger that cannot be written lets nothing out. There is no retry: after a failed
`fdatasync` the kernel may have dropped the pages (fsyncgate, 2018), and a second call
that succeeds would prove nothing.

On disk: ``SHELF/RUN_ID/records.jsonl``, one record a line. The writer holds a lock
(flock) on it, by which readers tell a run that goes on from one that was cut off.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from stockade.errors import ContainmentError, HostError, InternalError, StockadeError, UserError
from stockade.ledger import record as records
from stockade.ledger.record import Redactor

RECORDS_FILE: Final = "records.jsonl"
QUEUE_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""About 50,000 records, more than two seconds of the slowest disk that we care for."""
STALL_LIMIT_S: Final = 5.0
"""How long a full queue may make the caller wait before the ledger counts as failed."""

Wake = Callable[[Callable[[], None]], None]
OnDurable = Callable[[int], None]


class RecordFile:
    """The open file of one run: where bytes meet the disk. Tests put a failing one here."""

    def __init__(self, shelf_fd: int, folder_fd: int, fd: int, size_bytes: int) -> None:
        self._shelf_fd = shelf_fd
        self._folder_fd = folder_fd
        self._fd = fd
        self._size_bytes = size_bytes

    def write(self, data: bytes) -> None:
        """Append in one call; a short write is a full disk that has not said so yet."""
        written = os.write(self._fd, data)
        if written != len(data):
            raise OSError(errno.ENOSPC, f"short write: {written} of {len(data)} bytes")
        self._size_bytes += written

    def sync(self) -> None:
        """Make what was written durable, and look whether it is still where it should be."""
        os.fdatasync(self._fd)
        status = os.fstat(self._fd)
        if status.st_nlink == 0:
            raise OSError(errno.ENOENT, "the ledger file was removed or replaced")
        if status.st_size != self._size_bytes:
            raise OSError(errno.EIO, f"the ledger file has {status.st_size} bytes, not {self._size_bytes}")

    def sync_folders(self) -> None:
        """Make the new names durable; once, after the first record."""
        os.fsync(self._folder_fd)
        os.fsync(self._shelf_fd)

    def close(self) -> None:
        for fd in (self._fd, self._folder_fd, self._shelf_fd):
            os.close(fd)


class _Queued:
    """A record on its way to the disk."""

    __slots__ = ("line", "on_durable", "seq")

    def __init__(self, seq: int, line: bytes, on_durable: OnDurable | None) -> None:
        self.seq = seq
        self.line = line
        self.on_durable = on_durable


class Ledger:
    """The record of one run, open for writing. Made by `open` or `recover`.

    `append` may be called from any thread. `on_durable` and `on_failure` are called
    through `wake`, which must run what it is given in the caller's own loop.
    """

    def __init__(
        self,
        run: str,
        file: RecordFile,
        wake: Wake,
        on_failure: Callable[[Exception], None],
        *,
        next_seq: int = 0,
        time_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        redaction_key: bytes | None = None,
    ) -> None:
        self.run = run
        self.failed = False
        self.failure: StockadeError | None = None
        self.redactor = Redactor(redaction_key or os.urandom(32))
        self.counts: dict[str, int] = {}
        """How many records of each kind, and of each verdict, were appended."""
        self._id_prefix = records.decision_prefix(run)
        self._file = file
        self._wake = wake
        self._on_failure = on_failure
        self._time_ns = time_ns
        self._monotonic_ns = monotonic_ns
        self._next_seq = next_seq
        self._closing = False
        self._second = -1
        self._second_text = ""
        self._lock = threading.Lock()
        self._queue: list[_Queued] = []
        self._is_flush_due = False
        self._is_committing = False
        self._work = threading.Semaphore(0)
        self._queued_bytes = 0
        self._durable_bytes = 0
        self._group_done = threading.Event()
        self._committer = threading.Thread(target=self._commit_groups, name="ledger", daemon=True)
        self._committer.start()

    @classmethod
    def open(
        cls,
        shelf: Path,
        run: str,
        *,
        wake: Wake,
        on_failure: Callable[[Exception], None],
        redaction_key: bytes | None = None,
        shelf_identity: tuple[int, int] | None = None,
    ) -> Ledger:
        """Start the ledger of a new run; the caller appends ``run.opened`` next.

        Args:
            shelf_identity: (device, inode) that the shelf must have, where it was judged before.

        Raises:
            UserError: The run's name cannot be a folder name, or exists already.
            HostError: The shelf cannot be written, others could replace what is in it, or did.
        """
        if not records.is_run_id(run):
            raise UserError("run-name", f"{records.clean_text(run, 80)!r} cannot name a run")
        file = _create_record_file(shelf, run, shelf_identity)
        return cls(run, file, wake, on_failure, redaction_key=redaction_key)

    @classmethod
    def recover(cls, shelf: Path, run: str, *, wake: Wake, on_failure: Callable[[Exception], None]) -> Ledger:
        """Go on with a run whose writer died: cut the torn last line and record that.

        Raises:
            UserError: The run is closed, or another process is still writing it.
            HostError: It cannot be opened.
            IntegrityError: The whole records before the torn one are damaged.
        """
        from stockade.ledger.shelf import RunReader

        reader = RunReader(shelf / run)
        last_seq = -1
        for last in reader.read():
            last_seq = int(last["seq"])
        if reader.closed:
            raise UserError("run-closed", f"run {run} is closed; start a new one")
        file = _reopen_record_file(shelf, run, reader.whole_bytes)
        ledger = cls(run, file, wake, on_failure, next_seq=last_seq + 1)
        if last_seq >= 0:  # else not even run.opened became durable, and that is what comes first
            ledger.append(records.RECOVERED, {"last_seq": last_seq, "dropped_bytes": reader.torn_bytes})
        return ledger

    def append(self, kind: str, fields: Mapping[str, object], on_durable: OnDurable | None = None) -> int:
        """Queue a record and give its sequence number.

        `on_durable(seq)` follows when the record is on the disk. After a failure the
        record is dropped and `on_durable` never comes.

        Raises:
            InternalError: The record has not the shape of its kind, or the ledger is closed.
        """
        with self._lock:
            if self._closing:
                raise InternalError("ledger-closed", f"a {kind} record after the ledger was closed")
            seq = self._next_seq
            records.judge_shape(kind, fields, seq)
            line = records.encode_record(self._complete(kind, fields, seq), self.redactor) + b"\n"
            self._next_seq = seq + 1
            self._count(kind, fields)
            if self.failed:
                return seq
            self._queued_bytes += len(line)
            self._queue.append(_Queued(seq, line, on_durable))
            is_first = not (self._is_flush_due or self._is_committing)
            self._is_flush_due = True
        if is_first:
            self._wake(self._flush)
        if self._queued_bytes - self._durable_bytes > QUEUE_LIMIT_BYTES:
            self._wait_for_room()
        return seq

    def heartbeat(self, **fields: object) -> int:
        """Append a sign of life, so that silence in the ledger means silence of the worker."""
        return self.append(
            records.HEARTBEAT, {"queued_bytes": self._queued_bytes - self._durable_bytes, **fields}
        )

    def close(self) -> None:
        """Write what is queued, make it durable and let the file go.

        The caller appends ``run.closed`` before, and looks at `failure` after.
        """
        with self._lock:
            if self._closing:
                return
            self._closing = True
        self._work.release()
        self._committer.join(2 * STALL_LIMIT_S)
        if self._committer.is_alive():  # the disk hangs; the thread is a daemon and dies with us
            self._fail(ContainmentError("ledger-stalled", "the ledger's disk does not answer"))

    # --- the caller's side -----------------------------------------------------------------

    def _complete(self, kind: str, fields: Mapping[str, object], seq: int) -> dict[str, object]:
        record = dict(fields)
        record["seq"] = seq
        record["time"] = self._timestamp()
        record["mono_ns"] = self._monotonic_ns()
        record["kind"] = kind
        record["run"] = self.run
        if kind == records.ATTEMPT:
            record["id"] = f"{self._id_prefix}{seq}"
        return record

    def _timestamp(self) -> str:
        second, nanosecond = divmod(self._time_ns(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{nanosecond // 1000:06d}Z"

    def _count(self, kind: str, fields: Mapping[str, object]) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == records.ATTEMPT:
            verdict = str(fields["verdict"])
            self.counts[verdict] = self.counts.get(verdict, 0) + 1

    def _wait_for_room(self) -> None:
        # The loop stands still here. That is meant: it must not take in more than can be recorded.
        deadline = time.monotonic() + STALL_LIMIT_S
        while self._queued_bytes - self._durable_bytes > QUEUE_LIMIT_BYTES and not self.failed:
            self._group_done.clear()
            self._work.release()  # the loop stands still and cannot flush
            if not self._group_done.wait(0.1) and time.monotonic() > deadline:
                self._fail(ContainmentError("ledger-stalled", "the ledger's disk is too slow or hangs"))

    def _fail(self, error: StockadeError) -> None:
        with self._lock:
            if self.failed:
                return
            self.failed = True
            self.failure = error
        self._group_done.set()
        self._wake(lambda: self._on_failure(error))

    # --- the committer's side --------------------------------------------------------------

    def _flush(self) -> None:
        """Set the committer to work on what this turn of the loop has appended."""
        if self._queue and not self._is_committing:
            self._work.release()

    def _commit_groups(self) -> None:
        first = True
        try:
            while not self.failed:
                self._work.acquire()
                group, is_last = self._take_group()
                if group:
                    self._commit(group, first)
                    first = False
                if is_last:
                    break
        except OSError as error:
            self._fail(_write_failure(self.run, error))
        except Exception as error:  # noqa: BLE001  a fault of ours must stop egress as well
            self._fail(InternalError("ledger-fault", f"{type(error).__name__}: {error}"))
        finally:
            self._file.close()

    def _take_group(self) -> tuple[list[_Queued], bool]:
        """Take all that is queued; the flag says that none will follow."""
        with self._lock:
            group, self._queue = self._queue, []
            self._is_flush_due = False
            self._is_committing = bool(group)
            return group, self._closing

    def _commit(self, group: list[_Queued], first: bool) -> None:
        data = b"".join([queued.line for queued in group])
        self._file.write(data)
        self._file.sync()
        if first:
            self._file.sync_folders()
        self._durable_bytes += len(data)
        self._group_done.set()
        self._wake(lambda: self._committed(group))

    def _committed(self, group: list[_Queued]) -> None:
        self._is_committing = False
        self._flush()  # first, so that the disk works while the loop acts
        self._tell(group)

    def _tell(self, group: list[_Queued]) -> None:
        for queued in group:
            if self.failed:  # a later group failed meanwhile: from then on nothing goes out
                return
            if queued.on_durable is not None:
                queued.on_durable(queued.seq)


# --- opening -------------------------------------------------------------------------------


def default_shelf(environment: Mapping[str, str] = os.environ) -> Path:
    """The shelf when none is named: ``$XDG_STATE_HOME/stockade/ledger``.

    Raises:
        UserError: Neither XDG_STATE_HOME nor HOME says where state belongs.
    """
    state = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # the XDG specification says to ignore relative ones
        return Path(state, "stockade", "ledger")
    home = environment.get("HOME", "")
    if not os.path.isabs(home):
        raise UserError(
            "ledger-place", "neither HOME nor XDG_STATE_HOME is set", "name a folder with --ledger DIR"
        )
    return Path(home, ".local", "state", "stockade", "ledger")


_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def _create_record_file(shelf: Path, run: str, identity: tuple[int, int] | None = None) -> RecordFile:
    opened: list[int] = []
    try:
        shelf_fd = _open_shelf(shelf, may_make=identity is None)
        opened.append(shelf_fd)
        _refuse_another(shelf, shelf_fd, identity)
        os.mkdir(run, 0o700, dir_fd=shelf_fd)
        folder_fd = os.open(run, _FOLDER_FLAGS, dir_fd=shelf_fd)
        opened.append(folder_fd)
        fd = os.open(RECORDS_FILE, _FILE_FLAGS | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder_fd)
        opened.append(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return RecordFile(shelf_fd, folder_fd, fd, 0)
    except FileExistsError as error:
        _close_all(opened)
        raise UserError(
            "run-exists", f"run {run} is already on the shelf {shelf}", "give the run another name"
        ) from error
    except OSError as error:
        _close_all(opened)
        raise _unwritable(shelf, error) from error
    except StockadeError:
        _close_all(opened)
        raise


def _reopen_record_file(shelf: Path, run: str, whole_bytes: int) -> RecordFile:
    opened: list[int] = []
    try:
        shelf_fd = _open_shelf(shelf, may_make=True)
        opened.append(shelf_fd)
        folder_fd = os.open(run, _FOLDER_FLAGS, dir_fd=shelf_fd)
        opened.append(folder_fd)
        fd = os.open(RECORDS_FILE, _FILE_FLAGS, dir_fd=folder_fd)
        opened.append(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, whole_bytes)
        return RecordFile(shelf_fd, folder_fd, fd, whole_bytes)
    except BlockingIOError as error:
        _close_all(opened)
        raise UserError("run-busy", f"another process is writing run {run}") from error
    except OSError as error:
        _close_all(opened)
        raise _unwritable(shelf, error) from error
    except StockadeError:
        _close_all(opened)
        raise


def _open_shelf(shelf: Path, *, may_make: bool) -> int:
    """Open the shelf, and refuse one whose content others could swap."""
    if may_make:
        with contextlib.suppress(FileExistsError):
            os.makedirs(shelf.parent, 0o700, exist_ok=True)
            os.mkdir(shelf, 0o700)
    shelf_fd = os.open(shelf, _FOLDER_FLAGS)
    mode = os.fstat(shelf_fd).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        os.close(shelf_fd)
        raise HostError(
            "ledger-unsafe",
            f"everybody may rename what is in {shelf}",
            f"chmod o-w {shelf}, or choose another folder",
        )
    return shelf_fd


def _refuse_another(shelf: Path, shelf_fd: int, identity: tuple[int, int] | None) -> None:
    status = os.fstat(shelf_fd)
    if identity is not None and (status.st_dev, status.st_ino) != identity:
        raise HostError(
            "ledger-unsafe",
            f"{shelf} was replaced while the run was being started",
            "keep the ledger where no command writes",
        )


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


_REMEDIES = {
    errno.ELOOP: "it is a symbolic link; name the folder itself",
    errno.ENOTDIR: "a part of it is a file or a symbolic link; name a folder",
    errno.ENOSPC: "the disk is full; make room or choose another folder with --ledger DIR",
    errno.EDQUOT: "your quota is used up; make room or choose another folder with --ledger DIR",
    errno.EROFS: "the file system is read-only; choose another folder with --ledger DIR",
    errno.EACCES: "you may not write there; choose another folder with --ledger DIR",
    errno.EPERM: "you may not write there; choose another folder with --ledger DIR",
}


def _unwritable(shelf: Path, error: OSError) -> HostError:
    hint = _REMEDIES.get(error.errno or 0, "choose another folder with --ledger DIR")
    return HostError("ledger-unwritable", f"cannot write a ledger in {shelf}: {error.strerror}", hint)


def _write_failure(run: str, error: OSError) -> ContainmentError:
    hint = _REMEDIES.get(error.errno or 0)
    return ContainmentError(
        "ledger-unwritable", f"the ledger of run {run} cannot be written: {error.strerror}", hint
    )
