"""The words of an answer: all of the vocabulary, none besides, each with an example that shows it."""

from __future__ import annotations

import json

import msgspec
import pytest

from stockade.lab.game.words import CLASSES, CONTROLS, DECISIONS, RISKS, Explained, tell_words
from stockade.lab.pack.pack import shipped_bank
from stockade.vocabulary import Control, PlaceClass, Risk, Verdict

# DESIGN §2, counted by hand: 3 verdicts, 7 risks, 24 controls, 19 classes of places
COUNTS = {"decisions": 3, "risks": 7, "controls": 24, "classes": 19}
ALL = (*DECISIONS, *RISKS, *CONTROLS, *CLASSES)


def test_the_words_are_the_vocabulary_in_its_order_and_nothing_besides() -> None:
    assert [one.word for one in DECISIONS] == ["allow", "proxy", "deny"]
    assert {one.word for one in DECISIONS} == {verdict.word for verdict in Verdict}
    assert [one.word for one in RISKS] == list(Risk)
    assert [one.word for one in CONTROLS] == list(Control)
    assert [one.word for one in CLASSES] == list(PlaceClass)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.word)
def test_a_help_is_whole_sentences(one: Explained) -> None:
    for text in filter(None, (one.help, one.unless)):
        assert text[0].isupper()
        assert text.endswith(".")


@pytest.mark.parametrize("one", CONTROLS, ids=lambda one: one.word)
def test_a_control_s_example_has_that_control(one: Explained) -> None:
    found = shipped_bank().find(one.example)
    assert found is not None
    assert found.key.control == one.word
    assert found.is_control_in_the_line


@pytest.mark.parametrize("one", RISKS, ids=lambda one: one.word)
def test_a_risk_s_example_has_that_risk(one: Explained) -> None:
    found = shipped_bank().find(one.example)
    assert found is not None
    assert found.key.risk == one.word


@pytest.mark.parametrize("one", DECISIONS, ids=lambda one: one.word)
def test_a_decision_s_example_is_called_so(one: Explained) -> None:
    found = shipped_bank().find(one.example)
    assert found is not None
    assert found.key.verdict.word == one.word


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.word)
def test_a_class_s_example_is_of_that_class(one: Explained) -> None:
    found = shipped_bank().find(one.example)
    assert found is not None
    assert found.key.place == one.word


def test_what_looks_alike_is_named_by_words_that_exist() -> None:
    known = {*Risk, *Control, "link-local"}
    for one in ALL:
        named = [word.strip(".,;:") for word in one.unless.split() if word.count("-") >= 1]
        assert [word for word in named if word not in known] == []


def test_examples_are_told_with_the_event_and_left_out_of_another_pack() -> None:
    bank = shipped_bank()
    told = tell_words(bank)
    assert {name: len(words) for name, words in told.items()} == COUNTS
    metadata = next(one for one in told["controls"] if one["word"] == "deny-link-local-metadata")
    assert metadata["example"]["scenario"] == "E067"
    assert "169.254.169.254" in metadata["example"]["attempt"]
    empty = tell_words(msgspec.structs.replace(bank, scenarios=()))
    assert all(one["example"] is None for group in empty.values() for one in group)
    json.dumps(told)
