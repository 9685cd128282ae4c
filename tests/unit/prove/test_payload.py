"""One payload as a child: whatever it does, the lane goes on, with the reason, in bounded time and memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stockade.prove.payload import (
    ANSWERS_LIMIT,
    ERRORS_LIMIT_BYTES,
    MARK,
    PayloadEnd,
    end_marked,
    parse_answer,
    run_payload,
)

DONE = "print('{\"done\": true}', flush=True)\n"


def run(script: str, folder: Path, limit_s: float = 10.0, asked: list[str] | None = None) -> PayloadEnd:
    def answer(what: str) -> None:
        if asked is not None:
            asked.append(what)
        if what == "fail":
            raise RuntimeError("no such stage")

    return run_payload(
        [sys.executable, "-u", "-c", script],
        folder=folder,
        environment=dict(os.environ),
        mark=folder.name,
        limit_s=limit_s,
        answer=answer,
    )


def marked(folder: Path) -> list[str]:
    wanted = f"{MARK}={folder.name}".encode()
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if wanted in Path("/proc", pid, "environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def test_answers_come_in_order_with_the_code_and_no_problem(tmp_path: Path) -> None:
    end = run("print('{\"do\": 1}')\n" + DONE, tmp_path)
    assert end == PayloadEnd(said=({"do": 1}, {"done": True}), code=0, problem=None)


def test_what_it_asks_for_is_done_before_it_goes_on(tmp_path: Path) -> None:
    asked: list[str] = []
    script = 'print(\'{"ask": "scoring"}\')\nprint(\'{"heard": "\' + input() + \'"}\')\n' + DONE
    assert run(script, tmp_path, asked=asked).said == ({"heard": "done"}, {"done": True})
    assert asked == ["scoring"]


def test_a_stage_that_fails_says_so_and_the_lane_lives(tmp_path: Path) -> None:
    end = run('print(\'{"ask": "fail"}\')\ninput()\n' + DONE, tmp_path)
    assert end.problem == "the host could not do 'fail': no such stage"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("import time\ntime.sleep(60)", "it did not end within 0.5 s"),
        ("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(60)", "it did not end within 0.5 s"),
        ("import signal\nsignal.pause()", "it did not end within 0.5 s"),
    ],
)
def test_one_that_hangs_is_ended(tmp_path: Path, script: str, problem: str) -> None:
    end = run(script, tmp_path, limit_s=0.5)
    assert (end.problem, end.code) == (problem, None)
    assert marked(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("while True: print('x' * 1000)", "it printed more than 4 MiB or 1000 lines"),
        ("while True: print('x' * 100_000, end='')", "it printed a line of more than 128 KiB"),
        ("while True: print('{\"a\": 1}')", "it printed more than 4 MiB or 1000 lines"),
    ],
)
def test_one_that_never_stops_printing_is_ended(tmp_path: Path, script: str, problem: str) -> None:
    end = run(script, tmp_path)
    assert end.problem == problem
    assert len(end.said) <= ANSWERS_LIMIT


def test_endless_errors_are_read_and_forgotten(tmp_path: Path) -> None:
    script = "import sys\nfor _ in range(2000): sys.stderr.write('e' * 1000)\nsys.exit(3)"
    end = run(script, tmp_path)
    assert end.code == 3
    assert end.problem is not None
    assert len(end.problem) < ERRORS_LIMIT_BYTES + 100


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("raise SystemExit(7)", "it ended with code 7 before its end"),
        ("print('not json')", "it ended with code 0 before its end, and printed 'not json'"),
        ("import os\nos.kill(os.getpid(), 9)", "it ended with code -9 before its end"),
        ("import sys\nsys.exit('gone')", "it ended with code 1 before its end: gone"),
    ],
)
def test_one_that_ends_too_early_is_told_from_one_that_is_done(
    tmp_path: Path, script: str, problem: str
) -> None:
    assert run(script, tmp_path).problem == problem
    assert run(DONE + script, tmp_path).problem is None


def test_an_attack_that_fails_itself_is_a_problem_even_if_it_goes_on(tmp_path: Path) -> None:
    end = run('print(\'{"broken": "KeyError"}\')\n' + DONE, tmp_path)
    assert end.problem == "the attack itself failed: KeyError"


def test_children_that_hold_its_output_open_are_not_waited_for_and_do_not_outlive_it(tmp_path: Path) -> None:
    child = "import subprocess, sys\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    end = run(child + DONE, tmp_path)
    assert (end.problem, end.code) == (None, 0)
    assert marked(tmp_path) == []


def test_what_carries_another_mark_is_let_be(tmp_path: Path) -> None:
    script = f"import subprocess, sys\nchild = subprocess.Popen(['sleep', '60'], env={{{MARK!r}: 'other'}})\n"
    end = run(script + "print('{\"pid\": %d}' % child.pid)\n" + DONE, tmp_path)
    assert Path("/proc", str(end.said[0]["pid"])).exists()
    end_marked("other")
    assert f"{MARK}=other".encode() not in _environment_of(end.said[0]["pid"])


def _environment_of(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "environ").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    "line",
    [
        b"[1]", b"5", b"null", b"\xff\xfe", b"{", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_what_is_no_object_of_plain_json_is_short_text(line: bytes) -> None:
    said = parse_answer(line)
    assert set(said) == {"text"}
    assert len(said["text"]) <= 300


def test_an_object_is_taken_as_it_is() -> None:
    assert parse_answer(b'{"errno": "EPERM", "ms": 1}') == {"errno": "EPERM", "ms": 1}
