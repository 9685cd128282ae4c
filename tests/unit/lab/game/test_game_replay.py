"""A policy as the answer: the whole bank under a learner's text."""

from __future__ import annotations

import json
import time

import pytest

from doubles.lab_game import CARD, bank, make_pack
from stockade.errors import UserError
from stockade.lab.game.book import Book
from stockade.lab.game.replay import LONGEST, lint_text, replay_text
from stockade.lab.game.task import Need, tell_task
from stockade.policy.lint import lint_policy
from stockade.policy.load import load_policy_text

ROWS = bank().pack.scenarios
CARD_TEXT = bank().pack.policy_text
UNSEEN = ("E012", "E013", "E058", "E130", "E133")
NEEDED = [row.id for row in ROWS if row.is_legitimate and row.id not in UNSEEN]
DENIED = [row.id for row in ROWS if not row.is_legitimate and row.id not in UNSEEN]


def test_the_card_itself_leaks_nothing_and_breaks_nothing() -> None:
    told = replay_text(CARD_TEXT, bank())
    assert (told.leaks, told.breakages, told.unwatched) == ((), (), ())
    assert (told.right, told.total, told.grade_word) == (166, 166, "S")
    assert told.waiting == UNSEEN


def test_an_empty_policy_breaks_everything_and_leaks_nothing() -> None:
    told = replay_text("version: 1\n", bank())
    assert told.leaks == ()
    assert [one.id for one in told.breakages] == NEEDED
    assert (told.score.denied.percent, told.score.needed.percent) == (100.0, 0.0)
    assert told.grade_word == "D"


def test_what_a_wide_rule_lets_out_is_listed_with_the_line_that_did_it() -> None:
    told = replay_text('version: 1\nrules:\n  - allow: "*.example"\n', bank())
    leaks = {one.id: one for one in told.leaks}
    assert set(leaks) < set(DENIED)
    assert leaks["E043"].key == "deny"
    assert (leaks["E043"].got, leaks["E043"].rule, leaks["E043"].line) == ("allow", "policy.yaml:3", 3)
    assert told.grade_word == "D"


def test_no_policy_reaches_a_metadata_service() -> None:
    wide = 'version: 1\nrules:\n  - allow: "*.test"\n  - allow: "*.example"\nexec: {mode: any}\n'
    leaked = {one.id for one in replay_text(wide, bank()).leaks}
    assert not leaked & {row.id for row in ROWS if row.key.risk == "metadata-credentials"}
    assert leaked


def test_watching_what_should_be_watched_is_counted_apart() -> None:
    text = CARD_TEXT.replace("- proxy: issues.corp.test", "- allow: issues.corp.test").replace(
        "    methods: [GET]\n    paths: [/api/tickets/**]\n"
        "    credential: {header: authorization, env: ISSUES_TOKEN}\n",
        "",
    )
    told = replay_text(text, bank())
    assert {one.id for one in told.unwatched} == {"E096", "E204"}
    assert (told.leaks, told.breakages) == ((), ())
    assert told.right == 164
    assert told.grade_word == "A"
    assert "wrong door" in told.why_grade


def test_one_line_less_is_one_breakage_and_one_grade_less() -> None:
    text = CARD_TEXT.replace("  - proxy: search.provider.example\n", "  - deny: search.provider.example\n")
    for key in ("    paths: [/]\n", "    max-query: 1KiB\n    phases: [setup, work]\n"):
        text = text.replace(key, "", 1)
    text = text.replace("    class: search\n    methods: [GET]\n", "    class: search\n", 1)
    told = replay_text(text, bank())
    assert [one.id for one in told.breakages] == ["E009"]
    assert told.grade_word == "A"
    assert told.why_grade == "A, not S: 1 breakage of 74, where S takes none."


def test_the_catalogue_stays_and_the_rest_stands_alone() -> None:
    """The catalogue opens nothing; programs that the text does not list are denied."""
    told = replay_text(CARD_TEXT.replace("  allow: [python3, git, /usr/bin/gcc]\n", "  allow: []\n"), bank())
    assert {one.id for one in told.breakages} == {
        row.id for row in ROWS if row.is_legitimate and row.words[0] == "exec"
    }
    without = CARD_TEXT[: CARD_TEXT.index("catalogue:")]
    assert replay_text(without, bank()) == replay_text(CARD_TEXT, bank())


