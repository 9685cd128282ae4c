"""Export and reset: all of a learner, and nobody else's."""

from __future__ import annotations

import json

import pytest

from doubles.lab_game import START, at, bank
from stockade.errors import UserError
from stockade.lab.progress.store import Store, open_store

ANSWER = ("deny", "exfiltration", "default-deny")


@pytest.fixture
def store() -> Store:
    return open_store(None, bank().pack)


def fill(store: Store, name: str) -> str:
    me = store.people.enter(name, START).id
    number = store.play.begin_round(me, 2, "seed", START).id
    store.play.show(me, number, 0, START)
    store.play.hint(me, number, 0)
    store.play.answer(me, number, 0, ANSWER, at(1500))
    store.play.put_note(me, number, "why", "note")
    store.desk.add_gap(me, "gap", "E001", START)
    store.desk.put_draft(me, "version: 1\n", START)
    store.people.change_settings(me, {"clock": "double"})
    return me


def test_an_export_has_everything_and_is_json(store: Store) -> None:
    me, other = fill(store, "Ada"), fill(store, "Bob")
    export = json.loads(json.dumps(store.archive.export(me, at(9_000))))
    assert (export["format"], export["version"], export["learner"]) == ("stockade-lab-progress", 1, "Ada")
    assert export["exported_at"] == "2025-11-30T10:53:29Z"
    (round_,) = export["rounds"]
    assert (round_["seed"], round_["tier"], round_["bank"]) == ("seed", 2, bank().pack.digest)
    assert len(round_["steps"]) == 9
    assert round_["steps"][0]["hints"] == 1
    (answer,) = round_["answers"]
    assert (answer["decision"], answer["risk"], answer["control"], answer["ms"]) == (*ANSWER, 1500)
    assert round_["notes"] == [{"name": "why", "text": "note"}]
    assert [gap["text"] for gap in export["gaps"]] == ["gap"]
    assert [card["card"]["card_id"] for card in export["cards"]] == [0]
    assert export["settings"] == [{"name": "clock", "value": "double"}]
    assert [page["name"] for page in export["pages"]] == ["policy"]
    assert other not in json.dumps(export)


def test_a_reset_takes_all_of_one_and_nothing_of_another(store: Store) -> None:
    me, other = fill(store, "Ada"), fill(store, "Bob")
    before = store.archive.export(other, START)
    for word in ("", "RESET", "yes"):
        with pytest.raises(UserError, match="not-confirmed"):
            store.archive.reset(me, word)
    assert store.play.rounds(me)
    store.archive.reset(me, "reset")
    export = store.archive.export(me, START)
    assert [export[table] for table in ("rounds", "settings", "gaps", "cards", "pages")] == [[]] * 5
    assert store.people.find(me).name == "Ada"
    assert store.archive.export(other, START) == before
    counts = {
        table: store.database.rows(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("rounds", "steps", "answers", "notes")
    }
    assert counts == {"rounds": 1, "steps": 9, "answers": 1, "notes": 1}
    assert store.play.begin_round(me, 1, "anew", START).current == 0


def test_every_table_is_in_the_export(store: Store) -> None:
    """A table that is added and forgotten here would survive a reset unseen."""
    me = fill(store, "Ada")
    store.desk.put_workshop(me, {"a": 1}, START)
    tables = {row[0] for row in store.database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    export = store.archive.export(me, START)
    exported = {*export, *export["rounds"][0], "learners", "sqlite_sequence"}
    assert tables <= exported
