"""Limits on memory, processes, files and time: by a control group, by rlimits, by the supervisor.

Each is tried twice, with a limit below what is done and with one above. What is done is bounded.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_steps import IS_ROOT, Contained, words

from stockade.sandbox.cgroup import open_group, remove_leftovers
from stockade.sandbox.cgroup_place import (
    SUPERVISOR_LEAF,
    open_parent,
    probe_place,
    read_words,
    step_back,
    write_value,
)
from stockade.sandbox.trial import in_child

MIB = 1 << 20
with_group = pytest.mark.needs("root", "cgroup")

# A mount namespace in which no group can be made. Only root needs one: the tests' user has no group anyway.
READ_ONLY_GROUPS = (
    "unshare",
    "-m",
    "sh",
    "-c",
    "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mountpoint -q $d && mount -o remount,bind,ro $d; done;"
    ' exec "$@"',
    "sh",
)
WITHOUT_GROUP = READ_ONLY_GROUPS if IS_ROOT else ()

FORKS = """
import os, sys, time
made = refused = 0
for _ in range(int(sys.argv[1])):
    try:
        if os.fork() == 0:
            time.sleep(30); os._exit(0)
        made += 1
    except BlockingIOError:
        refused += 1
print(made, refused)
"""
THREADS = """
import sys, threading
go, made, refused = threading.Event(), 0, 0
for _ in range(int(sys.argv[1])):
    try:
        threading.Thread(target=go.wait).start()
        made += 1
    except RuntimeError:
        refused += 1
go.set()
print(made, refused)
"""
HOG = """
import os, sys
held = [os.urandom(1 << 10) * (1 << 10) for _ in range(int(sys.argv[1]))]
print(len(held))
"""
# The same among processes, each of which is far below the limit.
SHARED_HOG = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        held = os.urandom(1 << 10) * (16 << 10)
        time.sleep(1); os._exit(0)
print(sum(os.wait()[1] == 0 for _ in range(int(sys.argv[1]))), "ended by themselves")
"""


def groups_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


# How contained.py names its groups: by the range, since others may run tests on this machine.
OUR_NAME = f"stockade-test-{os.stat('/proc/self/ns/net').st_ino}-"


def leftovers() -> list[str]:
    """Folders of this range's runs below our own groups."""
    own = {probe_place(controller).folder for controller in ("memory", "pids")}
    return [entry.path for folder in own for entry in os.scandir(folder) if entry.name.startswith(OUR_NAME)]


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [inner for child in map(int, text.split()) for inner in (child, *children_of(child))]


