"""Every row of the bank that can be tried is tried, in a contained worker in a range, and its key agrees.

Each "cannot" stands beside a "can": what is refused under the bank's card arrives where a card permits it,
and what arrives although it was refused is noticed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stockade.lab.check import Bench, RowCheck, Standing, check_rows
from stockade.lab.live.card import write_live_card
from stockade.lab.live.client import BenchState, LiveBench
from stockade.lab.live.result import LiveResult, State
from stockade.lab.live.surroundings import find_program
from stockade.lab.pack.call import Caller
from stockade.lab.pack.load import load_pack
from stockade.lab.pack.pack import Pack, shipped_bank
from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.policy.load import load_policy
from stockade.policy.model import Policy
from stockade.vocabulary import Verdict

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60), pytest.mark.needs("world", "bwrap", "room")]

BANK = shipped_bank()
TRIED = [one for one in BANK.scenarios if one.live is Live.YES]
PYTHON = (sys.executable, "-P")
# What the bank's card refuses, each by a rule that permits it.
PERMITTING = """\
version: 1
name: the same under a card that permits it
policy: policy.yaml
scenarios:
  - {id: P1, attempt: GET https://docs.python.org.cdn.example/3/, verdict: allow, risk: benign,
     control: allowlist-exact, class: unknown, event: as E003, cue: listed here, why: listed here}
  - {id: P2, attempt: GET http://blog.tutorials.example/asyncio, verdict: proxy, risk: benign,
     control: logging-proxy, class: unknown, event: as E008, cue: listed here, why: listed here}
  - {id: P3, attempt: exec cat README.md, verdict: allow, risk: benign, control: allowlist-exact,
     class: local, event: as E109, cue: listed here, why: listed here}
  - {id: P4, attempt: tcp pool.example 9000, verdict: allow, risk: benign, control: allowlist-exact,
     class: unknown, event: as E057, cue: listed here, why: listed here}
  - {id: P5, attempt: dns blog.tutorials.example, verdict: proxy, risk: benign, control: own-resolver-only,
     class: unknown, event: as E140, cue: listed here, why: listed here}
"""
PERMITTING_CARD = """\
version: 1
rules:
  - allow: docs.python.org.cdn.example
  - {proxy: blog.tutorials.example, ports: [80], protocol: http}
  - {allow: pool.example, ports: [9000], protocol: tcp}
