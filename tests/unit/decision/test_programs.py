"""Programs judged by the file that would run, and what a refusal says about it."""

from __future__ import annotations

from typing import Any

import pytest
from decision_texts import engine_of
from msgspec.structs import replace

from stockade.decision.engine import Engine
from stockade.decision.request import Attempt, Decision
from stockade.gateway.journal import attempt_fields
from stockade.vocabulary import Control, Entry, Phase, Protocol, Reason, Risk, Verdict

LISTED = "exec: {allow: [git, /opt/tool/run]}"
FILES = frozenset(("/usr/bin/git", "/opt/tool/run", "/usr/bin/python3.11"))  # the last one was launched


def started(*argv: str, file: str | None = None, interpreter: str | None = None) -> Attempt:
    return Attempt(entry=Entry.EXEC, protocol=Protocol.EXEC, argv=argv, file=file, is_script_of=interpreter)


def decide(text: str, attempt: Attempt, programs: Any = FILES) -> Decision:
    return engine_of(text, programs=programs).decide(attempt)


@pytest.mark.parametrize(
    "argv0", ["git", "/usr/bin/git", "/proc/self/root/usr/bin/git", "sh", "", "anything at all"]
)
def test_a_permitted_file_runs_whatever_it_is_called(argv0: str) -> None:
    decision = decide(LISTED, started(argv0, file="/usr/bin/git"))
    assert (decision.verdict, decision.reason) == (Verdict.ALLOW, Reason.PROGRAM_LISTED)
    assert decision.risk is Risk.BENIGN


@pytest.mark.parametrize("file", ["/usr/bin/dash", "/work/git", "/usr/bin/git2", "/opt/tool", "/usr/bin/GIT"])
def test_r141_another_file_does_not_run_though_it_is_called_by_a_listed_name(file: str) -> None:
    """A copy, a link's target, a made-up first argument: the name permits nothing."""
    decision = decide(LISTED, started("git", file=file))
    assert (decision.verdict, decision.reason) == (Verdict.DENY, Reason.PROGRAM_NOT_LISTED)
    assert (decision.risk, decision.control) == (Risk.BOUNDARY_TAMPERING, Control.EXEC_DENY)


def test_a_file_that_could_not_be_found_out_does_not_run() -> None:
    decision = decide(LISTED, started("/usr/bin/git"))
    assert decision.verdict is Verdict.DENY
    assert (decision.risk, decision.control) == (Risk.BOUNDARY_TAMPERING, Control.EXEC_DENY)
    assert "cannot be told" in decision.why
    assert decide(LISTED, started("/usr/bin/git"), programs=None).verdict is Verdict.ALLOW


def test_without_a_key_the_launched_command_runs_and_nothing_else() -> None:
    assert decide("rules: []", started("python3", file="/usr/bin/python3.11")).verdict is Verdict.ALLOW
    assert decide("rules: []", started("sh", file="/usr/bin/dash")).verdict is Verdict.DENY


def test_mode_any_permits_every_file_also_one_that_is_not_known() -> None:
    for attempt in (started("sh", file="/usr/bin/dash"), started("x"), started("x", file="/work/x")):
        decision = decide("exec: {mode: any}", attempt, programs=frozenset())
        assert (decision.verdict, decision.rule) == (Verdict.ALLOW, "policy.yaml:2")
        assert "mode: any" in decision.why


def test_an_empty_set_of_programs_permits_nothing() -> None:
    assert decide(LISTED, started("git", file="/usr/bin/git"), programs=frozenset()).verdict is Verdict.DENY


def test_another_phase_keeps_the_programs() -> None:
    engine = engine_of(LISTED, programs=FILES).for_phase(Phase.SCORING)
    assert isinstance(engine, Engine)
    assert engine.decide(started("git", file="/work/git")).verdict is Verdict.DENY
    assert engine.decide(started("git", file="/usr/bin/git")).verdict is Verdict.ALLOW


def test_the_rule_of_a_pass_is_the_line_of_its_entry() -> None:
    text = "exec:\n  allow:\n    - git\n    - /usr/lib/git-core/*\n"
    programs = {
        "/usr/lib/git-core/git-bisect": "/usr/lib/git-core/*",
        "/usr/bin/dash": "interpreter of /usr/lib/git-core/git-bisect",
        "/work/start": "the launched command",
    }
    by_pattern = decide(text, started("git-bisect", file="/usr/lib/git-core/git-bisect"), programs)
    assert (by_pattern.rule, by_pattern.why) == (
        "policy.yaml:5",
        "policy.yaml:5 lists /usr/lib/git-core/*, which covers git-bisect.",
    )
    interpreter = decide(text, started("sh", file="/usr/bin/dash"), programs)
    assert interpreter.rule == "builtin:exec"
    assert "interpreter of /usr/lib/git-core/git-bisect" in interpreter.why
    assert "the launched command" in decide(text, started("start", file="/work/start"), programs).why


def test_a_mapping_permits_no_more_than_its_keys() -> None:
    programs = {"/usr/bin/git": "git"}
    assert decide(LISTED, started("git", file="/usr/bin/git"), programs).verdict is Verdict.ALLOW
    assert decide(LISTED, started("git", file="/opt/tool/run"), programs).verdict is Verdict.DENY


