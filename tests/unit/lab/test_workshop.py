"""The half day: steps that hang together, and progress that is read strictly."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from importlib import import_module

import pytest

from stockade.cli.main import COMMANDS
from stockade.errors import UserError
from stockade.evidence.questions import QUESTIONS
from stockade.lab.workshop import MINUTES, STEPS
from stockade.lab.workshop_progress import (
    Progress,
    change_progress,
    encode_progress,
    parse_progress,
    tell_workshop,
)

STOCKADE = [
    command.text
    for step in STEPS
    for command in step.commands
    if command.text.startswith("stockade ") and not command.text.startswith("stockade lab")
]


def test_it_takes_half_a_day_and_begins_with_reading_and_ends_with_the_record() -> None:
    assert 180 <= MINUTES <= 240
    assert [step.key for step in STEPS] == [
        *("read", "play", "policy", "red", "attack", "verify", "review", "explain", "record")
    ]


def test_each_step_says_what_to_do_what_is_seen_and_when_it_is_done() -> None:
    for step in STEPS:
        assert all((step.title, step.minutes, step.do, step.see, step.done_when))
        for text in (*step.do, step.see, step.done_when):
            assert text.endswith(".")


@pytest.mark.parametrize("text", STOCKADE)
def test_each_command_is_one_that_stockade_takes(text: str) -> None:
    _, *words = shlex.split(re.split(r"[;|]", text)[0])
    parser = argparse.ArgumentParser(exit_on_error=False)
    import_module(COMMANDS[words[0]][0]).add_parser(parser.add_subparsers())
    parser.parse_args(words)


def test_the_red_run_comes_before_the_green_one() -> None:
    red, green = next(step for step in STEPS if step.key == "red").commands
    assert "--without-layer" in red.text
    assert "--without-layer" not in green.text
    assert set(shlex.split(green.text)) < set(shlex.split(red.text))


def test_progress_comes_back_as_it_was_kept() -> None:
    progress = Progress(done=("read", "play"), notes={"why": "because"}, evidence="/tmp/my-evidence")
    assert parse_progress(encode_progress(progress)) == progress
    assert parse_progress(b"{}") == Progress()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"[", "bad-progress"),
        (b'"read"', "bad-progress"),
        (b'{"done":"read"}', "bad-progress"),
        (b'{"other":1}', "bad-progress"),
        (b"\xff", "bad-progress"),
        (b'{"done":["fly"]}', "unknown-step"),
        (b'{"notes":{"whence":""}}', "unknown-question"),
        (json.dumps({"notes": {"why": "x" * 20_001}}).encode(), "long-note"),
        (json.dumps({"evidence": "x" * 4097}).encode(), "long-path"),
    ],
)
def test_anything_else_is_refused(sent: bytes, code: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_progress(sent)
    assert refused.value.code == code


def test_a_change_touches_what_it_names_and_nothing_else() -> None:
    before = Progress(done=("read", "policy"), notes={"what": "a", "why": "b"}, evidence="/x")
    after = change_progress(before, b'{"ticks":{"record":true,"read":false},"notes":{"why":"c"}}')
    assert after == Progress(done=("policy", "record"), notes={"what": "a", "why": "c"}, evidence="/x")
    assert change_progress(before, b"{}") == before


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"[]", "bad-progress"),
        (b'{"ticks":{"read":"yes"}}', "bad-progress"),
        (b'{"evidence":"/elsewhere"}', "bad-progress"),  # that is set by verifying it
        (b'{"ticks":{"fly":true}}', "unknown-step"),
        (b'{"ticks":{"fly":false}}', "unknown-step"),
        (b'{"notes":{"whence":"x"}}', "unknown-question"),
    ],
)
def test_any_other_change_is_refused(sent: bytes, code: str) -> None:
    with pytest.raises(UserError) as refused:
        change_progress(Progress(), sent)
    assert refused.value.code == code


def test_the_page_is_told_steps_notes_and_what_is_missing() -> None:
    told = tell_workshop(Progress(done=("read",), notes={"what": "a claim", "why": " "}), has_policy=False)
    json.dumps(told)
    assert [step["is_done"] for step in told["steps"]] == [True] + [False] * 8
    assert told["steps"][3]["commands"][0]["text"] == STEPS[3].commands[0].text
    assert [one["key"] for one in told["questions"]] == [one.key for one in QUESTIONS]
    assert told["questions"][0]["note"] == "a claim"
    assert told["missing"] == ["policy", "evidence", *(one.key for one in QUESTIONS[1:])]
    whole = Progress(notes={one.key: "so" for one in QUESTIONS}, evidence="/x")
    assert tell_workshop(whole, has_policy=True)["missing"] == []
