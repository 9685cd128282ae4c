"""Writing a ledger: order, durability, locks, places. What fails on purpose is in tests/anomaly."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stockade.errors import HostError, InternalError, UserError
from stockade.ledger.shelf import RunReader, RunState
from stockade.ledger.store import Ledger, RecordFile, default_shelf
from stockade.reactor import Reactor

RUN = "20261130T085500-1f7f3a"


class Loop:
    """The caller's loop in a test: a real reactor, and what was said in it."""

    def __init__(self) -> None:
        self.reactor = Reactor()
        self.durable: list[int] = []
        self.failures: list[Exception] = []

    def open(self, shelf: Path, run: str = RUN, **kept: Any) -> Ledger:
        wake, on_failure = self.reactor.call_threadsafe, self.failures.append
        return Ledger.open(shelf, run, wake=wake, on_failure=on_failure, **kept)

    def turn_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.reactor.turn(10)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.reactor.close()


def read_lines(shelf: Path, run: str = RUN) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shelf / run / "records.jsonl").read_bytes().splitlines()]


def test_records_become_durable_in_order_and_are_told_in_the_callers_loop(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path / "shelf")
    seqs = [ledger.append("run.opened", {}, loop.durable.append)]
    seqs += [ledger.append("attempt", {"verdict": "deny"}, loop.durable.append) for _ in range(500)]
    assert loop.durable == []  # the caller has not turned its loop yet, so nothing may have been said
    loop.turn_until(lambda: len(loop.durable) == 501)
    assert loop.durable == seqs == list(range(501))
    assert [r["seq"] for r in read_lines(tmp_path / "shelf")] == seqs
    assert not ledger.failed
    ledger.close()


def test_a_record_is_in_the_file_when_it_is_said_to_be_durable(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path / "shelf")
    seen: list[bool] = []

    def look(seq: int) -> None:
        seen.append(any(r["seq"] == seq for r in read_lines(tmp_path / "shelf")))

    ledger.append("run.opened", {}, look)
    for _ in range(50):
        ledger.append("attempt", {"verdict": "allow"}, look)
    loop.turn_until(lambda: len(seen) == 51)
    assert all(seen)
    ledger.close()


def test_sync_comes_after_write_and_before_the_word(loop: Loop) -> None:
    happened: list[str] = []

    class Watched(RecordFile):
        def __init__(self) -> None: ...
        def write(self, data: bytes) -> None:
            happened.append("write")

        def sync(self) -> None:
            happened.append("sync")

        def sync_folders(self) -> None:
            happened.append("folders")

        def close(self) -> None: ...

    ledger = Ledger(RUN, Watched(), loop.reactor.call_threadsafe, loop.failures.append)
    ledger.append("run.opened", {}, lambda _: happened.append("told"))
    loop.turn_until(lambda: "told" in happened)
    assert happened == ["write", "sync", "folders", "told"]
    ledger.close()


def test_base_fields_of_a_record(tmp_path: Path, loop: Loop) -> None:
    ledger = Ledger(
        RUN,
        _created(tmp_path),
        loop.reactor.call_threadsafe,
        loop.failures.append,
        time_ns=lambda: 1_796_028_900_123_456_789,  # date -u -d @1796028900 → 2026-11-30T08:55:00
        monotonic_ns=lambda: 42,
    )
    ledger.append("run.opened", {"software": "stockade"})
    ledger.append("attempt", {"verdict": "deny", "port": 443})
    ledger.close()
    first, second = read_lines(tmp_path)
    assert first == {
        "seq": 0,
        "time": "2026-11-30T08:55:00.123456Z",
        "mono_ns": 42,
        "kind": "run.opened",
        "run": RUN,
        "software": "stockade",
    }
    assert second["id"] == "r7f3a-1"


def _created(tmp_path: Path) -> RecordFile:
    from stockade.ledger import store

    return store._create_record_file(tmp_path, RUN)


def test_a_clock_set_back_does_not_change_the_order(tmp_path: Path, loop: Loop) -> None:
    times = iter([2_000_000_000_000_000_000, 1_000_000_000_000_000_000])
    ledger = Ledger(
        RUN,
        _created(tmp_path),
        loop.reactor.call_threadsafe,
        loop.failures.append,
        time_ns=lambda: next(times),
    )
    ledger.append("run.opened", {})
    ledger.append("run.closed", {})
    ledger.close()
    first, second = RunReader(tmp_path / RUN).read()
    assert first["time"] > second["time"]
    assert first["mono_ns"] < second["mono_ns"]


def test_counts_by_kind_and_verdict(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path)
    ledger.append("run.opened", {})
    for verdict in ("deny", "deny", "proxy", "allow"):
        ledger.append("attempt", {"verdict": verdict})
    ledger.heartbeat()
    assert ledger.counts == {"run.opened": 1, "attempt": 4, "deny": 2, "proxy": 1, "allow": 1, "heartbeat": 1}
    ledger.close()


def test_close_writes_what_is_queued_and_refuses_more(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path)
    ledger.append("run.opened", {})
    for _ in range(1000):
        ledger.append("attempt", {"verdict": "deny"})
    ledger.append("run.closed", {"records": 1002})
    ledger.close()
    assert len(read_lines(tmp_path)) == 1002
    with pytest.raises(InternalError):
        ledger.append("heartbeat", {})
    ledger.close()  # twice is harmless


def test_a_record_of_wrong_shape_takes_no_number(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path)
    ledger.append("run.opened", {})
    with pytest.raises(InternalError):
        ledger.append("attempt", {"verdict": "maybe"})
    with pytest.raises(InternalError):
        ledger.append("attempt", {"verdict": "deny", "share": 0.5})
    assert ledger.append("attempt", {"verdict": "deny"}) == 1
    ledger.close()
    assert [r["seq"] for r in read_lines(tmp_path)] == [0, 1]


