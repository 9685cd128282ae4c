"""What a person reads when a run ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stockade.gateway.journal import Denial, Journal, Unreached
from stockade.ledger.record import Redactor
from stockade.run.report import summary_lines
from stockade.sandbox.limits import ReachedLimit
from stockade.vocabulary import Verdict

QUESTION = Denial("a.test (name question)", "not-listed", "No rule lists the name a.test.", "a.test", True)
CONNECTION = Denial("a.test:80", "not-listed", "No rule lists a.test on port 80 (http).", "a.test", False)


def session(
    denials: dict[Denial, int], left_out: int = 0, limits: tuple[str, ...] = (), source: str = "p.yaml"
) -> Any:
    journal = Journal(None, "digest")  # type: ignore[arg-type]  # nothing is recorded here
    journal.denials.update(denials)
    journal.denials_left_out = left_out
    journal.attempts[Verdict.DENY] = sum(denials.values()) + left_out
    journal.attempts[Verdict.ALLOW] = 2
    ledger = SimpleNamespace(redactor=Redactor(b"key"))
    return SimpleNamespace(
        journal=journal,
        ledger=ledger,
        options=SimpleNamespace(ledger=None),
        policy=SimpleNamespace(source=source),
        shelf="shelf",
        run_id="run-1",
        limits_reached=lambda: [ReachedLimit("processes", 256, message) for message in limits],
    )


@pytest.mark.parametrize(
    ("denials", "left_out", "head"),
    [
        ({CONNECTION: 1, QUESTION: 2}, 0, "3 attempts denied (2 name questions among them), 2 let through"),
        ({CONNECTION: 1, QUESTION: 1}, 0, "2 attempts denied (1 name question among them), 2 let through"),
        ({CONNECTION: 1}, 0, "1 attempt denied, 2 let through"),
        ({QUESTION: 2}, 0, "2 attempts denied, 2 let through"),
        ({CONNECTION: 1, QUESTION: 2}, 5, "8 attempts denied, 2 let through"),
    ],
)
def test_name_questions_are_counted_apart_where_they_are_not_listed(
    denials: dict[Denial, int], left_out: int, head: str
) -> None:
    lines = summary_lines(session(denials, left_out), None)
    assert lines[0] == f"stockade: {head}"
    assert sum("a.test" in line for line in lines) == 1
    assert lines[-1] == "stockade: the whole record: stockade log --run run-1"


def test_what_was_permitted_and_not_reached_is_said_and_is_no_refusal() -> None:
    run = session({})
    run.journal.unreached[Unreached("gone.test:443", "resolution-failed", "no-such-name")] = 2
    run.journal.unreached.update(Unreached(f"{n}.test:80", "dial-failed", "refused") for n in range(15))
    lines = summary_lines(run, None)
    assert lines[0] == "stockade: 17 permitted attempts reached nothing"
    assert lines[1] == "    2× gone.test:443  resolution-failed: no-such-name"
    assert lines[-2:] == [
        "  … and 4 other places",
        "stockade: the whole record: stockade log --run run-1",
    ]


def test_a_limit_that_had_an_effect_is_said_and_without_one_there_is_nothing_to_say() -> None:
    assert summary_lines(session({}, limits=("process limit of 256 reached: refused 3 times",)), None) == [
        "stockade: process limit of 256 reached: refused 3 times",
        "stockade: the whole record: stockade log --run run-1",
    ]
    assert summary_lines(session({}), None) == []


def program(name: str, entry: str) -> Denial:
    return Denial(name, "program-not-listed", f'No `exec:` entry lists "{name}".', "", entry=entry)


def test_several_refused_programs_are_offered_in_one_line_to_copy() -> None:
    run = session({program("ls", "ls"): 3, program("/usr/bin/ls", "ls"): 1, program("yes", "yes"): 1})
    offers = [line for line in summary_lines(run, None) if "all of these" in line]
    # YAML 1.1 reads a bare yes as a truth value, so it is quoted.
    assert offers == ['stockade: to allow all of these programs: `exec: {allow: [ls, "yes"]}`']
    assert not any("all of these" in line for line in summary_lines(session({program("ls", "ls"): 3}), None))


def test_without_a_policy_it_is_said_where_the_lines_go() -> None:
    without = "\n".join(summary_lines(session({CONNECTION: 1}, source="builtin:deny-all"), None))
    assert "no policy was given: put `version: 1`" in without
    assert "no policy was given" not in "\n".join(summary_lines(session({CONNECTION: 1}), None))


def test_advice_stands_before_the_pointer_to_the_record() -> None:
    lines = summary_lines(session({}), None, ["make looks first"])
    assert lines == [
        "stockade: make looks first",
        "stockade: the whole record: stockade log --run run-1",
    ]
