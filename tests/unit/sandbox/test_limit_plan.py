"""Limits as values: what is named, what is default, what is said when one had an effect."""

from __future__ import annotations

import pytest

from stockade.sandbox.limits import (
    Limit,
    LimitRequest,
    LimitUsage,
    ReachedLimit,
    find_file_size_reached,
    find_reached,
    plan_limits,
    reached_time,
)

MIB = 1 << 20


def test_without_a_word_processes_open_files_and_core_files_are_limited_and_nothing_else() -> None:
    plan = plan_limits(LimitRequest(), "r1")
    assert {limit.name: limit.amount for limit in plan.limits} == {
        "processes": 4096,
        "open-files": 65536,
        "core-files": 0,
    }
    assert not any(limit.is_named for limit in plan.limits)
    assert plan.group == "stockade-r1"


def test_what_is_named_replaces_the_default_and_must_hold() -> None:
    request = LimitRequest(
        memory_bytes=64 * MIB, processes=3, file_size_bytes=0, time_s=90.0, origin="p.yaml:2"
    )
    plan = plan_limits(request, "r1")
    named = {limit.name: limit.amount for limit in plan.limits if limit.is_named}
    assert named == {"memory": 64 * MIB, "processes": 3, "file-size": 0, "time": 90}
    assert plan.origin == "p.yaml:2"


def test_a_dry_run_says_which_limits_must_hold() -> None:
    assert plan_limits(LimitRequest(memory_bytes=64 * MIB), "r1").describe() == [
        "limit: memory 64MiB (held, or the run does not start)",
        "limit: processes 4096",
        "limit: open-files 65536",
        "limit: core-files 0",
    ]


def test_more_than_the_kernel_has_numbers_for_is_as_much_as_it_has() -> None:
    plan = plan_limits(LimitRequest(memory_bytes=1 << 80, processes=10**9), "r1")
    memory, processes = plan.find("memory"), plan.find("processes")
    assert memory is not None
    assert processes is not None
    assert memory.amount < 2**63
    assert processes.amount + 2 <= 4_194_304  # PID_MAX_LIMIT of 64-bit kernels; pids.max takes no more


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit("memory", 64 * MIB), "64MiB"),
        (Limit("file-size", 1000), "1000B"),
        (Limit("processes", 256), "256"),
        (Limit("time", 90), "90s"),
    ],
)
def test_amounts_read_as_a_policy_writes_them(limit: Limit, text: str) -> None:
    assert limit.amount_text == text


def reached(usage: LimitUsage) -> list[ReachedLimit]:
    return find_reached(plan_limits(LimitRequest(memory_bytes=64 * MIB, processes=256), "r1"), usage)


def test_a_limit_that_had_an_effect_is_named_with_the_effect() -> None:
    found = reached(LimitUsage(memory_kills=1, is_memory_exhausted=True, processes_refused=4744))
    assert [limit.message for limit in found] == [
        "memory limit of 64MiB reached: 1 process killed",
        "process limit of 256 reached: refused 4744 times",
    ]


def test_a_limit_without_an_effect_is_not_named() -> None:
    assert reached(LimitUsage()) == []  # nobody counts
    assert reached(LimitUsage(memory_kills=0, is_memory_exhausted=True, processes_refused=0)) == []


def test_what_the_kernel_kills_because_the_machine_has_no_memory_is_not_the_limit_s_doing() -> None:
    assert reached(LimitUsage(memory_kills=3, is_memory_exhausted=False)) == []
    no_limit = plan_limits(LimitRequest(), "r1")
    assert find_reached(no_limit, LimitUsage(memory_kills=3, is_memory_exhausted=True)) == []


def test_the_limit_on_time_says_whether_the_command_obeyed() -> None:
    assert reached_time(2.0, was_killed=False).message == "time limit of 2 s reached: the command was ended"
    assert "SIGTERM did not end the command" in reached_time(2.0, was_killed=True).message


def test_a_command_that_was_ended_for_a_file_too_large_names_the_limit() -> None:
    """SIGXFSZ is 25 on x86-64 and arm64 (signal(7)); a shell gives 128 + 25."""
    limited = plan_limits(LimitRequest(file_size_bytes=MIB), "r1")
    (found,) = find_file_size_reached(limited, 153)
    assert (found.name, found.amount) == ("file-size", MIB)
    assert found.message == "file-size limit of 1MiB reached: a process was ended (SIGXFSZ)"
    assert find_file_size_reached(limited, 152) == []
    assert find_file_size_reached(plan_limits(LimitRequest(), "r1"), 153) == []
