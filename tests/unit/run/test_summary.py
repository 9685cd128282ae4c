"""What a person reads when a run ends."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from stockade.gateway.journal import Denial, Journal, Unreached
from stockade.ledger.record import Redactor
from stockade.policy.load import load_policy_text
from stockade.policy.model import Policy
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


def test_a_command_that_was_started_is_not_counted_as_let_through() -> None:
    """A reader takes that for a connection that got out."""
    run = session({CONNECTION: 1})
    run.journal.commands_started = 2
    assert summary_lines(run, None)[0] == "stockade: 1 attempt denied, 0 let through"


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


def test_without_a_policy_it_is_said_where_the_lines_go() -> None:
    without = "\n".join(summary_lines(session({CONNECTION: 1}, source="builtin:deny-all"), None))
    assert "no policy was given: put `version: 1`" in without
    assert "no policy was given" not in "\n".join(summary_lines(session({CONNECTION: 1}), None))
    advised = summary_lines(session({}, source="builtin:deny-all"), None, ["add `exec: {code: jit}`"])
    assert "no policy was given" in advised[1]
    assert summary_lines(session({}, source="builtin:deny-all"), None) == []


def test_advice_stands_before_the_pointer_to_the_record() -> None:
    lines = summary_lines(session({}), None, ["make looks first"])
    assert lines == [
        "stockade: make looks first",
        "stockade: the whole record: stockade log --run run-1",
    ]


# --- commands and code -----------------------------------------------------------------------------


def command(entry: str, file: str = "") -> Denial:
    why = f"No `exec:` entry lists it; to allow the program, add `exec: {{allow: [{entry}]}}`."
    return Denial(entry, "program-not-listed", why, "", program=file or f"/usr/bin/{entry}", entry=entry)


def call(program: str, text: str, reason: str = "code-in-memory", key: str = "exec: {code: jit}") -> Denial:
    return Denial(text, reason, f"{text} is refused: a reason.", "", program=program, key=key)


def offered(lines: list[str]) -> list[Policy]:
    """What stands between backquotes in the line that says what to add: each loads as a policy."""
    (line,) = [line for line in lines if "to permit them, add" in line]
    return [load_policy_text(f"version: 1\n{text}\n") for text in re.findall(r"`([^`]+)`", line)]


def test_one_refused_program_is_told_by_its_reason() -> None:
    lines = summary_lines(session({command("ls"): 3}), None)
    assert lines[1].endswith("to allow the program, add `exec: {allow: [ls]}`.")
    assert len(lines) == 3


def test_several_refused_programs_are_offered_in_one_line_to_copy() -> None:
    """One, since a policy has room for one `exec:`; of a preset only where more than three are in it."""
    by_path = Denial("/usr/bin/ls", "program-not-listed", "why", "", program="/usr/bin/ls", entry="ls")
    lines = summary_lines(session({command("ls"): 3, by_path: 1, command("yes"): 1, command("id"): 1}), None)
    assert lines[1:-1] == [
        "    6× 3 programs that `exec:` does not list: 4× ls, yes, id",
        # YAML 1.1 reads a bare yes as a truth value, so it is quoted.
        '       to permit them, add `exec: {allow: [id, ls, "yes"]}`',
    ]
    assert offered(lines)[0].exec is not None


def test_a_script_is_told_alone_since_its_interpreter_may_do_instead_of_a_listing() -> None:
    why = "a script for sh; run it as `sh ./configure`, or add `exec: {allow: [/w/configure]}`."
    script = Denial(
        "./configure",
        "program-not-listed",
        why,
        "",
        program="/w/configure",
        entry="/w/configure",
        is_script=True,
    )
    lines = summary_lines(session({script: 1, command("ls"): 1, command("id"): 1}), None)
    assert "run it as `sh ./configure`" in lines[1]
    assert lines[2].endswith("2 programs that `exec:` does not list: ls, id")


def test_an_offer_is_not_cut_inside_however_long_its_paths_are() -> None:
    long = [command(f"/opt/{number:02}/{'x' * 100}") for number in range(20)]
    lines = summary_lines(session(dict.fromkeys(long, 1)), None)
    (policy,) = offered(lines)
    assert policy.exec is not None
    assert len(policy.exec.allow) == 5  # of 108 characters and ", " each, 600 at most
    assert lines[2].endswith("` and 15 more")
    one = [command(f"/opt/{number}/{'x' * 700}") for number in range(2)]
    assert len(offered(summary_lines(session(dict.fromkeys(one, 1)), None))) == 1


def test_connections_come_first_then_programs_then_code_then_advice() -> None:
    denials = {command("ls"): 9, command("id"): 9, call("/usr/bin/node", "mmap(PROT_EXEC)"): 9, CONNECTION: 1}
    lines = summary_lines(session(denials, source="builtin:deny-all"), None, ["make looks first"])
    order = (
        "a.test:80",
        "2 programs",
        "to permit them",
        "makes code",
        "make looks",
        "no policy was given",
        "the whole record",
    )
    assert len(lines) == 1 + len(order)
    assert all(text in line for text, line in zip(order, lines[1:], strict=True))


def test_four_refused_programs_get_one_proposal_the_preset_and_the_narrower_list() -> None:
    lines = summary_lines(session({command("ls"): 5} | {command(n): 1 for n in ("id", "git", "sed")}), None)
    assert lines[1] == "    8× 4 programs that `exec:` does not list: 5× ls, id, git, sed"
    preset, narrow = offered(lines)
    assert preset.exec is not None
    assert {"ls", "id", "git", "sed", "make"} <= set(preset.exec.allow)
    assert narrow.exec is not None
    assert narrow.exec.allow == ("git", "id", "ls", "sed")


def test_what_no_preset_has_stands_beside_the_preset_and_alone_where_none_fits() -> None:
    known = [command(name) for name in ("ls", "id", "git", "sed")]
    mixed = summary_lines(session(dict.fromkeys([*known, command("/opt/x", "/opt/x")], 1)), None)
    preset, rest = offered(mixed)
    assert preset.exec is not None
    assert rest.exec is not None
    assert rest.exec.allow == ("/opt/x",)
    own = [command(f"/opt/{name}") for name in ("a", "b", "null", "d+e")]
    (alone,) = [line for line in summary_lines(session(dict.fromkeys(own, 1)), None) if "to permit" in line]
    assert "include" not in alone


def test_the_shorter_of_two_presets_that_have_all_is_proposed() -> None:
    node = dict.fromkeys((command(name) for name in ("node", "npm", "npx", "env")), 1)
    assert "`include: [exec/node]`" in summary_lines(session(node), None)[2]
    python = dict.fromkeys((command(name) for name in ("python3", "pip", "pip3", "uname")), 1)
    assert "`include: [exec/python]`" in summary_lines(session(python), None)[2]


def test_a_program_that_makes_code_is_named_with_the_key_and_once() -> None:
    denials = {call("/usr/bin/node", "mprotect(PROT_EXEC)"): 2, call("/usr/bin/node", "mmap(PROT_EXEC)"): 1}
    lines = summary_lines(session(denials), None)
    assert lines[1] == (
        "    3× node  code-in-memory: node makes code while it runs"
        " (mprotect(PROT_EXEC) and mmap(PROT_EXEC)),"
        " which `code: closed` refuses; to permit it, add `exec: {code: jit}`"
    )
    assert len(lines) == 3


def test_the_end_of_a_long_reason_says_what_would_permit_it() -> None:
    long = Denial("x", "system-call-refused", "why " * 150 + "; to permit it, add `exec: {code: jit}`", "")
    assert summary_lines(session({long: 1}), None)[1].endswith("add `exec: {code: jit}`")