exec: {allow: [cat]}
"""


def open_bench(pack: Pack, *command: str) -> LiveBench:
    bench = LiveBench(pack, command or None)
    bench.start()
    assert bench.wait_until_ready(50) is BenchState.READY, bench.why
    return bench


@pytest.fixture(scope="module")
def bench() -> Iterator[LiveBench]:
    opened = open_bench(BANK)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return load_policy(write_live_card(BANK.policy, BANK.folder, tmp_path_factory.mktemp("card")))


def check(row: Scenario, card: Policy, bench: Bench) -> RowCheck:
    (checked,) = check_rows(BANK, [row], card, bench)
    return checked


def find(number: str) -> Scenario:
    found = BANK.find(number)
    assert found is not None
    return found


def with_needs(row: Scenario) -> Any:
    """The row, and which programs of the machine it calls: without them it is skipped, and that is said."""
    called = Path(find_program(row) or "").name
    marks = [pytest.mark.needs(called)] if called in ("git", "gcc") else []
    return pytest.param(row, id=row.id, marks=marks)


@pytest.mark.parametrize("row", [with_needs(row) for row in TRIED])
def test_a_row_comes_out_as_its_key_says(row: Scenario, card: Policy, bench: LiveBench) -> None:
    checked = check(row, card, bench)
    assert (checked.problems, checked.standing) == ((), Standing.AGREES)
    live = checked.live
    assert live is not None
    assert live.closing["complete"]
    assert live.saw
    assert live.records[0]["kind"] == "run.opened"
    assert live.records[-1]["kind"] == "run.closed"
    if row.key.verdict is Verdict.DENY:
        assert live.arrived == ()


def test_there_are_122_rows_to_try() -> None:
    assert len(TRIED) == 122


def test_a_wrong_key_is_found_by_the_try_itself(bench: LiveBench) -> None:
    row = find("E001")
    wrong = replace(row, key=Key(Verdict.DENY, row.key.risk, row.key.control, row.key.place))
    live = bench.try_scenario(wrong)
    assert live.agrees == {"verdict": False, "risk": True, "control": True, "class": True}
    assert not live.is_as_keyed
    assert live.leaked == ()  # the card permits it: the key is wrong, and not the containment


def test_the_rule_in_the_ledger_is_the_line_of_the_card_that_the_learner_reads(bench: LiveBench) -> None:
    live = bench.try_scenario("E001")
    assert live.record is not None
    name, _, line = live.record["rule"].partition(":")
    assert name == "bank-policy.yaml"
    assert BANK.policy_text.splitlines()[int(line) - 1].strip().startswith("- allow: docs.python.org ")


@pytest.mark.parametrize("number", ["E092", "E093", "E094", "E158", "E053"])
def test_a_refused_socket_says_how_its_record_goes_with_the_engines_call(
    number: str, bench: LiveBench
) -> None:
    row = find(number)
    live = bench.try_scenario(number)
    said = Caller(BANK.policy).decide(row)
    assert live.record is not None
    assert live.record["rule"].startswith("filter:")
    assert said.rule == "builtin:sockets"
    assert live.record["call"].startswith("socket(")
    assert "before the program can say which one it wants" in live.note
    assert "Both are the same denial" in live.note
    assert live.record["verdict"] == said.verdict.word == "deny"
    assert (live.record["reason"], live.record["control"]) == (str(said.reason), str(said.control))
    assert set(live.agrees.values()) == {True}
    assert ("to permit it, add" in live.record["why"]) == ("of permitting it" in live.note)


def test_other_tries_have_no_such_note(bench: LiveBench) -> None:
    assert [bench.try_scenario(number).note for number in ("E001", "E003", "E109", "E140")] == [""] * 4


def test_equal_refusals_have_a_run_and_a_record_each(bench: LiveBench) -> None:
    tries = [bench.try_scenario("E121") for _ in range(3)]
    assert len({one.run for one in tries}) == 3
    assert all(one.is_as_keyed and one.closing["attempts"]["deny"] == 1 for one in tries)


def test_the_world_of_one_try_is_not_that_of_the_next(bench: LiveBench) -> None:
    assert bench.try_scenario("E167").arrived
    assert bench.try_scenario("E166").arrived == ()  # the same name, with one answer more
    assert bench.try_scenario("E167").arrived


def test_what_the_card_refuses_arrives_under_a_card_that_permits_it(
    tmp_path: Path, card: Policy, bench: LiveBench
) -> None:
    for number in ("E003", "E008", "E109", "E057", "E140"):
        refused = check(find(number), card, bench).live
        assert refused is not None
        assert (refused.has_effect and number != "E140", refused.arrived) == (False, ())
    (tmp_path / "pack.yaml").write_text(PERMITTING)
    (tmp_path / "policy.yaml").write_text(PERMITTING_CARD)
    permitting = open_bench(load_pack(tmp_path / "pack.yaml"))
    try:
        tries = {number: permitting.try_scenario(number) for number in ("P1", "P2", "P3", "P4", "P5")}
    finally:
        permitting.close()
    assert {
        number: (one.is_as_keyed, one.has_effect, one.why) for number, one in tries.items()
    } == dict.fromkeys(tries, (True, True, ""))
    assert [one["name"] for one in tries["P1"].arrived] == ["docs.python.org.cdn.example"]
    assert [one["request"] for one in tries["P2"].arrived] == ["GET /asyncio"]
    assert tries["P4"].arrived[0]["bytes"] > 0


def test_the_example_of_the_guide_comes_out_as_it_says(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "packs.md").read_text()
    for name, text in zip(
        ("card.yaml", "pack.yaml"), re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL), strict=False
    ):
        (tmp_path / name).write_text(text)
    pack = load_pack(tmp_path / "pack.yaml")
    opened = open_bench(pack)
    try:
        tries = [opened.try_scenario(one) for one in pack.scenarios]
    finally:
        opened.close()
    assert [(one.scenario, one.is_as_keyed) for one in tries] == [
        (f"D{number}", True) for number in range(1, 6)
    ]


def test_what_is_refused_and_arrives_all_the_same_is_noticed(card: Policy, bench: LiveBench) -> None:
    """With the room given up, in a range of its own, the worker reaches the metadata service of the world."""
    program = (
        "import sys; from stockade.lab.live import bench, worker;"
        "worker.MORE_OPTIONS = ('--without-layer=room',); sys.exit(bench.main())"
    )
    broken = open_bench(
        BANK, *PYTHON, "-m", "stockade.prove.range", "--", *PYTHON, "-c", program, str(BANK.file), BANK.digest
    )
    try:
        leaked = check(find("E067"), card, broken)
    finally:
        broken.close()
    assert leaked.standing is Standing.LEAKED
    assert leaked.live is not None
    assert [one["address"] for one in leaked.live.arrived] == ["169.254.169.254"]
    assert check(find("E067"), card, bench).standing is Standing.AGREES


def test_a_bench_that_was_killed_is_there_again_for_the_next_try(bench: LiveBench) -> None:
    assert bench._process is not None
    bench._process._process.kill()
    result: LiveResult = bench.try_scenario("E067")
    assert (result.state, result.is_as_keyed) == (State.DONE, True)


def test_as_a_command_a_pack_passes_and_one_that_says_that_docs_are_denied_fails(tmp_path: Path) -> None:
    for file in BANK.folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    rows = (tmp_path / "scenarios.csv").read_text()
    command = [
        *PYTHON,
        "-m",
        "stockade",
        "lab",
        "check",
        "--only",
        "E001",
        "--only",
        "E067",
        "--only",
        "E007",
    ]
    good = subprocess.run([*command, str(tmp_path / "pack.yaml")], capture_output=True, text=True)
    assert (good.returncode, "tried for real: 2" in good.stdout) == (0, True), good
    assert "E007     operation-scope        bank-policy.yaml:42 limits methods" in good.stdout
    wrong = rows.replace("asyncio.html,,yes,allow,", "asyncio.html,,yes,deny,", 1)
    assert wrong != rows
    (tmp_path / "scenarios.csv").write_text(wrong)
    bad = subprocess.run([*command, str(tmp_path / "pack.yaml")], capture_output=True, text=True)
    assert bad.returncode == 2
    assert "the engine calls the verdict allow, the key deny" in bad.stdout
    assert "live: the ledger calls the verdict allow, the key deny" in bad.stdout