@pytest.mark.parametrize(
    ("called", "entry"),
    [
        ("/bin/sh", "sh"),
        ("/usr/bin/sh", "sh"),
        ("sh", "dash"),  # a file of whatever folder the worker was in
        ("/tmp/sh", "dash"),
        ("/usr/bin/../../tmp/sh", "dash"),
        ("/usr/bin/sh/../../../tmp/x", "dash"),
        ("/proc/self/root/bin/sh", "dash"),
    ],
)
def test_the_offered_name_is_one_that_nobody_inside_could_have_made(called: str, entry: str) -> None:
    attempt = replace(started("x", file="/usr/bin/dash"), program=called)
    assert f"`exec: {{allow: [{entry}]}}`" in decide("rules: []", attempt).why


@pytest.mark.parametrize(
    "file",
    ["/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1", "/usr/lib/ld-2.31.so"],
)
def test_r141_listing_the_loader_is_not_offered_since_it_would_load_any_file(file: str) -> None:
    why = decide("rules: []", started("/lib64/ld.so", file=file)).why
    assert "is the loader" in why
    assert "allow" not in why
    assert "`exec: {allow: [ld]}`" in decide("rules: []", started("ld", file="/usr/bin/ld")).why


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        # the name of a file in a fixed program folder, else its path; never argv's, which may say anything
        (started("id", file="/usr/bin/id"), "`exec: {allow: [id]}`"),
        (started("/usr/sbin/nft", file="/usr/sbin/nft"), "`exec: {allow: [nft]}`"),
        (started("git", file="/work/evil"), "`exec: {allow: [/work/evil]}`"),
        (started("sh", file="/usr/bin/dash"), "`exec: {allow: [dash]}`"),
        (started("cc1", file="/usr/lib/gcc/x/12/cc1"), "`exec: {allow: [/usr/lib/gcc/x/12/cc1]}`"),
        (started("x", file="/usr/bin/yes"), '`exec: {allow: ["yes"]}`'),
        (started("x", file="/usr/bin/["), '`exec: {allow: ["["]}`'),
        (started("/opt/a/b"), "`exec: {allow: [/opt/a/b]}`"),
    ],
)
def test_a_denial_says_the_line_that_permits_the_file(attempt: Attempt, said: str) -> None:
    why = decide("rules: []", attempt, programs=None).why
    assert said in why
    offered = said.strip("`")
    files = {attempt.file: "listed"} if attempt.file else None
    assert decide(offered, attempt, files).verdict is Verdict.ALLOW
    if attempt.file:
        assert decide(offered, started(attempt.file), None).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "file",
    [
        "/memfd:x (deleted)",
        "/proc/1/exe",
        "/work/a b",
        "/work/a*b",
        "/work/a[b",
        "/work/\x1b[2J",
        "/w/\udcff",
    ],
)
def test_a_file_that_cannot_be_listed_is_not_offered(file: str) -> None:
    why = decide("rules: []", started("x", file=file)).why
    assert "allow:" not in why
    assert why.isprintable()


def test_a_script_is_told_apart_with_the_form_that_runs() -> None:
    """Expected: R9 of the boundary's recipes, "run it as python3 s.py, or list it"."""
    script = started("./s.py", file="/work/s.py", interpreter="/usr/bin/env python3")
    why = decide("exec: {allow: [python3]}", script).why
    assert "a script for python3" in why
    assert "run it as `python3 ./s.py`, or add `exec: {allow: [/work/s.py]}`" in why


def test_a_script_whose_interpreter_is_not_listed_says_what_listing_it_means() -> None:
    script = started("./s.sh", file="/work/s.sh", interpreter="/bin/sh -e")
    why = decide("rules: []", script).why
    assert "which permits its interpreter for every command line" in why
    assert "list the interpreter and run `sh -e ./s.sh`" in why


def test_a_script_of_env_alone_has_no_form_that_runs() -> None:
    script = started("./s", file="/work/s", interpreter="/usr/bin/env")
    why = decide("exec: {allow: [env]}", script).why
    assert "`exec: {allow: [/work/s]}`" in why
    assert "`env " not in why


def test_a_script_that_was_called_by_another_name_is_shown_by_its_path() -> None:
    script = started("python3", file="/work/s.py", interpreter="/usr/bin/python3")
    assert "`python3 /work/s.py`" in decide("exec: {allow: [python3]}", script).why


def test_the_record_has_the_file_and_the_interpreter_beside_what_was_typed() -> None:
    attempt = started("./s.py", "-x", file="/work/s.py", interpreter="/usr/bin/env python3")
    fields = attempt_fields(attempt, decide(LISTED, attempt))
    assert fields["argv"] == ["./s.py", "-x"]
    assert (fields["file"], fields["interpreter"]) == ("/work/s.py", "/usr/bin/env python3")
    plain = attempt_fields(started("x"), decide(LISTED, started("x")))
    assert not {"file", "interpreter"} & set(plain)
