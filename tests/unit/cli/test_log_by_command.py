"""`stockade log --by-command`: which command tried what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_log import ATTEMPT, log, open_ledger

CURL = {"pid": 7, "program": "/usr/bin/curl", "argv": ["curl", "http://a.test/"]}
PYTHON = {"pid": 9, "program": "/usr/bin/python3", "argv": ["python3", "-c", "x" * 300]}
RUN = {"verdict": "allow", "entry": "exec", "protocol": "exec", "name": None, "port": None, "method": None}
EXEC = RUN | {"path": None, "risk": "benign", "reason": "program-listed"}


def write(shelf: Path, *attempts: dict[str, Any]) -> None:
    """One run whose records 1, 2, … are these; `outcome` goes to a record of its own, at the end."""
    ledger = open_ledger(shelf, "run-1")
    ledger.append("run.opened", {"argv": ["sh"]})
    outcomes = {}
    for number, attempt in enumerate(attempts, 1):
        fields = dict(attempt)
        outcomes[number] = fields.pop("outcome", None)
        ledger.append("attempt", ATTEMPT | fields)
    for number, outcome in outcomes.items():
        if outcome is not None:
            ledger.append("outcome", {"of": number, **outcome})
    ledger.append("run.closed", {})
    ledger.close()


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Two commands by exec, one refused, one forked from what is gone, and attempts of nobody."""
    write(
        tmp_path,
        EXEC | {"pid": 7, "program": "/usr/bin/curl", "argv": ["curl", "http://a.test/"]},  # 1
        EXEC | {"pid": 8, "program": "/usr/bin/id", "argv": ["id"], "verdict": "deny"},  # 2
        EXEC | {"pid": 9, "program": "/usr/bin/python3", "argv": ["python3"]},  # 3
        {"name": "late.test", "command": PYTHON | {"exec": 3}, "verdict": "allow",
         "outcome": {"outcome": "closed", "sent_bytes": 5, "received_bytes": 6}},  # 4
        {"name": "nobody.test", "command": None},  # 5
        {"name": "first.test", "command": CURL | {"exec": 1}},  # 6
        {"name": "second.test", "command": CURL | {"exec": 1}, "verdict": "allow"},  # 7
        {"name": "quiet.test", "verdict": "allow"},  # 8: permitted, and nobody asked
        {"name": "orphan.test", "command": {"pid": 11, "program": "/bin/sh", "argv": ["sh"], "exec": None}},
        {"name": "own.test", "entry": "dns", "by": "gateway", "verdict": "allow"},  # 10
        EXEC | {"pid": 12, "program": "/usr/bin/true", "argv": ["true"]},  # 11
    )  # fmt: skip
    return tmp_path


def objects(shelf: Path, *words: str) -> list[dict[str, Any]]:
    done = log("--ledger", str(shelf), "--by-command", "--json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_commands_come_in_the_order_of_their_execs_and_the_unknown_at_the_end(shelf: Path) -> None:
    told = [(o["exec"], o["pid"], o["unknown"], [a["name"] for a in o["attempts"]]) for o in objects(shelf)]
    assert told == [
        (1, 7, None, ["first.test", "second.test"]),
        (2, 8, None, []),
        (3, 9, None, ["late.test"]),
        (None, 11, None, ["orphan.test"]),
        (11, 12, None, []),
        (None, None, "not-found", ["nobody.test"]),
        (None, None, "not-asked", ["quiet.test"]),
    ]


def test_each_object_has_the_command_and_its_attempts_with_what_came_of_them(shelf: Path) -> None:
    curl, refused, python, *_ = objects(shelf)
    assert (curl["run"], curl["program"], curl["argv"]) == ("run-1", "/usr/bin/curl", CURL["argv"])
    assert (curl["verdict"], curl["denied"]) == ("allow", 1)
    assert refused["verdict"] == "deny"
    [attempt] = python["attempts"]
    assert (attempt["outcome"], attempt["sent_bytes"], attempt["received_bytes"]) == ("closed", 5, 6)
    assert attempt["reason"] == ATTEMPT["reason"]
    assert attempt["id"] == "rrun1-4"
    assert "command" not in attempt


def test_the_table_says_refusals_first_and_shortens_arguments(shelf: Path) -> None:
    lines = log("--ledger", str(shelf), "--by-command").stdout.splitlines()
    assert lines[0].startswith("run run-1  ")
    assert lines[1] == "1 of 2 denied     pid 7  /usr/bin/curl  curl http://a.test/  (rrun1-1)"
    assert lines[2].split()[:1] == ["deny"]
    assert "rrun1-6" in lines[2]
    assert "GET http first.test:8080/admin → 10.0.0.5" in lines[2]
    assert lines[3].split()[:1] == ["allow"]
    assert lines[4].startswith("not permitted     pid 8  /usr/bin/id  id")
    heads = [line for line in lines[1:] if not line.startswith(" ")]
    assert [head[:18].strip() for head in heads] == [
        "1 of 2 denied", "not permitted", "1 let through", "1 denied", "tried nothing", "1 denied",
        "1 let through",
    ]  # fmt: skip
    assert "command not known" in heads[5]
    assert "--name-commands" in heads[6]


def test_without_an_eye_commands_are_processes_with_their_programs(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"name": "a.test", "command": PYTHON | {"exec": None}},
        {"name": "b.test", "command": CURL | {"exec": None}},
        {"name": "c.test", "command": PYTHON | {"exec": None}},
        {"name": "d.test", "command": CURL | {"exec": None, "pid": 8}},
    )
    found = objects(tmp_path)
    assert [(o["pid"], [a["name"] for a in o["attempts"]]) for o in found] == [
        (9, ["a.test", "c.test"]),
        (7, ["b.test"]),
        (8, ["d.test"]),
    ]
    out = log("--ledger", str(tmp_path), "--by-command").stdout
    assert "x" * 301 not in out
    assert "x…\n" in out
    assert "x" * 200 in log("--ledger", str(tmp_path), "--by-command", "--why").stdout


