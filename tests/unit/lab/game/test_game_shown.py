"""What a player sees: nothing of the bank before the answer, everything after it."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from doubles.lab_game import START, at, bank, begin_round, deny_all, perfect, play, rule_engine
from stockade.evidence.questions import QUESTIONS as OF_RECORDS
from stockade.lab.game.background import draw_background
from stockade.lab.game.debrief import QUESTIONS, Overall, debrief
from stockade.lab.game.draw import are_near, draw_round
from stockade.lab.game.engine_words import tell_engine
from stockade.lab.game.feedback import present_feedback
from stockade.lab.game.present import present_event, present_round, present_summary
from stockade.lab.game.rounds import begin, give_answer, leave, show, take_hint
from stockade.lab.game.score import Answer
from stockade.lab.game.sensitivity import measure
from stockade.lab.game.tiers import TIERS, Tier
from stockade.lab.pack.scenario import Scenario
from stockade.vocabulary import Control, PlaceClass, Risk, Verdict

ROWS = bank().pack.scenarios
SEEDS = [str(number) for number in range(25)]


def as_json(value: object) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_before_the_answer_nothing_shows_that_stands_only_in_the_bank(row: Scenario) -> None:
    state = begin("r", "drill", None, "s", bank().pack.digest, "on", (row.id,), START)
    event = present_event(bank(), state, 0, START)
    text = as_json(event)
    assert json.dumps(row.attempt, ensure_ascii=False) in text
    assert row.stated_reason in text
    for hidden in (row.id, row.near, row.event, row.cue, row.why, row.source):
        assert not hidden or hidden not in text or hidden in row.attempt  # some cues are a word of the line
    assert (
        not {"key", "technique", "cue", "why", "near", "scenario", "class"}
        & msgspec.to_builtins(event).keys()
    )
    told = as_json(present_feedback(bank(), play(bank(), state, perfect), 0))
    for shown in (row.id, row.near, row.event, row.cue, row.why, row.source, row.technique):
        assert json.dumps(shown, ensure_ascii=False) in told


def test_an_answer_does_not_tell_the_key_of_an_event_that_is_still_to_come() -> None:
    """The two of a pair often stand in one round, and always in a drill of pairs."""
    first, second = next(
        (row, near) for row in ROWS if (near := bank().near(row)) is not None and near.near == row.id
    )
    state = begin("r", "drill", None, "s", bank().pack.digest, "on", (first.id, second.id), START)
    half, _ = give_answer(show(state, 0, START), 0, perfect(first, bank()), START)
    assert present_feedback(bank(), half, 0).near is None
    done, _ = give_answer(show(half, 1, START), 1, perfect(second, bank()), START)
    for told, near in (
        (present_feedback(bank(), done, index), one) for index, one in enumerate((second, first))
    ):
        assert told.near is not None
        assert told.near.scenario == near.id
    left = present_feedback(bank(), leave(half, START), 0)
    assert left.near is not None


def test_a_round_shows_what_was_answered_and_the_event_whose_turn_it_is() -> None:
    state = begin_round(bank(), tier=3)
    assert [event.index for event in present_round(bank(), state, START).events] == [0]
    done = play(bank(), state, perfect)
    shown = present_round(bank(), done, at(99_000))
    assert [event.index for event in shown.events] == list(range(9))
    assert (shown.current, shown.status, shown.grade, shown.count, shown.answered) == (
        None,
        "done",
        "S",
        9,
        9,
    )
    assert (shown.streak, shown.best_streak) == (9, 9)
    assert shown.started_at == "2025-11-30T10:53:20Z"  # date -u -d @1764500000


def test_the_time_of_an_event_goes_on_over_a_reload() -> None:
    state = show(begin_round(bank(), tier=2), 0, at(0))
    assert present_event(bank(), state, 0, at(7_500)).shown_ms == 7_500
    assert present_event(bank(), begin_round(bank(), tier=2), 0, at(7_500)).shown_ms is None


def test_hints_show_as_far_as_they_were_taken() -> None:
    state, _ = take_hint(begin_round(bank()), 0)
    hints = present_event(bank(), state, 0, START).hints
    assert ([hint.number for hint in hints.taken], hints.left, hints.next_cost) == ([1], 2, 5)
    for _ in range(2):
        state, _ = take_hint(state, 0)
    hints = present_event(bank(), state, 0, START).hints
    assert ([hint.cost for hint in hints.taken], hints.left, hints.next_cost) == ([0, 5, 15], 0, None)


def test_a_summary_of_an_open_round_has_points_and_no_grade() -> None:
    state = begin_round(bank())
    summary = present_summary(bank(), state)
    assert (summary.points, summary.percent, summary.grade, summary.ended_at) == (0, None, None, None)
    drill = begin("d", "drill", None, "s", bank().pack.digest, "on", ("E001", "E003"), START)
    done = present_summary(bank(), play(bank(), drill, perfect))
    assert (done.status, done.percent, done.grade, done.clock_s) == ("done", 100.0, None, None)


@pytest.mark.parametrize(
    ("number", "rule", "line", "text"),
    [
        ("E001", "bank-policy.yaml", 36, "- allow: docs.python.org"),
        ("E006", "bank-policy.yaml", 42, "max-query: 1KiB"),
        ("E099", "bank-policy.yaml", 223, "- rubrics.bench.test"),
        ("E184", "bank-policy.yaml", 247, "allow: [python3, git, /usr/bin/gcc]"),
        ("E067", "builtin:addresses", None, "a cloud metadata address, which no rule can open"),
        ("E008", "builtin:default-deny", None, "no rule names this destination"),
    ],
)
def test_a_decision_rests_on_a_line_of_the_card_or_on_what_is_built_in(
    number: str, rule: str, line: int | None, text: str
) -> None:
    rests_on = bank().rests_on(bank().find(number))
    assert rests_on.rule.startswith(rule)
    assert rests_on.line == line
    assert text in rests_on.text
    if line is not None and rests_on.last_line is not None:
        card = bank().pack.policy_text.splitlines()[line - 1 : rests_on.last_line]
        assert [one.strip() for one in card] == [one.strip() for one in rests_on.text.splitlines()]


def test_a_private_answer_rests_on_the_line_that_opens_it_as_well() -> None:
    text = bank().rests_on(bank().find("E167")).text
    assert text.startswith("- allow: app.test")
    assert text.endswith(
        "# and line 242, under internal:\n- {host: app.test, networks: [10.20.0.0/24], ports: [8080]}"
    )
    assert "internal" not in bank().rests_on(bank().find("E166")).text  # refused


DENIED = [row for row in bank().pack.scenarios if not row.is_legitimate]


@pytest.mark.parametrize("row", DENIED, ids=[row.id for row in DENIED])
def test_the_engine_teaches_nobody_to_open_what_should_stay_closed(row: Scenario) -> None:
    told = tell_engine(bank(), row, perfect(row, bank()))
    if row.key.place not in (PlaceClass.UNKNOWN, PlaceClass.DOCS):
        assert not re.search(r"to (allow|permit|reach) |, add |would carry", told)
    assert told.endswith(".")


def test_proxy_says_why_it_is_not_allow_and_allow_if_proxy_was_answered() -> None:
    def told(number: str, decision: Verdict) -> str:
        return tell_engine(bank(), bank().find(number), Answer(decision, Risk.BENIGN, Control.LOGGING_PROXY))

    assert told("E191", Verdict.ALLOW).endswith(
        "The card says proxy here: methods are limited and each request is recorded; allow would be a tunnel "
        "in which nothing is seen."
    )
    key = "methods, paths and sizes are limited, the gateway puts the key in and each request is recorded"
    assert key in told("E011", Verdict.PROXY)
    assert "verdict of its name" in told("E199", Verdict.ALLOW)
    assert "The card says allow here: a tunnel" in told("E001", Verdict.PROXY)
    assert "The card says" not in told("E001", Verdict.ALLOW)
    assert "A program is allowed or denied" in told("E184", Verdict.PROXY)


def test_an_entry_ends_before_the_next_one() -> None:
    text = bank().rests_on(bank().find("E001")).text
    assert "language reference" in text
    assert "*.docs.test" not in text


def test_a_control_that_is_not_built_says_so_and_one_that_is_does_not() -> None:
    def note(number: str) -> str:
        state = begin("r", "drill", None, "s", bank().pack.digest, "on", (number,), START)
        return present_feedback(bank(), play(bank(), state, perfect), 0).live_note

    assert note("E001") == ""
    assert "open TLS" in note("E011")
    assert "look inside" in note("E012")


# Noise


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: str(tier.tier))
def test_each_tier_has_its_lines_of_other_traffic(tier: Tier) -> None:
    number, noise = tier.tier, tier.noise
    for seed in SEEDS:
        state = begin_round(bank(), seed, number)
        scenarios = tuple(step.scenario for step in state.steps)
        in_round = {bank().find(one).attempt for one in scenarios}
        for index in range(9):
            lines = draw_background(bank(), scenarios, index, seed, noise)
            assert len(lines) == noise
            assert [line.time for line in lines] == sorted({line.time for line in lines})
            assert not in_round & {line.text for line in lines} or noise == 0
            assert draw_background(bank(), scenarios, index, seed, noise) == lines


def test_noise_is_of_the_same_phase_and_identity_where_there_is_enough_and_decided_by_the_engine() -> None:
    by_attempt: dict[str, list[Scenario]] = {}
    for row in ROWS:
        by_attempt.setdefault(row.attempt, []).append(row)
    scenarios = draw_round(bank().pack, "noise", 2)
    checked = 0
    for index, number in enumerate(scenarios):
        event = bank().find(number)
        for line in draw_background(bank(), scenarios, index, "noise", 3):
            rows = by_attempt.get(line.text, [])
            here = [row for row in rows if (row.phase, row.identity) == (event.phase, event.identity)]
            assert not any(are_near(row, event) for row in rows)
            if here:
                checked += 1
                assert line.verdict in {row.key.verdict.word for row in here}
    assert checked >= 20


# Debrief


def empty_overall() -> Overall:
    return Overall(0, 0, 0, measure([]))


def test_a_debrief_counts_by_risk_control_and_class_and_lists_what_was_missed() -> None:
    done = play(bank(), begin_round(bank(), "deny", 2), deny_all)
    told = debrief(bank(), done, notes={"why": "because"}, gaps=(), overall=empty_overall())
    legitimate = [step for step in done.steps if bank().find(step.scenario).is_legitimate]
    assert (told.grade, len(told.leaks), len(told.blocks)) == ("D", 0, len(legitimate))
    assert {one.scenario for one in told.missed} == {step.scenario for step in legitimate}
    for axis in ("risk", "control", "class"):
        shares = [share for share in told.by_class if share.axis == axis]
        assert sum(share.total for share in shares) == 9
        assert sum(share.right for share in shares) == 9 - len(legitimate)
        assert [share.right / share.total for share in shares] == sorted(
            share.right / share.total for share in shares
        )
    assert [question.key for question in told.questions if question.note] == ["why"]


def test_the_questions_are_those_of_an_evidence_record() -> None:
    assert [(key, text) for key, text, _ in QUESTIONS] == [(one.key, one.text) for one in OF_RECORDS]


def test_a_round_that_was_left_is_debriefed_without_a_grade() -> None:
    left = leave(begin_round(bank()), at(5))
    told = debrief(bank(), left, notes={}, gaps=(), overall=empty_overall())
    assert (told.grade, told.percent, told.missed) == (None, 0.0, ())


def test_a_rule_engine_that_plays_says_what_the_engine_says() -> None:
    state = play(bank(), begin_round(bank(), "engine", 4), rule_engine)
    for index in range(9):
        told = present_feedback(bank(), state, index)
        assert (told.answer.decision, told.answer.control) == (told.engine.verdict, told.engine.control)
        if bank().find(told.scenario).is_seen_by_the_line:  # else the engine would need the look inside
            assert Verdict[told.key.decision.upper()].word == told.engine.verdict
