"""What the disk can do to a ledger, and that nothing goes out after it.

`on_durable` is what the gateway acts on, so "fails closed" means here: after the first
fault it is never called again, and `on_failure` is called exactly once.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stockade.errors import ContainmentError, HostError, InternalError, StockadeError
from stockade.ledger import store
from stockade.ledger.shelf import RunReader
from stockade.ledger.store import Ledger, RecordFile
from stockade.reactor import Reactor

RUN = "run-1"


class Loop:
    def __init__(self) -> None:
        self.reactor = Reactor()
        self.durable: list[int] = []
        self.failures: list[Exception] = []

    def use(self, file: RecordFile) -> Ledger:
        return Ledger(RUN, file, self.reactor.call_threadsafe, self.failures.append)

    def open(self, shelf: Path) -> Ledger:
        return Ledger.open(shelf, RUN, wake=self.reactor.call_threadsafe, on_failure=self.failures.append)

    def turn_until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self.reactor.turn(10)

    def append_and_wait(self, ledger: Ledger, kind: str = "attempt") -> None:
        """Append one record and wait until the ledger says that it is durable or that it failed."""
        fields = {"verdict": "deny"} if kind == "attempt" else {}
        seq = ledger.append(kind, fields, self.durable.append)
        self.turn_until(lambda: seq in self.durable or self.failures)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.reactor.close()


class FailingFile(RecordFile):
    """A real record file whose Nth write, sync or folder sync fails."""

    def __init__(self, real: RecordFile, call: str, nth: int, error: Exception) -> None:
        self._real, self._call, self._left, self._error = real, call, nth, error

    def _step(self, call: str) -> None:
        if call == self._call:
            self._left -= 1
            if self._left == 0:
                raise self._error

    def write(self, data: bytes) -> None:
        self._step("write")
        self._real.write(data)

    def sync(self) -> None:
        self._step("sync")
        self._real.sync()

    def sync_folders(self) -> None:
        self._step("folders")
        self._real.sync_folders()

    def close(self) -> None:
        self._real.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("nth", [1, 2, 5])
@pytest.mark.parametrize("call", ["write", "sync"])
def test_after_the_nth_fault_nothing_is_durable_any_more(
    tmp_path: Path, loop: Loop, call: str, nth: int, code: int
) -> None:
    file = FailingFile(store._create_record_file(tmp_path, RUN), call, nth, OSError(code, os.strerror(code)))
    ledger = loop.use(file)
    loop.append_and_wait(ledger, "run.opened")
    while not loop.failures:
        loop.append_and_wait(ledger)
    assert loop.durable == list(range(nth - 1))  # the records before the fault, and no other
    assert ledger.failed
    assert isinstance(loop.failures[0], ContainmentError)
    assert loop.failures[0].code == "ledger-unwritable"

    ledger.append("attempt", {"verdict": "allow"}, loop.durable.append)
    ledger.close()
    loop.reactor.turn(0)
    assert loop.durable == list(range(nth - 1))
    assert len(loop.failures) == 1


def test_a_fault_while_syncing_the_folder_counts_as_well(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.use(
        FailingFile(store._create_record_file(tmp_path, RUN), "folders", 1, OSError(errno.EIO, "I/O error"))
    )
    loop.append_and_wait(ledger, "run.opened")
    assert loop.durable == []
    assert ledger.failed


def test_a_fault_of_ours_in_the_committer_stops_egress_too(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.use(FailingFile(store._create_record_file(tmp_path, RUN), "write", 1, ValueError("bug")))
    loop.append_and_wait(ledger, "run.opened")
    assert loop.durable == []
    assert isinstance(loop.failures[0], InternalError)


def test_a_group_that_was_durable_before_the_fault_is_not_told_after_it(tmp_path: Path, loop: Loop) -> None:
    """The word waits in the caller's loop while the next group fails: then it is not said any more."""
    ledger = loop.use(
        FailingFile(store._create_record_file(tmp_path, RUN), "write", 2, OSError(errno.EIO, "I/O error"))
    )
    words: list[Callable[[], None]] = []
    both_said = threading.Event()

    def hold(word: Callable[[], None]) -> None:
        if word == ledger._flush:
            word()  # the loop's turn ends
            return
        words.append(word)
        both_said.set()

    ledger._wake = hold
    ledger.append("run.opened", {}, loop.durable.append)
    assert both_said.wait(10)
    both_said.clear()
    ledger.append("attempt", {"verdict": "allow"}, loop.durable.append)
    ledger._work.release()  # as when a caller waits for room and the loop stands still
    assert both_said.wait(10)
    for word in words:
        word()
    assert loop.durable == []
    assert len(loop.failures) == 1


