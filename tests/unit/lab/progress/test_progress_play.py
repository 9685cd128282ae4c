"""Rounds that are kept: from the first event to the debrief, over restarts, by several learners."""

from __future__ import annotations

import json

import msgspec
import pytest

from doubles.lab_game import START, at, bank, make_pack, perfect
from stockade.errors import UserError
from stockade.lab.game.rounds import Conflict
from stockade.lab.progress.people import Missing
from stockade.lab.progress.store import Now, Store, open_store

ANSWER = ("deny", "exfiltration", "default-deny")


@pytest.fixture
def store() -> Store:
    return open_store(None, bank().pack)


@pytest.fixture
def me(store: Store) -> str:
    return store.people.enter("you", START).id


def right_words(store: Store, me: str, number: str, index: int) -> tuple[str, str, str]:
    row = store.book.find(store.play.state(me, number).steps[index].scenario)
    answer = perfect(row, store.book)
    return answer.decision.word, str(answer.risk), str(answer.control)


def play_all(store: Store, me: str, number: str, *, wrong: tuple[int, ...] = ()) -> None:
    state = store.play.state(me, number)
    for index in range(state.current or 0, len(state.steps)):
        store.play.show(me, number, index, at(index * 10_000))
        words = right_words(store, me, number, index)
        if index in wrong:
            words = ("allow" if words[0] == "deny" else "deny", *words[1:])
        store.play.answer(me, number, index, words, at(index * 10_000 + 5_000))


def test_a_round_from_its_seed_to_its_debrief(store: Store, me: str) -> None:
    begun = store.play.begin_round(me, 3, " 2026-11 ", START)
    assert (begun.seed, begun.tier, begun.clock_s, begun.count, begun.current) == ("2026-11", 3, 60, 9, 0)
    play_all(store, me, begun.id)
    done = store.play.round(me, begun.id, at(99_000))
    # nine times 100, and a bonus of 9 each: 5 of 60 seconds gone leave 10 × 55 ÷ 60 = 9.17, rounded down
    assert (done.points, done.percent, done.grade, done.status) == (9 * 109, 100.0, "S", "done")
    told = store.play.debrief(me, begun.id)
    assert (told.grade, told.leaks, told.blocks, told.missed) == ("S", (), (), ())
    assert len(told.questions) == 8
    json.dumps(msgspec.to_builtins(told))


def test_the_same_seed_is_the_same_round_for_everybody(store: Store, me: str) -> None:
    other = store.people.enter("somebody else", START).id
    mine = store.play.begin_round(me, 2, "shared", START)
    theirs = store.play.begin_round(other, 2, "shared", START)
    assert [step.scenario for step in store.play.state(me, mine.id).steps] == [
        step.scenario for step in store.play.state(other, theirs.id).steps
    ]
    assert mine.events[0] == theirs.events[0]
    assert store.play.begin_round(me, 2, None, START).seed != store.play.begin_round(me, 2, None, START).seed


def test_nobody_sees_or_changes_the_round_of_another(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 1, "mine", START).id
    other = store.people.enter("other", START).id
    for act in (
        lambda: store.play.round(other, number, START),
        lambda: store.play.answer(other, number, 0, ANSWER, START),
        lambda: store.play.hint(other, number, 0),
        lambda: store.play.show(other, number, 0, START),
        lambda: store.play.leave(other, number, START),
        lambda: store.play.debrief(other, number),
        lambda: store.play.put_note(other, number, "why", "x"),
        lambda: store.play.round(me, "no such number", START),
    ):
        with pytest.raises(Missing, match="no-such-round"):
            act()
    assert store.play.round(me, number, START).answered == 0


def test_a_new_round_breaks_the_open_one_off_and_keeps_its_answers(store: Store, me: str) -> None:
    first = store.play.begin_round(me, 1, "first", START).id
    store.play.answer(me, first, 0, ANSWER, START)
    second = store.play.begin_round(me, 1, "second", START).id
    assert store.play.open_round(me) == second
    lines = {line.id: line for line in store.play.rounds(me)}
    assert (lines[first].status, lines[first].answered, lines[first].grade) == ("broken-off", 1, None)
    assert (lines[second].status, lines[second].answered) == ("open", 0)
    with pytest.raises(Conflict, match="round-over"):
        store.play.answer(me, first, 1, ANSWER, START)


