"""No command runs but the permitted ones, by whatever road: each layer alone, and all with their record.

Every road is walked with `exec: {mode: any}` first, where it arrives: so the road exists,
and what stops it below is the seal. What each layer stops alone is worked out by hand from
what the layer is: a mount flag, a file right, or a judgement before the call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room", "git")]

PYTHON = "/usr/bin/python3"
LISTED = "exec: {allow: [python3]}\n"

Walk = Callable[..., tuple[dict[str, bool], Any]]


@pytest.fixture
def walk(payload: Callable[..., Any]) -> Walk:
    """Walk all roads in one run; says for each whether the program ran, and gives the run."""

    def go(policy: str, *layers_off: str) -> tuple[dict[str, bool], Any]:
        answers, done = payload("roads.py", policy, *layers_off)
        worker = "65533" if os.geteuid() == 0 else str(os.geteuid())
        return {road: said in (worker, "4711") for road, said in answers.items()}, done

    return go


def stopped(ran: dict[str, bool]) -> set[str]:
    return {road for road, did in ran.items() if not did}


def test_every_road_leads_somewhere_when_any_program_may_run(walk: Walk) -> None:
    ran, _run = walk("exec: {mode: any}\n")
    assert stopped(ran) == set()


def test_r141_r142_no_road_leads_to_a_program_that_is_not_listed(walk: Walk) -> None:
    ran, run = walk(LISTED)
    assert {road for road, did in ran.items() if did} == set()
    denials = run.denials(entry="exec")
    assert {record["risk"] for record in denials} == {"boundary-tampering"}
    tried = {record["program"] for record in denials if "call" not in record}
    for path in (
        "/usr/bin/id",
        "/proc/self/root/usr/bin/id",
        "/usr/bin/env",
        "/bin/sh",
        "/usr/lib/git-core/git",
    ):
        assert path in tried
    loader = next(path for path in tried if "/ld-linux" in path)
    by_loader = [record for record in denials if record["program"] == loader]
    assert by_loader[0]["argv"][1] == "/usr/bin/id"
    calls = {record["call"] for record in denials if "call" in record}
    assert len(calls) == 1
    assert calls.pop().startswith("memfd_create")
    commands = [record for record in denials if "call" not in record]
    assert all(record["layer"] == "notify" and record["parent"]["program"] for record in commands)


def test_r145_a_program_that_is_listed_runs_by_every_name_that_it_has(
    stockade: Callable[..., Any], workspace: Path
) -> None:
    """The control of the test above: identity is the file, so other names of it are not refused."""
    program = (
        "import os, subprocess, sys\n"
        "os.symlink('/usr/bin/python3', '/tmp/p')\n"
        "for path in ('python3', '/usr/bin/../bin/python3', '/proc/self/root/usr/bin/python3', '/tmp/p',\n"
        "             '/proc/self/exe'):\n"
        "    print(subprocess.run([path, '-c', 'print(1)'], capture_output=True).stdout.decode().strip())\n"
    )
    done = stockade([PYTHON, "-c", program], LISTED)
    assert done.out.split() == ["1"] * 5, done.err


# What the mounts alone cannot say: a program that lies on an executable mount anyway is permitted or covered.
STOPPED_BY_MOUNTS = {
    "plain", "dots", "proc-root", "thread-root", "link", "hard-link", "copy-tmp", "copy-shm", "copy-home",
    "copy-work", "loader", "loader-copy", "loader-libraries", "libraries", "shebang-denied",
    "shebang-permitted",
    "preload", "env", "shell", "posix-spawn", "execve-fd", "execveat-empty", "nameless",
}  # fmt: skip
# Landlock judges execve by file and says nothing about mapping: a loader, a preload, a file without a path.
STOPPED_BY_LANDLOCK = STOPPED_BY_MOUNTS - {"loader", "loader-copy", "loader-libraries", "preload", "nameless"}


def test_f4_the_mounts_alone_stop_all_that_lies_in_a_file(walk: Walk) -> None:
    ran, _run = walk(LISTED, "landlock", "seccomp", "memfd", "notify")
    assert stopped(ran) == STOPPED_BY_MOUNTS


def test_landlock_alone_stops_every_execve_of_a_file(walk: Walk) -> None:
    ran, _run = walk(LISTED, "mounts", "seccomp", "memfd", "notify")
    assert stopped(ran) == STOPPED_BY_LANDLOCK | (stopped(ran) & {"nameless"})


def test_f3_the_filter_alone_stops_the_files_in_memory(walk: Walk) -> None:
    ran, _run = walk(LISTED, "mounts", "landlock", "notify")
    assert stopped(ran) == {"memfd-fd", "memfd-path"}


def test_the_eye_alone_stops_each_command_that_it_is_asked_about(walk: Walk) -> None:
    ran, run = walk(LISTED, "mounts", "landlock", "seccomp", "memfd")
    assert stopped(ran) == set(ran) - {"preload"}
    assert {"memfd:copy" in record.get("file", "") for record in run.denials(entry="exec")} == {True, False}
