"""`stockade log`, as the program that people and scripts call."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stockade.cli.log import parse_since
from stockade.errors import UserError
from stockade.ledger.store import Ledger

STOCKADE = [sys.executable, "-m", "stockade.cli.main"]
ATTEMPT: dict[str, Any] = {
    "verdict": "deny", "risk": "ssrf", "control": "deny-internal-ranges", "reason": "private-address",
    "rule": "builtin:private", "class": "internal", "phase": "work", "identity": "agent",
    "entry": "transparent", "protocol": "http", "name": "app.test", "address": "10.0.0.5", "port": 8080,
    "method": "GET", "path": "/admin", "why": "10.0.0.5 is private; add an internal: entry to open it",
}  # fmt: skip
REQUIRED = """
    seq time kind verdict risk control reason rule class
    phase identity entry name address port method path why
"""


def open_ledger(shelf: Path, run: str) -> Ledger:
    return Ledger.open(shelf, run, wake=lambda word: word(), on_failure=lambda error: None)


def write_run(shelf: Path, run: str, *attempts: dict[str, Any], close: bool = True) -> None:
    ledger = open_ledger(shelf, run)
    ledger.append("run.opened", {"argv": ["curl"]})
    for attempt in attempts:
        seq = ledger.append("attempt", ATTEMPT | attempt)
        ledger.append("outcome", {"of": seq, "outcome": "refused"})
    if close:
        ledger.append("run.closed", {"attempts": len(attempts)})
    ledger.close()


def log(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*STOCKADE, "log", *words], capture_output=True, text=True, timeout=15, **options)


def names(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [
        record["name"] for record in map(json.loads, done.stdout.splitlines()) if record["kind"] == "attempt"
    ]


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    write_run(tmp_path, "run-b", {"name": "one.test"}, {"name": "two.test", "verdict": "allow"})
    write_run(tmp_path, "run-a", {"name": "three.deep.two.test", "verdict": "proxy", "entry": "dns"})
    return tmp_path


def test_json_gives_every_record_of_every_run_in_order(shelf: Path) -> None:
    done = log("--ledger", str(shelf), "--json")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(r["run"], r["seq"]) for r in records] == [("run-b", n) for n in range(6)] + [
        ("run-a", n) for n in range(4)
    ]
    attempts = [r for r in records if r["kind"] == "attempt"]
    assert len(attempts) == 3
    for attempt in attempts:
        assert set(REQUIRED.split()) <= set(attempt)
    assert done.stderr == ""


def test_json_lines_are_the_ledgers_own_lines(shelf: Path) -> None:
    done = log("--ledger", str(shelf), "--json", "--run", "run-b")
    assert done.stdout == (shelf / "run-b" / "records.jsonl").read_text()


def test_filters(shelf: Path) -> None:
    where = ["--ledger", str(shelf), "--json"]
    assert names(log(*where, "--verdict", "deny")) == ["one.test"]
    assert names(log(*where, "--verdict", "allow", "--verdict", "proxy")) == [
        "two.test",
        "three.deep.two.test",
    ]
    assert names(log(*where, "--host", "TWO.test.")) == ["two.test"]
    assert names(log(*where, "--host", "*.two.test")) == ["three.deep.two.test"]
    assert names(log(*where, "--host", "10.0.0.5", "--run", "last")) == ["three.deep.two.test"]
    assert names(log(*where, "--id", "rrunb-3")) == ["two.test"]
    assert names(log(*where, "--entry", "dns")) == ["three.deep.two.test"]
    assert names(log(*where, "--entry", "transparent")) == ["one.test", "two.test"]
    assert names(log(*where, "--since", "1h")) == ["one.test", "two.test", "three.deep.two.test"]
    assert names(log(*where, "--since", "2999-01-01")) == []
    kinds = [json.loads(line)["kind"] for line in log(*where, "--kind", "run.closed").stdout.splitlines()]
    assert kinds == ["run.closed"] * 2


def test_table_tells_what_who_and_why_without_color(shelf: Path) -> None:
    done = log("--ledger", str(shelf), "--why")
    line = next(line for line in done.stdout.splitlines() if "one.test" in line)
    for part in ("rrunb-1", "deny", "ssrf", "deny-internal-ranges", "private-address", "builtin:private"):
        assert part in line
    assert "GET http one.test:8080/admin → 10.0.0.5" in line
    assert "proxy+log" in done.stdout
    assert ATTEMPT["why"] in done.stdout
    assert "of 1:  outcome=refused" in done.stdout
    assert "\x1b" not in done.stdout


def test_table_leaves_sentences_and_outcomes_out_unless_asked(shelf: Path) -> None:
    plain = log("--ledger", str(shelf)).stdout
    assert ATTEMPT["why"] not in plain
    assert "refused" not in plain
    assert "refused" in log("--ledger", str(shelf), "--kind", "outcome").stdout


def test_a_hostile_ledger_cannot_steer_the_terminal(tmp_path: Path) -> None:
    write_run(tmp_path, "run-1", {"name": "NAME"})
    path = tmp_path / "run-1" / "records.jsonl"
    path.write_text(path.read_text().replace("NAME", "x\\u001b[2J\\u202ey\\u0085"))
    done = log("--ledger", str(tmp_path))
    assert "x\\u{1b}[2J\\u{202e}y\\u{85}" in done.stdout
    assert "\x1b" not in done.stdout


def test_r160_an_open_run_is_said_to_be_open_and_a_closed_one_is_not(tmp_path: Path) -> None:
    write_run(tmp_path, "run-1", {})
    assert log("--ledger", str(tmp_path)).stderr == ""
    path = tmp_path / "run-1" / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    done = log("--ledger", str(tmp_path))
    assert done.returncode == 0
    assert "run-1 is open" in done.stderr
    assert "ignored" in done.stderr
    assert "run.closed" not in done.stdout


def test_a_run_that_goes_on_is_said_to_be_running(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, "run-1")
    ledger.append("run.opened", {})
    while not (tmp_path / "run-1" / "records.jsonl").stat().st_size:
        pass
    assert "still running" in log("--ledger", str(tmp_path)).stderr
    ledger.close()


def test_damage_is_one_clear_line_and_its_own_exit_code(shelf: Path) -> None:
    path = shelf / "run-b" / "records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    done = log("--ledger", str(shelf), "--json")
    assert done.returncode == 5
    assert "ledger-damaged" in done.stderr
    assert "line 3" in done.stderr
    assert "Traceback" not in done.stderr
    assert [json.loads(x)["run"] for x in done.stdout.splitlines()] == ["run-b"] * 2 + ["run-a"] * 4


@pytest.mark.parametrize(
    "words",
    [
        ["--ledger", "/missing/shelf"],
        ["--ledger", "/dev/null"],
        ["--ledger", "SHELF", "--run", "nope"],
        ["--ledger", "SHELF", "--since", "soon"],
        ["--ledger", "SHELF", "--since", ""],
    ],
)
def test_wrong_input_is_two_and_one_line(shelf: Path, words: list[str]) -> None:
    done = log(*[str(shelf) if word == "SHELF" else word for word in words])
    assert done.returncode == 2
    assert done.stderr.startswith("stockade: ")
    assert "Traceback" not in done.stderr


def test_without_any_run_the_default_shelf_is_no_error(tmp_path: Path) -> None:
    done = log(env={"XDG_STATE_HOME": str(tmp_path / "none"), "PATH": ""})
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing was recorded" in done.stderr


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    write_run(tmp_path, "run-1", *[{}] * 3000)
    command = f"{' '.join(STOCKADE)} log --ledger {tmp_path} --json | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=15)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_the_locale_breaks_neither_table_nor_json(tmp_path: Path, locale: str) -> None:
    write_run(tmp_path, "run-1", {"name": "münchen.test", "why": "“so”"})
    environment = {"LC_ALL": locale, "PATH": "", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert "nchen.test" in log("--ledger", str(tmp_path), "--why", env=environment).stdout
    done = subprocess.run(
        [*STOCKADE, "log", "--ledger", str(tmp_path), "--json"],
        capture_output=True,
        env=environment,
        timeout=15,
    )
    assert json.loads(done.stdout.splitlines()[1])["name"] == "münchen.test"


def test_follow_shows_what_happens_later_in_this_run_and_the_next_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    write_run(tmp_path, "old", {"name": "old.test"})
    ledger = open_ledger(tmp_path, "run-1")
    ledger.append("run.opened", {})
    while not (tmp_path / "run-1" / "records.jsonl").stat().st_size:
        pass
    words = [*STOCKADE, "log", "--ledger", str(tmp_path), "-f", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert json.loads(follower.stdout.readline())["kind"] == "run.opened"
        ledger.append("attempt", ATTEMPT | {"name": "later.test"})
        assert json.loads(follower.stdout.readline())["name"] == "later.test"
        ledger.append("run.closed", {})
        assert json.loads(follower.stdout.readline())["kind"] == "run.closed"
        write_run(tmp_path, "run-2")
        assert json.loads(follower.stdout.readline())["run"] == "run-2"
        follower.send_signal(signal.SIGINT)
        assert follower.wait(10) == 0
        assert follower.stderr.read() == ""
    ledger.close()


def test_since_in_spans_and_dates() -> None:
    noon = 1_796_040_000  # date -u -d @1796040000 → 2026-11-30T12:00:00
    assert parse_since("10m", noon) == "2026-11-30T11:50:00.000000Z"
    assert parse_since("2h", noon) == "2026-11-30T10:00:00.000000Z"
    assert parse_since("3d", noon) == "2026-11-27T12:00:00.000000Z"
    assert parse_since("999999999d", noon) == "1970-01-01T00:00:00.000000Z"
    assert parse_since("2026-11-30", noon) == "2026-11-30T00:00:00.000000Z"
    assert parse_since("2026-11-30T09:30:00+01:00", noon) == "2026-11-30T08:30:00.000000Z"


@pytest.mark.parametrize("text", ["", "m", "-1h", "1w", "yesterday", "²m", "2026-13-01"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_since(text, 0)
    assert "10m" in str(refused.value.hint)


def write_whole_run(shelf: Path, *, complete: bool) -> None:
    ledger = open_ledger(shelf, "run-1")
    enforced = {"network": "room", "notes": ["your home is the workspace"], "limits": {"nproc": 4096}}
    ledger.append("run.opened", {"argv": ["curl", "x"], "enforced": enforced, "layers_off": ["seccomp"]})
    ledger.append("attempt", ATTEMPT)
    ledger.append("run.closed", {"complete": complete, "completeness": "syn 1 = accepted 1", "exit_code": 3})
    ledger.close()


def test_the_table_shows_of_the_frame_what_a_person_wants(tmp_path: Path) -> None:
    write_whole_run(tmp_path, complete=True)
    out = log("--ledger", str(tmp_path)).stdout
    assert "argv=curl x layers_off=seccomp enforced.notes=your home is the workspace\n" in out
    assert "exit_code=3 complete=True\n" in out
    whole = log("--ledger", str(tmp_path), "--kind", "run.opened", "--kind", "run.closed").stdout
    assert "enforced.network=room" in whole
    assert "completeness=syn 1" in whole


def test_the_table_says_which_limit_had_an_effect(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, "run-1")
    reached = {
        "name": "memory",
        "amount": 67108864,
        "message": "memory limit of 64MiB reached: 1 process killed",
    }
    ledger.append("run.opened", {"argv": ["hog"]})
    ledger.append("run.closed", {"exit_code": 137, "limits_reached": [reached]})
    ledger.close()
    out = log("--ledger", str(tmp_path)).stdout
    assert "exit_code=137 limits_reached=memory limit of 64MiB reached: 1 process killed\n" in out


def test_the_table_says_what_is_missing_from_an_inexact_record(tmp_path: Path) -> None:
    write_whole_run(tmp_path, complete=False)
    assert (
        "exit_code=3 complete=False completeness=syn 1 = accepted 1" in log("--ledger", str(tmp_path)).stdout
    )


def test_one_decision_is_shown_with_its_sentence_and_none_is_said_to_be_none(shelf: Path) -> None:
    assert ATTEMPT["why"] in log("--ledger", str(shelf), "--id", "rrunb-1").stdout
    none = log("--ledger", str(shelf), "--id", "rrunb-99")
    assert (none.returncode, none.stdout, none.stderr) == (0, "", "stockade log: no record is like that\n")