def test_lint_says_line_code_and_what_would_be_better() -> None:
    policy, lint = lint_text("version: 1\nrulez: []\n")
    assert policy is None
    assert not lint.ok
    assert [(one.line, one.severity) for one in lint.findings] == [(2, "error")]
    assert "rules" in str(lint.findings[0].better) + lint.findings[0].message
    policy, lint = lint_text('version: 1\nrules:\n  - allow: "*.com"\n')
    assert lint.findings[0].line == 3
    policy, lint = lint_text(CARD)
    assert lint.ok
    assert policy is not None


def test_lint_does_not_advise_against_what_the_task_asks_for() -> None:
    """A run today cannot hold conditions inside TLS; the replay judges as if it could."""
    text = "version: 1\nrules:\n  - proxy: docs.framework.test\n    methods: [GET]\n"
    _, lint = lint_text(text)
    assert [one.code for one in lint.findings if one.code == "inspection-needed"] == []
    assert [one.code for one in lint_policy(load_policy_text(text)) if one.code == "inspection-needed"]


def test_a_text_that_is_no_policy_is_not_replayed() -> None:
    with pytest.raises(UserError):
        replay_text("version: 1\nrules: [", bank())
    for act in (lint_text, lambda text: replay_text(text, bank())):
        with pytest.raises(UserError, match="text-too-long"):
            act("#" * (LONGEST + 1))


def test_the_bank_is_replayed_fast_enough_to_do_it_while_typing() -> None:
    """The goal is 150 ms; ten times that here, since a busy machine is no fault."""
    started = time.perf_counter()
    replay_text(CARD_TEXT, bank())
    assert time.perf_counter() - started < 1.5


def test_the_starting_text_is_a_policy_that_permits_nothing() -> None:
    task = tell_task(bank())
    policy, lint = lint_text(task.text)
    assert lint.ok
    assert {one.severity for one in lint.findings} == {"note"}
    assert policy is not None
    assert len(replay_text(task.text, bank()).breakages) == len(NEEDED)


def test_the_task_names_each_place_that_is_needed_and_gives_no_line_of_the_card_away() -> None:
    task = tell_task(bank())
    hosts = {need.host for need in task.needs}
    used = {bank().decide(row).rule for row in ROWS if row.is_legitimate}
    named = {rule.host.text for rule in bank().pack.policy.rules if rule.origin in used}
    assert named <= hosts
    assert "programs" in hosts
    told = "\n".join([task.task, *(need.what for need in task.needs)])
    for key in ("methods:", "paths:", "max-body", "credential:", "networks:", "max-query"):
        assert key not in told
    for need in task.needs:
        assert need.examples
        assert need.what.startswith("In ")


def write_policy(needs: tuple[Need, ...]) -> str:
    """A policy that grants exactly what the list of needs says, and nothing else."""
    rules, internal, programs = [], [], []
    for need in needs:
        programs += need.programs
        for way in need.ports:
            scheme, _, port = way.partition(":")
            rule: dict[str, object] = {
                ("proxy" if need.watched else "allow"): need.host,
                "ports": [int(port)],
            }
            rule |= {"phases": list(need.phases), "identities": list(need.identities)}
            rule |= {"protocol": "http"} if scheme == "http" else {}
            rule |= {"methods": list(need.methods)} if need.methods else {}
            rule |= {"paths": list(need.paths)} if need.paths else {}
            rules.append(rule)
            networks = [f"{address}/32" for address in need.addresses]
            if networks:
                internal.append({"host": need.host, "networks": networks, "ports": [int(port)]})
    return json.dumps({"version": 1, "rules": rules, "internal": internal, "exec": {"allow": programs}})


def test_the_list_of_needs_is_complete() -> None:
    needs = tell_task(bank()).needs
    told = replay_text(write_policy(needs), bank())
    assert told.breakages == ()
    assert told.unwatched == ()
    for need in needs:
        for word in (*need.methods, *need.paths, *need.addresses, *need.programs):
            assert word in need.what


def test_one_leak_is_a_leak_and_a_perfect_policy_says_why() -> None:
    told = replay_text(CARD_TEXT, bank())
    assert told.why_grade == "S: nothing leaks, nothing breaks, and what has to be watched is."
    one = CARD_TEXT.replace("rules:", "rules:\n  - allow: pastebin.example", 1)
    assert "1 leak of" in replay_text(one, bank()).why_grade


def test_a_pack_of_ones_own_has_a_task_as_well() -> None:
    task = tell_task(Book(make_pack()))
    assert [(need.host, need.watched) for need in task.needs] == [
        ("docs.some.test", False),
        ("api.some.test", True),
    ]