def test_a_short_write_is_a_fault(tmp_path: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = loop.open(tmp_path)
    loop.append_and_wait(ledger, "run.opened")
    real_write = os.write
    monkeypatch.setattr(
        store.os,
        "write",
        lambda fd, data: real_write(fd, data[:-1]) if len(data) > 40 else real_write(fd, data),
    )
    loop.append_and_wait(ledger)
    assert loop.durable == [0]
    assert "short write" in str(loop.failures[0])


# --- the file is changed under us --------------------------------------------------------


def _remove_run(run: Path) -> None:
    shutil.rmtree(run)


def _remove_shelf(run: Path) -> None:
    shutil.rmtree(run.parent)


def _truncate(run: Path) -> None:
    os.truncate(run / "records.jsonl", 10)


def _empty(run: Path) -> None:
    os.truncate(run / "records.jsonl", 0)


def _replace(run: Path) -> None:
    (run / "other").write_bytes((run / "records.jsonl").read_bytes())
    (run / "other").rename(run / "records.jsonl")


def _append(run: Path) -> None:
    with open(run / "records.jsonl", "ab") as file:
        file.write(b"{}\n")


@pytest.mark.parametrize("change", [_remove_run, _remove_shelf, _truncate, _empty, _replace, _append])
def test_a_file_changed_under_the_writer_is_a_fault(
    tmp_path: Path, loop: Loop, change: Callable[[Path], None]
) -> None:
    ledger = loop.open(tmp_path / "shelf")
    loop.append_and_wait(ledger, "run.opened")
    loop.append_and_wait(ledger)
    assert not ledger.failed
    change(tmp_path / "shelf" / RUN)
    loop.append_and_wait(ledger)
    assert ledger.failed
    assert loop.durable == [0, 1]
    ledger.close()


# --- a full queue ------------------------------------------------------------------------


class HangingFile(RecordFile):
    """A disk that does not answer until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.written = 0

    def write(self, data: bytes) -> None:
        self.go.wait(15)
        self.written += len(data)

    def sync(self) -> None: ...
    def sync_folders(self) -> None: ...
    def close(self) -> None: ...


def test_a_disk_that_hangs_bounds_the_queue_and_then_fails(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "QUEUE_LIMIT_BYTES", 100_000)
    monkeypatch.setattr(store, "STALL_LIMIT_S", 0.2)
    file = HangingFile()
    ledger = loop.use(file)
    ledger.append("run.opened", {}, loop.durable.append)
    appended = 0
    while not ledger.failed:
        ledger.append("attempt", {"verdict": "deny", "why": "x" * 1000}, loop.durable.append)
        appended += 1
    assert 50 < appended < 110  # 100,000 bytes of a thousand each, and what the committer took out at first
    loop.turn_until(lambda: loop.failures)
    assert isinstance(loop.failures[0], ContainmentError)
    assert loop.failures[0].code == "ledger-stalled"
    file.go.set()
    ledger.close()
    loop.reactor.turn(0)
    assert loop.durable == []


def test_a_slow_disk_slows_the_caller_and_loses_nothing(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "QUEUE_LIMIT_BYTES", 20_000)
    file = HangingFile()
    ledger = loop.use(file)
    threading.Timer(0.05, file.go.set).start()
    ledger.append("run.opened", {}, loop.durable.append)
    for _ in range(500):
        ledger.append("attempt", {"verdict": "deny", "why": "x" * 1000}, loop.durable.append)
    loop.turn_until(lambda: len(loop.durable) == 501)
    assert not ledger.failed
    ledger.close()


# --- real disks --------------------------------------------------------------------------

FILL = """
import sys
from pathlib import Path
from stockade.errors import StockadeError
from stockade.ledger.store import Ledger
from stockade.reactor import Reactor
reactor, durable, failures = Reactor(), [], []
try:
    ledger = Ledger.open(Path(sys.argv[1]), "run-1", wake=reactor.call_threadsafe, on_failure=failures.append)
except StockadeError as error:
    print("open", error.code, error.hint)
    raise SystemExit
kind, fields = "run.opened", {}
while not failures:
    seq = ledger.append(kind, fields, durable.append)
    while seq not in durable[-1:] and not failures:
        reactor.turn(10)
    kind, fields = "attempt", {"verdict": "deny", "why": "x" * 1000}
    if len(durable) > 5000:
        raise SystemExit("the disk never became full")
ledger.close()
print("failed", failures[0].code, len(durable), failures[0].hint)
"""


def _fill(shelf: Path, **options: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(shelf)],
        capture_output=True,
        text=True,
        timeout=18,
        **options,  # type: ignore[call-overload]
    )
    assert done.stderr == ""
    return str(done.stdout).split(maxsplit=3)


def test_a_file_size_limit_stops_the_ledger_and_not_with_a_signal(tmp_path: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    event, code, durable, _ = _fill(tmp_path, preexec_fn=limit)
    assert (event, code) == ("failed", "ledger-unwritable")
    reader = RunReader(tmp_path / RUN)
    assert len(list(reader.read())) == int(durable)  # all that was said to be durable is there, whole


@pytest.mark.needs("userns")
def test_a_full_disk_stops_the_ledger(tmp_path: Path) -> None:
    script = f"mount -t tmpfs -o size=64k none {tmp_path} && {sys.executable} -c '{FILL}' {tmp_path}/shelf"
    script += f"; wc -l < {tmp_path}/shelf/{RUN}/records.jsonl"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=18)
    event, code, durable, hint = done.stdout.splitlines()[0].split(maxsplit=3)
    assert (event, code) == ("failed", "ledger-unwritable"), done.stderr
    assert "disk is full" in hint
    assert int(durable) > 10
    assert int(done.stdout.splitlines()[1]) == int(durable)


@pytest.mark.needs("userns")
def test_a_read_only_file_system_refuses_before_anything_starts(tmp_path: Path) -> None:
    script = f"mount -t tmpfs -o ro none {tmp_path} && {sys.executable} -c '{FILL}' {tmp_path}/shelf"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=18)
    assert done.stdout.startswith("open ledger-unwritable"), done.stderr
    assert "read-only" in done.stdout


@pytest.mark.needs("ordinary-user")
def test_a_read_only_folder_refuses_before_anything_starts(tmp_path: Path, loop: Loop) -> None:
    (tmp_path / "shelf").mkdir(0o500)
    with pytest.raises(HostError, match="ledger-unwritable") as refused:
        loop.open(tmp_path / "shelf")
    assert "may not write" in str(refused.value.hint)


def test_a_file_in_the_way_refuses_before_anything_starts(tmp_path: Path, loop: Loop) -> None:
    (tmp_path / "file").write_text("")
    for shelf in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StockadeError, match="ledger-unwritable"):
            loop.open(shelf)
    assert (tmp_path / "file").read_text() == ""


def test_a_failed_open_leaves_no_descriptor_behind(tmp_path: Path, loop: Loop) -> None:
    loop.open(tmp_path).close()
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        with pytest.raises(StockadeError):
            loop.open(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_close_leaves_no_descriptor_and_no_thread_behind(tmp_path: Path, loop: Loop) -> None:
    fds, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    ledger = loop.open(tmp_path)
    ledger.append("run.opened", {})
    ledger.close()
    assert len(os.listdir("/proc/self/fd")) == fds
    assert threading.active_count() == threads
