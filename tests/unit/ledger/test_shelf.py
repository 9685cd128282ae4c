"""Reading shelves: order, names, following, and what is not a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.errors import UserError
from stockade.ledger.shelf import (
    RunReader,
    ShelfFollower,
    find_run,
    find_running,
    list_resting_runs,
    list_runs,
)
from stockade.ledger.store import Ledger


def open_run(shelf: Path, run: str) -> Ledger:
    ledger = Ledger.open(shelf, run, wake=lambda word: word(), on_failure=lambda error: None)
    ledger.append("run.opened", {})
    return ledger


def wait_for(shelf: Path, run: str, count: int) -> None:
    """Until the committer thread has written so many records."""
    path = shelf / run / "records.jsonl"
    while path.read_bytes().count(b"\n") < count:
        os.sched_yield()


def write_run(shelf: Path, run: str) -> None:
    ledger = open_run(shelf, run)
    ledger.append("run.closed", {})
    ledger.close()


def test_runs_come_in_the_order_in_which_they_were_opened(tmp_path: Path) -> None:
    for run in ("zebra", "alpha", "middle"):
        write_run(tmp_path, run)
    assert list_runs(tmp_path) == ["zebra", "alpha", "middle"]
    assert find_run(tmp_path, "last") == "middle"


def test_what_is_not_a_run_is_passed_over(tmp_path: Path) -> None:
    write_run(tmp_path, "run-1")
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "records.jsonl").write_bytes(b'{"kind":"run.op')
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "records.jsonl").symlink_to(tmp_path / "run-1" / "records.jsonl")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "records.jsonl")  # opening it must not wait for a writer
    assert list_runs(tmp_path) == ["run-1"]


def test_a_run_is_found_by_the_end_or_the_beginning_of_its_name(tmp_path: Path) -> None:
    for run in ("20261130T085500-1f7f3a", "20261130T085501-aaaaaa"):
        write_run(tmp_path, run)
    assert find_run(tmp_path, "1f7f3a") == "20261130T085500-1f7f3a"
    assert find_run(tmp_path, "20261130T085501") == "20261130T085501-aaaaaa"
    with pytest.raises(UserError, match="more than one"):
        find_run(tmp_path, "20261130")
    with pytest.raises(UserError, match="no run is called"):
        find_run(tmp_path, "other")


def test_an_empty_and_a_missing_shelf_say_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no-runs"):
        find_run(tmp_path, "last")
    with pytest.raises(UserError, match="ledger-unreadable"):
        list_runs(tmp_path / "missing")


def test_following_gives_each_record_once_and_new_runs_too(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    follower = ShelfFollower(shelf)
    assert list(follower.read()) == []  # the shelf is not there yet
    one = open_run(shelf, "one")
    wait_for(shelf, "one", 1)
    assert [(r.run, x["seq"]) for r, x in follower.read()] == [("one", 0)]
    assert list(follower.read()) == []
    two = open_run(shelf, "two")
    one.append("attempt", {"verdict": "deny"})
    one.append("run.closed", {})
    wait_for(shelf, "one", 3)
    wait_for(shelf, "two", 1)
    assert [(r.run, x["seq"]) for r, x in follower.read()] == [("one", 1), ("one", 2), ("two", 0)]
    for ledger in (one, two):
        ledger.close()


def test_a_line_that_is_half_written_comes_when_it_is_whole(tmp_path: Path) -> None:
    write_run(tmp_path / "whole", "run")
    data = (tmp_path / "whole" / "run" / "records.jsonl").read_bytes()
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "records.jsonl"
    reader = RunReader(tmp_path / "run")
    given = []
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        given += [(length, record["seq"]) for record in reader.read()]
    first_end = data.index(b"\n") + 1
    assert given == [(first_end, 0), (len(data), 1)]


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    write_run(tmp_path, "first")
    with open(tmp_path / "first" / "records.jsonl", "ab") as file:
        file.write(b"rubbish\n")
    write_run(tmp_path, "second")
    follower = ShelfFollower(tmp_path)
    assert [r.run for r, _ in follower.read()] == ["first", "first", "second", "second"]
    assert len(follower.damages) == 1
    assert list(follower.read()) == []
    assert len(follower.damages) == 1


def test_resting_runs_are_those_without_a_writer_but_for_the_last(tmp_path: Path) -> None:
    write_run(tmp_path, "old")
    running = open_run(tmp_path, "running")
    wait_for(tmp_path, "running", 1)
    write_run(tmp_path, "latest")
    assert list_resting_runs(tmp_path) == ["old"]
    running.close()
    assert list_resting_runs(tmp_path) == ["old", "running"]


def test_the_run_to_change_is_the_last_that_runs_and_not_the_last_that_began(tmp_path: Path) -> None:
    running = open_run(tmp_path, "running")
    wait_for(tmp_path, "running", 1)
    write_run(tmp_path, "latest")
    assert find_running(tmp_path, "last") == "running"
    assert find_running(tmp_path, "latest") == "latest"
    running.close()
    assert find_running(tmp_path, "last") == "latest"