def wait_for(condition: Callable[[], bool], within_s: float = 8.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


# --- processes ---------------------------------------------------------------------------------


@with_group
@pytest.mark.parametrize("program", [FORKS, THREADS], ids=["forks", "threads"])
def test_r111_processes_and_threads_meet_the_group_s_limit_and_each_refusal_is_counted(
    contained: Contained, program: str
) -> None:
    """256 is what the worker has, itself among them; the sandbox's own two come on top (pids.max 258)."""
    limited = contained.python(program, "1000", options=("--processes", "256"))
    assert limited.out == "255 745\n"
    facts = contained.facts
    assert facts["facts"]["limits"]["processes"]["held_by"] == "cgroup"
    assert facts["usage"]["processes_refused"] == 745
    assert facts["usage"]["processes_peak"] == 256
    assert facts["limits_reached"] == ["processes"]

    free = contained.python(program, "600", options=("--processes", "1000"))
    assert free.out == "600 0\n"
    assert contained.facts["usage"]["processes_refused"] == 0
    assert contained.facts["limits_reached"] == []


@pytest.mark.parametrize("program", [FORKS, THREADS], ids=["forks", "threads"])
def test_r111_without_a_group_the_rlimit_holds_processes_and_says_that_it_does_not_count(
    contained: Contained, program: str
) -> None:
    limited = contained.python(program, "600", options=("--processes", "256"), prefix=WITHOUT_GROUP)
    assert limited.out == "255 345\n"
    held = contained.facts["facts"]["limits"]["processes"]
    assert (held["limit"], held["named"], held["held_by"], held["counted"]) == (256, True, "rlimit", False)
    assert re.search(r"(Read-only file system|Permission denied)$", held["no_group"])
    assert contained.facts["usage"]["processes_refused"] is None

    assert (
        contained.python(program, "600", options=("--processes", "1000"), prefix=WITHOUT_GROUP).out
        == "600 0\n"
    )


def test_one_process_is_enough_to_start_and_a_second_is_refused(contained: Contained) -> None:
    # A shell's own words run in itself; `true` as a program needs a second process.
    assert contained("sh", "-c", "echo alone", options=("--processes", "1")).out == "alone\n"
    refused = contained("sh", "-c", "/usr/bin/true; echo $?", options=("--processes", "1"))
    assert "Cannot fork" in refused.err
    assert contained("sh", "-c", "/usr/bin/true; echo $?", options=("--processes", "2")).out == "0\n"


# --- memory --------------------------------------------------------------------------------------


@with_group
def test_r111_a_memory_hog_is_killed_and_below_the_limit_it_is_not(contained: Contained) -> None:
    killed = contained.python(HOG, "256", options=("--memory", str(64 * MIB)))
    assert (killed.code, killed.out) == (128 + signal.SIGKILL, "")
    facts = contained.facts
    assert facts["facts"]["limits"]["memory"]["held_by"] == "cgroup"
    assert facts["usage"]["memory_kills"] == 1
    assert facts["limits_reached"] == ["memory"]
    # Whole pages, and the peak is the limit to within the last charge.
    assert 63 * MIB < facts["usage"]["memory_peak_bytes"] <= 64 * MIB

    below = contained.python(HOG, "30", options=("--memory", str(64 * MIB)))
    assert (below.code, below.out) == (0, "30\n")
    assert contained.facts["usage"]["memory_kills"] == 0
    assert contained.facts["limits_reached"] == []
    assert contained.python(HOG, "256", options=("--memory", str(512 * MIB))).out == "256\n"


@with_group
def test_memory_is_counted_over_all_processes_together(contained: Contained) -> None:
    """Eight times 16 MiB, each below any limit on one process."""
    over = contained.python(SHARED_HOG, "8", options=("--memory", str(96 * MIB)))
    assert contained.facts["usage"]["memory_kills"] >= 1
    assert int(over.out.split()[0]) < 8
    below = contained.python(SHARED_HOG, "8", options=("--memory", str(256 * MIB)))
    assert below.out == "8 ended by themselves\n"
    assert contained.facts["usage"]["memory_kills"] == 0


@with_group
def test_files_in_the_private_tmp_are_memory(contained: Contained) -> None:
    fill = "open('/tmp/f', 'wb').write(bytes(128 << 20)); print('written')"
    assert contained.python(fill, options=("--memory", str(64 * MIB))).code == 128 + signal.SIGKILL
    assert contained.python(fill, options=("--memory", str(384 * MIB))).out == "written\n"


@with_group
def test_the_first_to_be_killed_is_never_the_sandbox_s_own_process(contained: Contained) -> None:
    """Many small processes: the stage would be the largest. If it goes, everything goes."""
    program = SHARED_HOG.replace("16 << 10", "2 << 10")
    over = contained.python(program, "64", options=("--memory", str(64 * MIB)))
    assert contained.facts["usage"]["memory_kills"] >= 1
    assert over.code in (
        0,
        128 + signal.SIGKILL,
    )  # the command itself may be the one; the end is told either way
    score = "print(open('/proc/self/oom_score_adj').read().strip())"
    outside = int(Path("/proc/self/oom_score_adj").read_text())
    assert int(contained.python(score).out) == min(1000, outside + 500)


@with_group
def test_swap_is_limited_along_with_memory(contained: Contained) -> None:
    """Else the rest would go out to disk: version 1 counts both together, version 2 swap apart."""
    worker = contained.start("sh", "-c", "echo ready; read line", options=("--memory", str(64 * MIB)))
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    (folder,) = [
        Path(path) for path in leftovers() if (Path(path) / "cgroup.procs").exists() and "memory" in path
    ]
    together, apart = folder / "memory.memsw.limit_in_bytes", folder / "memory.swap.max"
    assert together.exists() or apart.exists(), "this kernel counts no swap"
    if together.exists():
        assert int(together.read_text()) == 64 * MIB
        assert (
            int((folder.parent / "memory.memsw.limit_in_bytes").read_text()) > 64 * MIB
        )  # it is not so by itself
    else:
        assert apart.read_text() == "0\n"
    worker.communicate(b"\n", timeout=10)
    assert contained.facts["facts"]["limits"]["memory"]["swap"] is True


@with_group
def test_a_limit_that_the_sandbox_itself_does_not_fit_in_is_refused(contained: Contained) -> None:
    refused = contained("touch", "started", options=("--memory", str(MIB), "--write", str(contained.work)))
    assert refused.code == 102
    assert "limit-too-small" in refused.err
    assert not (contained.work / "started").exists()
    options = ("--memory", str(32 * MIB), "--write", str(contained.work))  # what the refusal recommends
    assert contained("touch", "started", options=options).code == 0


# --- the group -----------------------------------------------------------------------------------


@with_group
def test_the_whole_sandbox_is_in_the_group_which_is_gone_afterwards(contained: Contained) -> None:
    options = ("--memory", str(64 * MIB), "--processes", "9")
    worker = contained.start("sh", "-c", "echo ready; read line; sleep 60 & echo $!", options=options)
    assert worker.stdout is not None
    assert worker.stdin is not None
    assert worker.stdout.readline() == b"ready\n"
    inside = children_of(worker.pid)
    assert len(inside) == 3  # bubblewrap, the stage, the shell
    for pid in inside:
        assert groups_of(pid).count(f"/{OUR_NAME}") == (2 if is_split() else 1)
    assert OUR_NAME not in groups_of(worker.pid)
    assert len(leftovers()) == (2 if is_split() else 1)
    worker.communicate(b"\n", timeout=10)  # the background process is left to the end of everything
    assert leftovers() == []


def is_split() -> bool:
    """Memory and processes are in two hierarchies (version 1)."""
    return probe_place("memory") != probe_place("pids")


@with_group
def test_the_group_is_gone_after_the_worker_was_killed(contained: Contained) -> None:
    worker = contained.start("sh", "-c", "echo ready; sleep 60", options=("--processes", "9"))
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    os.kill(children_of(worker.pid)[-1], signal.SIGKILL)
    os.kill(children_of(worker.pid)[1], signal.SIGKILL)  # and the stage
    worker.communicate(timeout=10)
    assert leftovers() == []


@with_group
def test_what_a_killed_supervisor_left_is_removed_by_the_next_start_and_a_living_one_s_is_not(
    contained: Contained,
) -> None:
    options = ("--processes", "9")
    alive = contained.start("sh", "-c", "echo ready; read line; echo still here", options=options)
    killed = contained.start("sh", "-c", "echo ready; sleep 60", options=options)
    for worker in (alive, killed):
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
    assert len(leftovers()) == 2
    inside = children_of(killed.pid)
    killed.kill()
    killed.communicate(timeout=10)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside))
    assert contained("true", options=options).code == 0
    assert len(leftovers()) == 1
    out, _err = alive.communicate(b"\n", timeout=10)
    assert out == b"still here\n"
    assert leftovers() == []


