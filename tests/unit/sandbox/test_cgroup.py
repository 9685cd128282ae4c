"""What a group's files say, and that nothing is taken for held that was not taken."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from stockade.sandbox.cgroup import Group, Part, apply_limit
from stockade.sandbox.limits import LimitUsage

MIB = 1 << 20


def usage_of(folder: Path, *, is_unified: bool, **amounts: int) -> LimitUsage:
    group = Group()
    group.parts.append(Part(str(folder), is_unified, amounts, -1))
    return group.read_usage()


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


def test_version_2_says_whether_its_own_limit_was_the_reason(tmp_path: Path) -> None:
    """memory.events: `oom` counts what its own limit caused, `oom_kill` every kill (cgroup-v2.rst)."""
    write(
        tmp_path,
        memory_peak="65536\n",
        memory_events="low 0\nhigh 0\nmax 90\noom 1\noom_kill 2\noom_group_kill 0\n",
    )
    write(tmp_path, pids_peak="9\n", pids_events="max 4\n")
    assert usage_of(tmp_path, is_unified=True, memory=1, pids=1) == LimitUsage(
        memory_peak_bytes=65536,
        memory_kills=2,
        is_memory_exhausted=True,
        processes_peak=7,
        processes_refused=4,
    )
    write(tmp_path, memory_events="max 0\noom 0\noom_kill 2\n")
    assert usage_of(tmp_path, is_unified=True, memory=1).is_memory_exhausted is False


@pytest.mark.parametrize(
    ("peak", "is_exhausted"), [(64 * MIB, True), (64 * MIB - 65536, True), (63 * MIB, False)]
)
def test_version_1_is_judged_by_the_peak(tmp_path: Path, peak: int, is_exhausted: bool) -> None:
    (tmp_path / "memory.max_usage_in_bytes").write_text(f"{peak}\n")
    (tmp_path / "memory.limit_in_bytes").write_text(f"{64 * MIB}\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    usage = usage_of(tmp_path, is_unified=False, memory=1)
    assert (usage.memory_kills, usage.is_memory_exhausted) == (1, is_exhausted)


def test_what_an_older_kernel_does_not_count_is_unknown_and_not_none(tmp_path: Path) -> None:
    assert usage_of(tmp_path, is_unified=True, memory=1, pids=1) == LimitUsage()
    assert usage_of(tmp_path, is_unified=False, memory=1, pids=1) == LimitUsage()


def test_a_limit_that_is_written_and_not_kept_is_not_held(tmp_path: Path) -> None:
    part = Part(str(tmp_path), True, {"memory": 5000}, -1)
    (tmp_path / "memory.max").symlink_to("/dev/null")
    with pytest.raises(OSError, match="after 5000 was written") as refused:
        apply_limit(part, "memory.max", 5000)
    assert refused.value.errno == errno.EIO
    (tmp_path / "pids.max").write_text("")
    apply_limit(part, "pids.max", 7)
    assert (tmp_path / "pids.max").read_text() == "7"


@pytest.mark.parametrize(
    ("says", "is_lost"), [("4096", False), ("5000", False), ("5001", True), ("max", True), ("", True)]
)
def test_a_limit_is_lost_when_it_says_more_than_was_set(tmp_path: Path, says: str, is_lost: bool) -> None:
    group = Group()
    group.parts.append(Part(str(tmp_path), True, {"memory": 5000}, -1))
    (tmp_path / "memory.max").write_text(says)
    assert group.find_lost() == (["memory"] if is_lost else [])
