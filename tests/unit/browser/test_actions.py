"""The closed set of actions, and what of an action stands in a record."""

from __future__ import annotations

import msgspec
import pytest

from stockade.browser.actions import (
    Click,
    Open,
    RunCommand,
    Scroll,
    Type,
    action_word,
    describe_step,
    parse_action,
)


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({"action": "open", "url": "http://a.test/"}, Open("http://a.test/")),
        ({"action": "type", "target": "q", "text": "x", "submit": True}, Type("q", "x", True)),
        ({"action": "scroll"}, Scroll(600)),
        ({"action": "run-command", "line": "id"}, RunCommand("id")),
    ],
)
def test_an_action_is_read_and_written_alike(fields: dict[str, object], action: object) -> None:
    assert parse_action(fields) == action
    assert parse_action(msgspec.to_builtins(action)) == action


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"action": "upload"},
        {"action": "open"},
        {"action": "open", "url": 5},
        {"url": "http://a.test/"},
        [],
        "open",
    ],
)
def test_nothing_else_is_an_action(fields: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_action(fields)


def test_a_record_holds_how_much_was_typed_and_not_what() -> None:
    assert describe_step(Type("Key", "päss")) == {"action": "type", "target": "Key", "text_bytes": 5}
    assert describe_step(Click("Go")) == {"action": "click", "target": "Go"}
    assert describe_step(RunCommand("echo a b")) == {"action": "run-command", "argv": ["echo a b"]}
    assert action_word(Scroll()) == "scroll"