@pytest.fixture
def foreign_groups() -> Iterator[list[str]]:
    """Two empty folders that are not ours to remove: another user's, and one of another name."""
    parent = probe_place("pids").folder
    name = os.urandom(4).hex()
    made = [f"{parent}/stockade-foreign-{name}", f"{parent}/no-stockade-{name}"]
    for folder in made:
        os.mkdir(folder)
    os.chown(made[0], 65534, 65534)
    yield made
    for folder in filter(os.path.isdir, made):
        os.rmdir(folder)


@with_group
def test_only_our_own_leftovers_are_removed(foreign_groups: list[str]) -> None:
    parent = os.path.dirname(foreign_groups[0])
    ours = f"{parent}/stockade-left"
    os.mkdir(ours)
    assert remove_leftovers(parent) == [ours]
    assert all(os.path.isdir(folder) for folder in foreign_groups)


@with_group
def test_a_new_group_is_never_taken_for_a_leftover_by_a_start_beside_it() -> None:
    """Between making and joining a group is empty; its lock says that somebody is about to use it."""
    group, refused = open_group("stockade-being-made", {"pids": 9}, may_move=False)
    assert refused == {}
    folder = group.folder("pids")
    assert remove_leftovers(os.path.dirname(folder)) == []
    assert os.path.isdir(folder)
    group.close()
    assert not os.path.exists(folder)


