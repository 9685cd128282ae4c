"""A crash at any byte leaves a ledger that reads up to the last whole record, and says so (R161)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stockade.errors import IntegrityError, UserError
from stockade.ledger.shelf import RunReader, RunState
from stockade.ledger.store import Ledger

RUN = "run-1"


def write_run(shelf: Path, attempts: int = 3, *, close: bool = True) -> bytes:
    ledger = Ledger.open(shelf, RUN, wake=lambda word: word(), on_failure=lambda error: None)
    ledger.append("run.opened", {"argv": ["true"]})
    for number in range(attempts):
        ledger.append("attempt", {"verdict": "deny", "name": f"n{number}.test", "why": "ä – “x”"})
    if close:
        ledger.append("run.closed", {"attempts": attempts})
    ledger.close()
    return (shelf / RUN / "records.jsonl").read_bytes()


def place(shelf: Path, data: bytes) -> RunReader:
    (shelf / RUN).mkdir(parents=True, exist_ok=True)
    (shelf / RUN / "records.jsonl").write_bytes(data)
    return RunReader(shelf / RUN)


def test_r161_a_crash_at_any_byte_reads_up_to_the_last_whole_record(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "a")
    for length in range(len(whole) + 1):
        cut = whole[:length]
        reader = place(tmp_path / "b", cut)
        records = list(reader.read())
        assert len(records) == cut.count(b"\n")
        assert reader.torn_bytes == len(cut) - (cut.rfind(b"\n") + 1)
        assert reader.state() is (RunState.CLOSED if length == len(whole) else RunState.OPEN)


def test_r161_recovery_goes_on_after_the_last_whole_record_and_says_so(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "a", close=False)
    end_of_last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for length in range(1, len(whole)):
        shelf = tmp_path / str(length)
        place(shelf, whole[:length])
        ledger = Ledger.recover(shelf, RUN, wake=lambda word: word(), on_failure=lambda error: None)
        if length <= whole.find(b"\n"):
            ledger.append("run.opened", {})  # nothing was whole: the run begins now
        ledger.append("run.closed", {})
        ledger.close()
        reader = RunReader(shelf / RUN)
        records = list(reader.read())
        assert [r["seq"] for r in records] == list(range(len(records)))
        assert reader.state() is RunState.CLOSED
        assert reader.torn_bytes == 0
        if length > end_of_last:
            assert records[-2]["kind"] == "recovered"
            assert records[-2]["dropped_bytes"] == length - end_of_last
            assert records[-2]["last_seq"] == records[-2]["seq"] - 1


def test_a_closed_run_is_not_recovered(tmp_path: Path) -> None:
    write_run(tmp_path)
    with pytest.raises(UserError, match="run-closed"):
        Ledger.recover(tmp_path, RUN, wake=lambda word: word(), on_failure=lambda error: None)


WRITE_FOREVER = """
import sys
from pathlib import Path
from stockade.ledger.store import Ledger
from stockade.reactor import Reactor
reactor = Reactor()
ledger = Ledger.open(Path(sys.argv[1]), "run-1", wake=reactor.call_threadsafe, on_failure=print)
def told(seq):
    print(seq, flush=True)
    ledger.append("attempt", {"verdict": "deny", "why": "x" * 500}, told)
ledger.append("run.opened", {}, told)
for _ in range(20):
    ledger.append("attempt", {"verdict": "deny", "why": "x" * 500}, told)
reactor.run()
"""


def test_kill_9_loses_nothing_that_was_said_to_be_durable(tmp_path: Path) -> None:
    for round_number in range(5):
        shelf = tmp_path / str(round_number)
        with subprocess.Popen(
            [sys.executable, "-c", WRITE_FOREVER, str(shelf)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            told = [int(writer.stdout.readline()) for _ in range(30 * (round_number + 1))]
            reader = RunReader(shelf / RUN)
            list(reader.read())
            assert reader.state() is RunState.RUNNING
            os.kill(writer.pid, signal.SIGKILL)
            told += [int(line) for line in writer.stdout.read().splitlines()]
        reader = RunReader(shelf / RUN)
        seqs = [record["seq"] for record in reader.read()]
        assert seqs == list(range(len(seqs)))
        assert told == list(range(len(told)))
        assert len(seqs) >= len(told)
        assert reader.state() is RunState.OPEN


# --- damage that no crash makes ------------------------------------------------------------


def _swap(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def _drop(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], *lines[3:]]


def _repeat(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[1], *lines[2:]]


def _go_on_after_the_end(lines: list[bytes]) -> list[bytes]:
    more = json.loads(lines[1]) | {"seq": len(lines)}
    return [*lines, json.dumps(more).encode()]


def _from_another_run(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b"run-1", b"run-2"), *lines[3:]]


def _not_json(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], b"{" + lines[2], *lines[3:]]


def _nested(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], b"[" * 60_000, *lines[3:]]


def _empty_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], b"", *lines[2:]]


def _first_missing(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (_swap, 2), (_drop, 3), (_repeat, 3), (_go_on_after_the_end, 6), (_from_another_run, 3),
        (_not_json, 3), (_nested, 3), (_empty_line, 3), (_first_missing, 1),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_line(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    lines = write_run(tmp_path / "a").splitlines()
    reader = place(tmp_path / "b", b"\n".join(change(lines)) + b"\n")
    with pytest.raises(IntegrityError, match=rf"line {line} \(record {line - 1}\)"):
        list(reader.read())


def test_a_file_of_zeros_as_some_file_systems_leave_it_is_torn_not_a_crash(tmp_path: Path) -> None:
    reader = place(tmp_path, write_run(tmp_path / "a", close=False) + b"\0" * 4000)
    assert len(list(reader.read())) == 4
    assert reader.torn_bytes == 4000


def test_an_endless_line_is_damage_and_not_endless_memory(tmp_path: Path) -> None:
    reader = place(tmp_path, write_run(tmp_path / "a", close=False) + b"x" * 3_000_000)
    with pytest.raises(IntegrityError, match="longer than a record"):
        list(reader.read())


def test_r163_line_count_is_record_count(tmp_path: Path) -> None:
    hostile = ["a\r\nb", "a\0b", "a\x1b[2Jb", "a\x85b", "a\u2028b", "a\udcffb", "x" * 100_000]
    ledger = Ledger.open(tmp_path, RUN, wake=lambda word: word(), on_failure=lambda error: None)
    ledger.append("run.opened", {"argv": hostile})
    for text in hostile:
        ledger.append("attempt", {"verdict": "deny", "name": text, "path": text, "raw": text, "argv": [text]})
    ledger.append("run.closed", {})
    ledger.close()
    data = (tmp_path / RUN / "records.jsonl").read_bytes()
    assert len(data.decode().splitlines()) == data.count(b"\n") == len(hostile) + 2
    assert len(list(RunReader(tmp_path / RUN).read())) == len(hostile) + 2