@pytest.mark.parametrize("entry", ["socket", "exec"])  # by its reason a call is one or the other
def test_a_refused_system_call_stands_below_the_command_that_made_it(tmp_path: Path, entry: str) -> None:
    call = {"entry": entry, "call": "mprotect(PROT_EXEC)", "name": None, "address": None, "port": None}
    write(
        tmp_path,
        EXEC | {"pid": 7, "program": "/usr/bin/curl", "argv": ["curl"]},
        ATTEMPT | call | {"pid": 7, "program": "/usr/bin/curl", "exec": 1},
        ATTEMPT | call | {"pid": 8, "program": "/bin/sh", "exec": None},
    )
    found = objects(tmp_path)
    assert [(o["exec"], o["pid"], o["program"], o["denied"]) for o in found] == [
        (1, 7, "/usr/bin/curl", 1),
        (None, 8, "/bin/sh", 1),
    ]


def test_filters_choose_attempts_and_leave_out_commands_without_any(shelf: Path) -> None:
    assert [o["exec"] for o in objects(shelf, "--verdict", "deny")] == [1, 2, None, None]
    assert [o["pid"] for o in objects(shelf, "--host", "late.test")] == [9]
    assert [o["pid"] for o in objects(shelf, "--entry", "exec")] == [7, 8, 9, 12]
    none = log("--ledger", str(shelf), "--by-command", "--host", "none.test")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no record is like that" in none.stderr


@pytest.mark.parametrize("words", [["-f"], ["--kind", "outcome"]])
def test_what_makes_no_sense_together_is_refused(shelf: Path, words: list[str]) -> None:
    done = log("--ledger", str(shelf), "--by-command", *words)
    assert done.returncode == 2
    assert "--by-command" in done.stderr


def test_hostile_arguments_cannot_steer_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, {"command": CURL | {"argv": ["curl", "NAME"], "program": "/x/NAME", "exec": None}})
    path = tmp_path / "run-1" / "records.jsonl"
    path.write_text(path.read_text().replace("NAME", "x\\u001b[2J\\u202ey"))
    for words in (["--by-command"], ["--by-command", "--why"], [], ["--why"]):
        out = log("--ledger", str(tmp_path), *words).stdout
        assert "x\\u{1b}[2J\\u{202e}y" in out
        assert "\x1b" not in out


def test_the_plain_table_says_who_was_refused(shelf: Path) -> None:
    plain = log("--ledger", str(shelf)).stdout.splitlines()
    line = next(line for line in plain if "first.test" in line)
    assert line.endswith("(builtin:private)  by /usr/bin/curl (pid 7)")
    assert all("by " not in line for line in plain if "nobody.test" in line)
    detailed = log("--ledger", str(shelf), "--why").stdout
    assert f"\n{'':14}by /usr/bin/curl (pid 7): curl http://a.test/\n" in detailed