# --- version 2: whoever has processes in it hands no controller on ---------------------------------


@pytest.fixture
def unified() -> Iterator[str]:
    """A group of version 2, delegated to another user; `hugetlb` does where the rest is in version 1."""
    top = probe_place("hugetlb").folder
    had = "hugetlb" in read_words(top, "cgroup.subtree_control")
    write_value(top, "cgroup.subtree_control", "+hugetlb")
    folder = f"{top}/test-{os.urandom(4).hex()}"
    os.mkdir(folder)
    for name in ("", "cgroup.procs", "cgroup.subtree_control"):  # cgroups(7), "Delegating a hierarchy"
        os.chown(f"{folder}/{name}", 65533, 65533)
    yield folder
    for path in (f"{folder}/{SUPERVISOR_LEAF}", folder):
        if os.path.exists(path):
            os.rmdir(path)
    if not had:
        write_value(top, "cgroup.subtree_control", "-hugetlb")


def ask_for_parent(folder: str, times: int = 1, *, may_move: bool) -> str:
    """As that user, in the group: where could a group be made? Answers parent and own group."""

    def ask() -> str:
        write_value(folder, "cgroup.procs", "0")
        os.setresuid(65533, 65533, 65533)
        for _ in range(times):
            parent = open_parent(probe_place("hugetlb"), frozenset({"hugetlb"}), may_move=may_move)
        return f"{parent} {probe_place('hugetlb').folder}"

    return in_child(ask)


with_version_2 = pytest.mark.needs("root", "cgroup2")


@with_version_2
def test_alone_in_a_group_we_move_ourselves_down_once(unified: str) -> None:
    assert ask_for_parent(unified, 3, may_move=True) == f"{unified} {unified}/{SUPERVISOR_LEAF}"
    assert "hugetlb" in read_words(unified, "cgroup.subtree_control")


@with_version_2
def test_at_the_end_we_move_back_unless_somebody_else_is_down_there(unified: str) -> None:
    """Else no process could enter the group again."""

    def down_and_back() -> str:
        write_value(unified, "cgroup.procs", "0")
        os.setresuid(65533, 65533, 65533)
        place, wanted = probe_place("hugetlb"), frozenset({"hugetlb"})
        os.mkdir(f"{open_parent(place, wanted, may_move=True)}/another-run")
        step_back(unified, wanted)
        kept = probe_place("hugetlb").folder
        os.rmdir(f"{unified}/another-run")
        step_back(unified, wanted)
        return f"{kept} {probe_place('hugetlb').folder}"

    assert in_child(down_and_back) == f"{unified}/{SUPERVISOR_LEAF} {unified}"
    assert read_words(unified, "cgroup.subtree_control") == set()
    assert not os.path.exists(f"{unified}/{SUPERVISOR_LEAF}")


@with_version_2
def test_for_defaults_nobody_is_moved(unified: str) -> None:
    with pytest.raises(OSError, match="we ourselves") as refused:
        ask_for_parent(unified, may_move=False)
    assert refused.value.errno == errno.EBUSY


@with_version_2
def test_other_people_s_processes_are_never_moved(unified: str) -> None:
    other = subprocess.Popen(["sleep", "30"])
    write_value(unified, "cgroup.procs", str(other.pid))
    try:
        with pytest.raises(OSError, match="1 other process beside us"):
            ask_for_parent(unified, may_move=True)
        assert read_words(unified, "cgroup.procs") == {str(other.pid)}
        assert not os.path.exists(f"{unified}/{SUPERVISOR_LEAF}")
    finally:
        other.kill()
        other.wait()


# --- a host that cannot --------------------------------------------------------------------------


def test_f22_a_named_limit_that_nobody_can_hold_is_refused_with_errno_and_remedy_before_anything_starts(
    contained: Contained,
) -> None:
    write = ("--write", str(contained.work))
    refused = contained("touch", "started", options=(*write, "--memory", str(64 * MIB)), prefix=WITHOUT_GROUP)
    assert refused.code == 103
    first, hint = refused.err.splitlines()[:2]
    number = 30 if IS_ROOT else 13  # EROFS, EACCES
    assert first.startswith("HostError limit-not-available: `memory: 64MiB` cannot be held here: ")
    assert first.endswith(f"(errno {number})")
    scope = "systemd-run --scope" if IS_ROOT else "systemd-run --user --scope"
    assert f"{scope} -p Delegate=yes stockade run" in hint
    assert f"{scope} -p MemoryMax=67108864 stockade run" in hint
    assert not (contained.work / "started").exists()
    assert contained("touch", "started", options=write, prefix=WITHOUT_GROUP).code == 0


