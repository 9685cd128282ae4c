"""Who called, and who started it: read anew exactly when it can have changed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from stockade.run import callers
from stockade.run.callers import Caller, Parents, probe_caller

HERE = os.getpid()


def start(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_caller_is_its_process_by_both_ids_and_its_start() -> None:
    found = probe_caller(HERE)
    words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    assert (found.pid, found.inner_pid) == (HERE, int(status["NStgid"].split()[-1]))
    assert (found.parent_pid, found.start_time) == (os.getppid(), int(words[19]))
    assert found.program == os.readlink("/proc/self/exe")


def test_who_is_gone_is_nobody() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert probe_caller(child.pid) == Caller()
    assert Parents().probe(child.pid).program == ""


def test_a_parent_is_looked_up_once_until_it_runs_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    monkeypatch.setattr(
        callers, "read_program", lambda pid: looked_up.append(pid) or os.readlink(f"/proc/{pid}/exe")
    )
    child = start("echo up; read x; exec sleep 30")
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"up\n"
        parents = Parents()
        shell = os.path.realpath("/bin/sh")
        assert [parents.probe(child.pid).program for _ in range(3)] == [shell] * 3
        assert looked_up == [child.pid]
        child.stdin.write(b"\n")
        child.stdin.flush()
        deadline = time.monotonic() + 10
        while os.readlink(f"/proc/{child.pid}/exe") == shell:
            assert time.monotonic() < deadline
        assert parents.probe(child.pid).program == os.path.realpath("/bin/sleep")
    finally:
        child.kill()
        child.wait()