def test_two_runs_share_a_shelf_at_the_same_time(tmp_path: Path, loop: Loop) -> None:
    one, two = loop.open(tmp_path, "run-one"), loop.open(tmp_path, "run-two")
    for ledger in (one, two, two, one, two):
        kind = "run.opened" if not ledger.counts else "heartbeat"
        ledger.append(kind, {}, loop.durable.append)
    loop.turn_until(lambda: len(loop.durable) == 5)
    one.close()
    two.close()
    assert [r["run"] for r in read_lines(tmp_path, "run-one")] == ["run-one"] * 2
    assert [r["run"] for r in read_lines(tmp_path, "run-two")] == ["run-two"] * 3


def test_a_second_writer_for_the_same_run_is_refused(tmp_path: Path, loop: Loop) -> None:
    first = loop.open(tmp_path)
    with pytest.raises(UserError) as refused:
        loop.open(tmp_path)
    assert refused.value.code == "run-exists"
    with pytest.raises(UserError) as busy:
        Ledger.recover(tmp_path, RUN, wake=loop.reactor.call_threadsafe, on_failure=loop.failures.append)
    assert busy.value.code == "run-busy"
    first.append("run.opened", {}, loop.durable.append)
    loop.turn_until(lambda: loop.durable == [0])  # the refusals did the first writer no harm
    first.close()


def test_files_are_for_the_owner_alone(tmp_path: Path, loop: Loop) -> None:
    before = os.umask(0)
    try:
        ledger = loop.open(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    ledger.append("run.opened", {})
    ledger.close()
    for path, mode in [
        ("a", 0o700),
        ("a/b", 0o700),
        (f"a/b/{RUN}", 0o700),
        (f"a/b/{RUN}/records.jsonl", 0o600),
    ]:
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == mode, path


def test_a_linked_shelf_is_refused_and_a_folder_behind_a_link_is_not(tmp_path: Path, loop: Loop) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(HostError, match="ledger-unwritable"):
        loop.open(tmp_path / "link")
    loop.open(tmp_path / "link" / "below").close()


def test_a_shelf_that_is_another_one_than_was_judged_is_refused(tmp_path: Path, loop: Loop) -> None:
    # Between the judgement and the opening a worker of another run may put a folder of its own there.
    for name in ("judged", "other"):
        (tmp_path / name).mkdir()
    status = (tmp_path / "judged").stat()
    identity = (status.st_dev, status.st_ino)
    with pytest.raises(HostError, match="ledger-unsafe"):
        loop.open(tmp_path / "other", shelf_identity=identity)
    with pytest.raises(HostError):
        loop.open(tmp_path / "missing", shelf_identity=identity)
    assert os.listdir(tmp_path / "other") == []
    assert not (tmp_path / "missing").exists()
    loop.open(tmp_path / "judged", shelf_identity=identity).close()


def test_a_dangling_link_is_not_followed_to_make_the_shelf(tmp_path: Path, loop: Loop) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError):
        loop.open(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_run_folder_planted_as_a_link_is_refused(tmp_path: Path, loop: Loop) -> None:
    (tmp_path / "stolen").mkdir()
    (tmp_path / RUN).symlink_to("stolen")
    with pytest.raises(UserError, match="run-exists"):
        loop.open(tmp_path)
    assert not list((tmp_path / "stolen").iterdir())


def test_a_shelf_where_everybody_may_rename_is_refused_and_a_sticky_one_is_not(
    tmp_path: Path, loop: Loop
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    shelf.chmod(0o777)
    with pytest.raises(HostError, match="ledger-unsafe") as refused:
        loop.open(shelf)
    assert refused.value.hint is not None
    shelf.chmod(0o1777)
    loop.open(shelf).close()


@pytest.mark.parametrize("run", ["../escape", ".hidden", "a/b", "", "-x", "a\nb"])
def test_a_run_name_cannot_leave_the_shelf(tmp_path: Path, loop: Loop, run: str) -> None:
    with pytest.raises(UserError, match="run-name"):
        loop.open(tmp_path / "shelf", run)
    assert not (tmp_path / "escape").exists()


def test_default_shelf_follows_the_xdg_rules() -> None:
    assert default_shelf({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/stockade/ledger")
    assert default_shelf({"HOME": "/h"}) == Path("/h/.local/state/stockade/ledger")
    assert default_shelf({"XDG_STATE_HOME": "relative", "HOME": "/h"}) == Path(
        "/h/.local/state/stockade/ledger"
    )


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_place_must_be_named(environment: dict[str, str]) -> None:
    with pytest.raises(UserError, match="ledger-place") as refused:
        default_shelf(environment)
    assert "--ledger" in str(refused.value.hint)


def test_a_run_is_running_then_closed(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path)
    ledger.append("run.opened", {}, loop.durable.append)
    loop.turn_until(lambda: loop.durable == [0])
    reader = RunReader(tmp_path / RUN)
    assert [r["kind"] for r in reader.read()] == ["run.opened"]
    assert reader.state() is RunState.RUNNING
    ledger.append("run.closed", {})
    ledger.close()
    assert [r["kind"] for r in reader.read()] == ["run.closed"]
    assert reader.state() is RunState.CLOSED


def test_a_run_without_a_closing_record_is_open(tmp_path: Path, loop: Loop) -> None:
    ledger = loop.open(tmp_path)
    ledger.append("run.opened", {})
    ledger.close()
    reader = RunReader(tmp_path / RUN)
    list(reader.read())
    assert reader.state() is RunState.OPEN