def test_f22_default_limits_hold_as_well_as_the_host_can_and_the_record_says_by_whom(
    contained: Contained,
) -> None:
    assert contained("true", prefix=WITHOUT_GROUP).code == 0
    limits = contained.facts["facts"]["limits"]
    assert {name: (fact["held_by"], fact["named"]) for name, fact in limits.items()} == {
        "processes": ("rlimit", False),
        "open-files": ("rlimit", False),
        "core-files": ("rlimit", False),
    }
    assert limits["processes"]["limit"] == 4096
    assert "no_group" in limits["processes"]


@with_group
def test_a_group_that_vanishes_before_the_sandbox_joins_it_is_a_refusal(contained: Contained) -> None:
    lost = contained("true", options=("--lose-group", "--memory", str(64 * MIB)))
    assert lost.code == 103
    assert "limit-not-available" in lost.err
    assert "(errno 2)" in lost.err  # ENOENT
    assert leftovers() == []


@with_group
def test_a_default_whose_group_vanishes_is_held_by_the_rlimit_instead(contained: Contained) -> None:
    assert contained.python(FORKS, "20", options=("--lose-group",)).out == "20 0\n"
    assert contained.facts["facts"]["limits"]["processes"]["held_by"] == "rlimit"


def doctor(*prefix: str) -> dict[str, dict[str, Any]]:
    """The trials of `stockade doctor` that are about limits, by name."""
    program = (
        "import msgspec, sys; from stockade.sandbox.limit_trial import LIMIT_TRIALS;"
        "from stockade.sandbox.trial import run_trials;"
        "sys.stdout.buffer.write(msgspec.json.encode(run_trials(LIMIT_TRIALS)))"
    )
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program], capture_output=True, timeout=15, check=True
    )
    return {trial["name"]: trial for trial in json.loads(done.stdout)}


@with_group
def test_doctor_goes_beyond_each_limit_and_says_who_holds_it() -> None:
    trials = doctor()
    assert all(trial["works"] for trial in trials.values())
    for name, controller in (("limit-memory", "memory"), ("limit-processes", "pids")):
        assert trials[name]["detail"].startswith(f"by control group {probe_place(controller).folder}")
    assert trials["limit-files"]["detail"] == "by rlimit"


def test_doctor_says_for_what_reason_a_limit_cannot_be_held() -> None:
    trials = doctor(*WITHOUT_GROUP)
    reason = "Read-only file system" if IS_ROOT else "Permission denied"
    assert not trials["limit-memory"]["works"]
    assert reason in trials["limit-memory"]["detail"]
    assert "Delegate=yes" in trials["limit-memory"]["remedy"]
    assert trials["limit-processes"]["works"]
    assert trials["limit-processes"]["detail"].startswith("by rlimit, so refusals are not counted")
    assert trials["limit-processes"]["detail"].endswith("fork 4 was refused")  # of four, the caller is one
    assert trials["limit-files"]["works"]


# --- files ---------------------------------------------------------------------------------------

OPENS = """
import os
count = 0
try:
    while count < 3000:
        os.open("/dev/null", os.O_RDONLY); count += 1
except OSError as error:
    print(os.strerror(error.errno))
print(count)
"""


def test_open_files_are_limited_in_each_process(contained: Contained) -> None:
    limited = contained.python(OPENS, options=("--open-files", "64"))
    assert limited.out == f"Too many open files\n{64 - 3}\n"  # three are the standard streams
    assert contained.facts["facts"]["limits"]["open-files"] == {
        "limit": 64,
        "named": True,
        "held_by": "rlimit",
    }
    # A named count can be used: the caller's soft limit, usually 1024, is no limit that somebody meant.
    assert (
        contained.python(OPENS, options=("--open-files", "4000"), prefix=("prlimit", "-n=1024:5000")).out
        == "3000\n"
    )
    assert (
        contained.python(OPENS, prefix=("prlimit", "-n=1024:5000")).out
        == f"Too many open files\n{1024 - 3}\n"
    )


