"""What is started for a worker, and what a contained process that answers badly can do to us."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from stockade.browser.chromium import whole_text
from stockade.browser.places import Contained, Helper, end_noted, note_pid, write_program


def test_a_package_in_the_worker_s_folder_is_not_taken_for_ours(tmp_path: Path) -> None:
    """The launcher starts in a folder that a contained process may write."""
    work = tmp_path / "work"
    (work / "stockade").mkdir(parents=True)
    marker = tmp_path / "planted-code-ran"
    for name in ("__init__.py", "__main__.py"):
        (work / "stockade" / name).write_text(f"open({str(marker)!r}, 'w')\n")
    place = Contained(tmp_path / "no-policy.yaml", tmp_path / "ledger", work)
    try:
        done = subprocess.run(
            ["sh", "-c", f"{place.browser_launcher()} 3</dev/null 4>&1"], capture_output=True
        )
    finally:
        place.close()
    assert b"no-policy.yaml: file-not-found" in done.stderr
    assert not marker.exists()


@pytest.mark.parametrize("answer", ["echo nothing", "echo []", "echo '{'", "exit 3", "exec >&-"])
def test_an_answer_that_is_none_is_an_error_and_not_the_end(answer: str, tmp_path: Path) -> None:
    helper = Helper(["sh", "-c", f"read line; {answer}"], "", tmp_path)
    assert "error" in helper.ask({"line": "x"})
    assert "error" in helper.ask({"line": "again"})
    helper.close()


def test_a_right_answer_is_handed_on(tmp_path: Path) -> None:
    helper = Helper(["sh", "-c", """while read line; do echo '{"code": 0}'; done"""], "", tmp_path)
    assert [helper.ask({"line": "x"}) for _ in range(3)] == [{"code": 0}] * 3
    helper.close()


def test_a_process_that_never_answers_is_ended(tmp_path: Path) -> None:
    helper = Helper(["sleep", "1000"], "", tmp_path, limit_s=0.2)
    began = time.monotonic()
    assert "error" in helper.ask({"line": "x"})
    assert time.monotonic() - began < 10
    helper.close()


def test_an_answer_that_is_nested_beyond_measure_is_an_error(tmp_path: Path) -> None:
    helper = Helper(["sh", "-c", "read line; head -c 100000 /dev/zero | tr '\\0' '['; echo"], "", tmp_path)
    assert "error" in helper.ask({"line": "x"})
    helper.close()


@pytest.mark.parametrize(
    ("said", "written"),
    [("plain ü", b"plain \xc3\xbc"), ("half \ud800 of one", b"half ? of one"), ("\udfff", b"?")],
)
def test_text_of_a_page_can_be_written_down(said: str, written: bytes) -> None:
    """JavaScript's strings hold lone surrogates (ECMA-262), UTF-8 cannot (RFC 3629 section 3)."""
    assert whole_text(json.loads(json.dumps(said))).encode() == written


def test_a_noted_process_is_the_one_that_is_ended(tmp_path: Path) -> None:
    end_noted(tmp_path, "15")  # nothing has started: nothing happens
    lines = ("#!/bin/sh", note_pid(tmp_path), "echo started", "exec sleep 15")
    program = write_program(tmp_path / "launcher", lines)
    with subprocess.Popen([str(program)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        while b"15" not in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0"):
            assert process.poll() is None
        end_noted(tmp_path, "another")  # the number may be somebody else's by now
        assert process.poll() is None
        end_noted(tmp_path, "15")
        assert process.wait() == -15