def test_a_drill_asks_nothing_that_an_open_round_still_asks(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 1, "both", START).id
    first, *later = (step.scenario for step in store.play.state(me, number).steps)
    store.play.answer(me, number, 0, ("proxy", "ssrf", "exec-deny"), START)  # all wrong, so it is due
    drill = store.play.state(me, store.play.begin_drill(me, "due", at(86_400_000)).id)
    drilled = [step.scenario for step in drill.steps]
    assert first in drilled or store.book.find(first).near in later
    assert not set(drilled) & set(later)
    store.play.leave(me, number, at(86_400_000))
    again = store.play.state(me, store.play.begin_drill(me, "due", at(86_400_000)).id)
    assert first in [step.scenario for step in again.steps]


def test_a_drill_leaves_an_open_round_alone(store: Store, me: str) -> None:
    round_ = store.play.begin_round(me, 1, "first", START).id
    drill = store.play.begin_drill(me, "near-pairs", START)
    assert (drill.kind, drill.tier, drill.clock_s, drill.count) == ("drill", None, None, 10)
    assert {line.status for line in store.play.rounds(me)} == {"open"}
    play_all(store, me, drill.id)
    done = store.play.round(me, drill.id, at(200_000))
    assert (done.status, done.grade, done.points) == ("done", None, 1000)
    assert store.play.open_round(me) == round_


def test_leaving_twice_is_leaving_once(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 1, "left", START).id
    first = store.play.leave(me, number, at(5_000))
    assert first.status == "broken-off"
    assert store.play.leave(me, number, at(9_000)) == first
    assert store.play.open_round(me) is None


def test_an_open_round_has_no_debrief(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 1, "open", START).id
    with pytest.raises(Conflict, match="round-open"):
        store.play.debrief(me, number)


def test_the_clock_setting_is_for_later_rounds(store: Store, me: str) -> None:
    before = store.play.begin_round(me, 4, "a", START)
    store.people.change_settings(me, {"clock": "double"})
    assert store.play.round(me, before.id, START).clock_s == 40
    assert store.play.begin_round(me, 4, "a", START).clock_s == 80
    store.people.change_settings(me, {"clock": "off"})
    assert store.play.begin_round(me, 4, "a", START).clock_s is None
    with pytest.raises(UserError, match="bad-setting"):
        store.people.change_settings(me, {"clock": "faster"})
    assert store.people.clock(me) == "off"


def test_a_restart_in_the_middle_loses_nothing_and_gives_nothing_away(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 2, "restart", START).id
    store.play.show(me, number, 0, START)
    after = at(30_000, start="second start")
    event = store.play.round(me, number, after).events[0]
    assert event.shown_ms == 30_000
    store.play.show(me, number, 0, after)  # a second showing begins nothing anew
    told = store.play.answer(me, number, 0, right_words(store, me, number, 0), after).feedback
    assert told.answer.ms == 30_000
    assert told.points.bonus == 6  # 60 of 90 seconds are left: 6.67, rounded down


def test_a_clock_set_back_gives_no_negative_time_and_no_bonus(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 2, "back", START).id
    store.play.show(me, number, 0, START)
    earlier = at(-86_400_000, start="second start")
    told = store.play.answer(me, number, 0, right_words(store, me, number, 0), earlier).feedback
    assert (told.answer.ms, told.points.bonus, told.points.total) == (None, 0, 100)
    for index in range(1, 9):
        store.play.answer(me, number, index, ANSWER, earlier)
    done = store.play.round(me, number, earlier)
    assert done.ended_at == done.started_at


def test_a_round_of_other_scenarios_is_listed_and_cannot_be_gone_on_with(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 1, "old", START).id
    other = Store(store.database, make_pack())
    assert [line.id for line in other.play.rounds(me)] == [number]
    assert other.play.open_round(me) is None
    with pytest.raises(Conflict, match="other-bank"):
        other.play.round(me, number, START)
    fresh = other.play.begin_round(me, 1, "new", START)
    assert other.play.open_round(me) == fresh.id
    assert {line.id: line.status for line in other.play.rounds(me)}[number] == "broken-off"