def test_nobody_gets_more_than_the_caller_has(contained: Contained) -> None:
    limited = contained.python(OPENS, options=("--open-files", "400"), prefix=("prlimit", "-n=200:300"))
    assert limited.out == f"Too many open files\n{300 - 3}\n"
    assert contained.facts["facts"]["limits"]["open-files"]["limit"] == 300


ENDLESS = "head -c 8M /dev/zero > {0}; echo $?; stat -c %s {0}"


@pytest.mark.parametrize("place", ["f", "/tmp/f"])
def test_an_endless_file_meets_its_size_and_a_shorter_one_is_written(
    contained: Contained, place: str
) -> None:
    write = ("--write", str(contained.work))
    limited = contained("sh", "-c", ENDLESS.format(place), options=(*write, "--file-size", str(MIB)))
    assert limited.out.splitlines() == [str(128 + signal.SIGXFSZ), str(MIB)]  # setrlimit(2): RLIMIT_FSIZE
    fits = contained("sh", "-c", ENDLESS.format(place), options=(*write, "--file-size", str(8 * MIB)))
    assert fits.out.splitlines() == ["0", str(8 * MIB)]


def test_what_goes_through_a_pipe_is_no_file(contained: Contained) -> None:
    piped = contained("sh", "-c", "head -c 4M /dev/zero | wc -c", options=("--file-size", "1024"))
    assert piped.out == f"{4 * MIB}\n"


# --- time ----------------------------------------------------------------------------------------

TIMED = "version: 1\nexec: {{mode: any}}\nlimits: {{time: {0}}}\n"


class Timed:
    """`stockade run` under a limit on time; every test says how long it may take."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.ledger = work.parent / "ledger"

    def __call__(self, limit: str, *argv: str) -> tuple[int, str, dict[str, Any], float]:
        policy = self.work.parent / "policy.yaml"
        policy.write_text(TIMED.format(limit))
        report = self.work.parent / "report.json"
        command = [sys.executable, "-m", "stockade", "run", "-p", str(policy)]
        command += ["--ledger", str(self.ledger), "--report", str(report), "--", *argv]
        began = time.monotonic()
        done = words(
            subprocess.run(command, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=18)
        )
        return done.code, done.err, json.loads(report.read_text()), time.monotonic() - began


@pytest.fixture
def timed(work: Path) -> Timed:
    return Timed(work)


def test_at_its_time_the_command_gets_sigterm_and_its_own_answer_is_the_exit_code(timed: Timed) -> None:
    code, err, report, took_s = timed("1s", "sleep", "30")
    assert code == 128 + signal.SIGTERM
    assert 1 < took_s < 5
    assert "stockade: time limit of 1 s reached: the command was ended" in err
    (reached,) = report["limits_reached"]
    assert (reached["name"], reached["amount"]) == ("time", 1)
    assert report["exit_of"] == "command"
    assert report["enforced"]["limits"]["time"] == {"limit": 1, "named": True, "held_by": "supervisor"}

    code, err, _report, _took_s = timed("1s", "sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.1; done")
    assert code == 7
    assert "time limit of 1 s" in err


def test_what_ignores_sigterm_is_killed_five_seconds_later_with_all_that_it_left(timed: Timed) -> None:
    script = "trap '' TERM; setsid sleep 31.4159 & while :; do sleep 0.1; done"
    code, err, report, took_s = timed("1s", "sh", "-c", script)
    assert code == 128 + signal.SIGKILL
    assert 6 < took_s < 11
    assert "SIGTERM did not end the command, so all was killed" in err
    assert report["failure"] is None
    assert not runs("31.4159")


def runs(word: str) -> bool:
    def reads(pid: str) -> bytes:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""

    return any(
        word.encode() in reads(pid) and pid != str(os.getpid())
        for pid in os.listdir("/proc")
        if pid.isdigit()
    )


def test_a_command_that_ends_in_time_is_left_alone(timed: Timed) -> None:
    code, err, report, took_s = timed("60s", "sh", "-c", "sleep 0.2; exit 3")
    assert (code, report["limits_reached"], err) == (3, [], "")
    assert took_s < 15
