"""The file: made once, refused when it is not ours, never overwritten."""

from __future__ import annotations

import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from doubles.lab_game import START, at, bank
from stockade.errors import HostError, UserError
from stockade.lab.game.rounds import Conflict
from stockade.lab.progress.database import FILE_NAME, default_folder, open_database
from stockade.lab.progress.play import AlreadyAnswered
from stockade.lab.progress.store import Store, open_store

PACK = bank().pack
ANSWER = ("deny", "exfiltration", "default-deny")


def test_progress_lies_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data/mine")
    assert default_folder() == Path("/data/mine/stockade/lab")
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")  # the XDG specification: ignore it
    monkeypatch.setenv("HOME", "/home/me")
    assert default_folder() == Path("/home/me/.local/share/stockade/lab")


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    open_store(tmp_path / "a" / "b", PACK).close()
    assert stat.S_IMODE((tmp_path / "a" / "b" / FILE_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_what_was_written_is_there_after_it_was_opened_again(tmp_path: Path) -> None:
    first = open_store(tmp_path, PACK)
    me = first.people.enter("you", START)
    number = first.play.begin_round(me.id, 2, "again", START).id
    first.play.show(me.id, number, 0, START)
    first.play.hint(me.id, number, 0)
    first.close()
    second = open_store(tmp_path, PACK)
    assert second.people.enter("You", START) == me
    assert second.play.open_round(me.id) == number
    event = second.play.round(me.id, number, at(4_000)).events[0]
    assert (event.shown_ms, event.hints.left) == (4_000, 2)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.write_bytes(b"this is a text, and no database at all\n" * 40), "progress-damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "progress-damaged"),
        (lambda path: run_sql(path, "PRAGMA user_version = 2"), "progress-newer"),
        (lambda path: run_sql(path, "PRAGMA application_id = 7"), "progress-not-ours"),
    ],
)
def test_a_file_that_is_damaged_newer_or_not_ours_is_refused_and_left_alone(
    tmp_path: Path, spoil: object, code: str
) -> None:
    store = open_store(tmp_path, PACK)
    me = store.people.enter("you", START)
    for tier in (1, 2, 3, 4):
        store.play.begin_round(me.id, tier, None, START)
    store.close()
    path = tmp_path / FILE_NAME
    spoil(path)  # type: ignore[operator]
    before = path.read_bytes()
    with pytest.raises(UserError, match=code) as refusal:
        open_store(tmp_path, PACK)
    assert str(path) in refusal.value.message
    assert path.read_bytes() == before


def run_sql(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_database_of_another_program_is_not_written_to(tmp_path: Path) -> None:
    run_sql(tmp_path / FILE_NAME, "CREATE TABLE theirs (x)")
    with pytest.raises(UserError, match="progress-not-ours"):
        open_database(tmp_path)
    run_sql(tmp_path / FILE_NAME, "SELECT x FROM theirs")


def test_a_place_where_nothing_can_be_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="no-place-for-progress") as refusal:
        open_store(tmp_path / "file" / "below", PACK)
    assert refusal.value.hint == "--data DIR"


def test_a_change_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    store = open_store(tmp_path, PACK)
    with pytest.raises(ZeroDivisionError), store.database.change() as change:  # noqa: PT012  # as callers do
        change.execute("INSERT INTO learners VALUES ('x', 'x', 'x', 1)")
        raise ZeroDivisionError
    assert store.people.all() == []
    with store.database.change() as change:
        change.execute("INSERT INTO learners VALUES ('x', 'x', 'x', 1)")
    assert [learner.name for learner in store.people.all()] == ["x"]


@pytest.fixture
def two_processes(tmp_path: Path) -> tuple[Store, Store]:
    """Two connections to one file, as two servers have them."""
    return open_store(tmp_path, PACK), open_store(tmp_path, PACK)


def test_two_tabs_that_answer_alike_leave_one_row_and_points_once(two_processes: tuple[Store, Store]) -> None:
    one, other = two_processes
    me = one.people.enter("you", START).id
    number = one.play.begin_round(me, 2, "tabs", START).id
    first = one.play.answer(me, number, 0, ANSWER, START)
    second = other.play.answer(me, number, 0, ANSWER, START)
    assert (first.again, second.again) == (False, True)
    assert first.feedback == second.feedback
    assert first.round.points == second.round.points
    assert len(one.database.rows("SELECT * FROM answers")) == 1
    assert [row["seen"] for row in one.database.rows("SELECT seen FROM cards")] == [1]


def test_two_tabs_that_answer_otherwise_the_first_counts(two_processes: tuple[Store, Store]) -> None:
    one, other = two_processes
    me = one.people.enter("you", START).id
    number = one.play.begin_round(me, 2, "tabs", START).id
    first = one.play.answer(me, number, 0, ANSWER, START)
    with pytest.raises(AlreadyAnswered) as refusal:
        other.play.answer(me, number, 0, ("allow", "benign", "allowlist-exact"), START)
    assert refusal.value.feedback == first.feedback
    assert other.play.round(me, number, START).points == first.round.points


def test_many_at_once_score_each_event_once(tmp_path: Path) -> None:
    """Eight threads with two connections answer the same nine events, each with another answer."""
    stores = [open_store(tmp_path, PACK) for _ in range(2)]
    me = stores[0].people.enter("you", START).id
    number = stores[0].play.begin_round(me, 1, "race", START).id
    risks = ["benign", "exfiltration", "ssrf", "supply-chain"]
    won: list[int] = []
    faults: list[BaseException] = []

    def play(worker: int) -> None:
        store = stores[worker % 2]
        for index in range(9):
            try:
                answered = store.play.answer(
                    me, number, index, ("deny", risks[worker % 4], "default-deny"), START
                )
                won.extend([index] * (not answered.again))
            except Conflict as refusal:
                if refusal.code not in ("already-answered", "not-yet"):
                    faults.append(refusal)
            except BaseException as fault:  # noqa: BLE001  # shown below
                faults.append(fault)

    while stores[0].play.round(me, number, START).current is not None:
        threads = [threading.Thread(target=play, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert faults == []
    assert sorted(won) == list(range(9))
    assert len(stores[0].database.rows("SELECT * FROM answers")) == 9
    assert sum(row["seen"] for row in stores[0].database.rows("SELECT seen FROM cards")) == 9


def test_the_key_of_the_table_holds_if_the_code_does_not(tmp_path: Path) -> None:
    store = open_store(tmp_path, PACK)
    me = store.people.enter("you", START).id
    number = store.play.begin_round(me, 1, "key", START).id
    store.play.answer(me, number, 0, ANSWER, START)
    row = tuple(store.database.rows("SELECT * FROM answers")[0])
    with pytest.raises(sqlite3.IntegrityError), store.database.change() as change:
        change.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(row))})", row)


def test_a_full_disk_is_a_fault_of_the_host_and_the_answer_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, PACK)
    me = store.people.enter("you", START).id
    number = store.play.begin_round(me, 1, "full", START).id
    pages = store.database.rows("PRAGMA page_count")[0][0]
    store.database.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(HostError, match="progress-unavailable"):  # noqa: PT012  # until the file is full
        for index in range(9):
            store.play.answer(me, number, index, ANSWER, START)
            store.desk.put_draft(me, "#" * 20_000 * (index + 1), START)
    store.database.rows("PRAGMA max_page_count = 1000000")
    assert store.play.round(me, number, START).answered == len(store.database.rows("SELECT * FROM answers"))


@pytest.mark.needs("ordinary-user")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(HostError, match="no-place-for-progress"):
        open_store(tmp_path, PACK)