def test_learners_by_name(store: Store, me: str) -> None:
    assert store.people.enter("  YOU ", START).id == me
    assert store.people.enter("Zoë", START).name == "Zoë"
    assert store.people.enter("Zoe\u0308", START).name == "Zoë"  # the same letter in two parts
    assert [one.name for one in store.people.all()] == ["you", "Zoë"]
    for bad in ("", "   ", "x" * 41, "a\x00b", "a\u202eb"):
        with pytest.raises(UserError, match="bad-name"):
            store.people.enter(bad, START)
    with pytest.raises(Missing, match="no-such-learner"):
        store.people.find("nobody")
    with pytest.raises(Missing, match="no-such-learner"):
        store.play.begin_round("nobody", 1, "x", START)


def test_notes_and_the_gap_log(store: Store, me: str) -> None:
    number = store.play.begin_round(me, 1, "notes", START).id
    store.play.put_note(me, number, "why", "first")
    store.play.put_note(me, number, "why", "because of the port")
    with pytest.raises(Missing, match="no-such-question"):
        store.play.put_note(me, number, "who", "x")
    with pytest.raises(UserError, match="text-too-long"):
        store.play.put_note(me, number, "why", "x" * 4001)
    one = store.desk.add_gap(me, " IPv6 carriers ", "E076", START)
    two = store.desk.add_gap(me, "phases", "", START)
    store.desk.change_gap(me, one.id, None, True)
    store.desk.change_gap(me, two.id, "phases and identities", None)
    play_all(store, me, number)
    told = store.play.debrief(me, number)
    assert {question.key: question.note for question in told.questions if question.note} == {
        "why": "because of the port"
    }
    assert list(msgspec.to_builtins(told)["gap_log"]) == [
        {"id": two.id, "text": "phases and identities", "from": "", "done": False},
        {"id": one.id, "text": "IPv6 carriers", "from": "E076", "done": True},
    ]
    other = store.people.enter("other", START).id
    with pytest.raises(Missing, match="no-such-gap"):
        store.desk.change_gap(other, one.id, "mine now", None)
    with pytest.raises(UserError, match="empty-text"):
        store.desk.add_gap(me, "  ", "", START)


def test_a_draft_and_the_workshop_are_kept_for_each_learner(store: Store, me: str) -> None:
    other = store.people.enter("other", START).id
    assert store.desk.draft(me) is None
    store.desk.put_draft(me, "version: 1\n", START)
    store.desk.put_draft(me, "version: 1\nrules: []\n", START)
    assert (store.desk.draft(me), store.desk.draft(other)) == ("version: 1\nrules: []\n", None)
    store.desk.put_workshop(me, {"steps": {"read": True}, "notes": "ä"}, START)
    assert store.desk.workshop(me) == {"steps": {"read": True}, "notes": "ä"}
    assert store.desk.workshop(other) == {}
    with pytest.raises(UserError, match="text-too-long"):
        store.desk.put_draft(me, "#" * (256 * 1024 + 1), START)


def test_numbers_over_all_rounds(store: Store, me: str) -> None:
    for seed, wrong in (("one", ()), ("two", (0, 3)), ("three", ())):
        number = store.play.begin_round(me, 2, seed, START).id
        play_all(store, me, number, wrong=wrong)
    tally = store.review.tally(me)
    assert (tally.rounds, tally.answered, tally.best) == (3, 27, {"2": "S"})
    progress = store.review.progress(me, START)
    assert (progress.sensitivity.n, len(progress.history)) == (27, 3)
    assert progress.sensitivity.hits + progress.sensitivity.others - progress.sensitivity.false_alarms == 25
    assert sum(one.sensitivity.signals for one in progress.per_risk) == progress.sensitivity.signals
    assert {one.sensitivity.others for one in progress.per_risk} == {progress.sensitivity.others}
    assert sum(one.missed for one in progress.most_missed) == 2
    other = store.people.enter("other", START).id
    assert store.review.tally(other).answered == 0


def test_the_clock_of_the_server_goes_on_and_names_its_start() -> None:
    now = Now()
    one, other = now(), now()
    assert one.start == other.start != Now()().start
    assert other.mono_ms >= one.mono_ms
    assert one.wall_ms > 1_700_000_000_000
