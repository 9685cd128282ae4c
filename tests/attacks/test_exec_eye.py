"""The eye attacked: what races it, hides from it, floods it or hands it nonsense.

It is no lock, and the first test shows that: raced alone it is passed. What is tried after that
is that the whole seal is not, and that each command has its record all the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room")]

PYTHON = "/usr/bin/python3"
LISTED = "exec: {allow: [python3, 'true']}\n"
ENOENT, EINTR, EACCES, EFAULT, EBUSY, ENAMETOOLONG = 2, 4, 13, 14, 16, 36

Payload = Callable[..., Any]

# --- the race -----------------------------------------------------------------------------------

TRIES = 300
ANOTHER = (str(TRIES), "/usr/bin/true", "/usr/bin/false")
NOTHING = (str(TRIES), "/usr/bin/true", "/usr/bin/there-is-none")


def let_go_on(run: Any) -> set[int]:
    """The numbers of the tries that were judged while the path led to `true`."""
    return {int(r["argv"][1]) for r in run.attempts(entry="exec", verdict="allow", file="/usr/bin/true")}


def ended_with(codes: list[int], code: int) -> set[int]:
    return {number for number, found in enumerate(codes) if found == code}


def test_f19_a_path_swapped_after_the_judgement_runs_another_program_under_the_eye_alone(
    payload: Payload,
) -> None:
    """The control: what the kernel reads is not what was judged, and nothing else stands in the way."""
    codes, run = payload("race.py", LISTED, "mounts", "landlock", "seccomp", "memfd", arguments=ANOTHER)
    swapped = ended_with(codes, 1)
    assert swapped
    assert swapped <= let_go_on(run)


def test_f19_under_the_whole_seal_a_swapped_path_never_runs_another_program(payload: Payload) -> None:
    codes, run = payload("race.py", LISTED, arguments=ANOTHER)
    assert set(codes) == {0, EACCES}
    assert let_go_on(run) > ended_with(codes, 0)  # races that were won against the eye, and lost to Landlock
    assert len(let_go_on(run)) + len(run.denials(entry="exec", file="/usr/bin/false")) == TRIES


@pytest.mark.parametrize("policy", [LISTED, "exec: {mode: any}\n"], ids=["listed", "any"])
def test_a_path_that_led_nowhere_when_it_was_judged_runs_nothing_that_is_not_on_record(
    payload: Payload, policy: str
) -> None:
    codes, run = payload("race.py", policy, arguments=NOTHING)
    assert set(codes) == {0, ENOENT}
    assert ended_with(codes, 0) < let_go_on(run)


# --- odd paths and arguments ----------------------------------------------------------------------

RUNS = {"plain", "many", "long", "secrets", "none", "longest-path", "not-text"}
DENIED = {"none-denied", "longest-path-denied", "not-text-denied"}
# What Stockade cannot read it refuses; the kernel would have said EFAULT or ENAMETOOLONG.
UNREADABLE = {
    "too-long-path", "endless-path", "unmapped-path", "unmapped-arguments", "unmapped-argument",
    "unmapped-arguments-denied",
}  # fmt: skip
# What the kernel says by itself: there is nothing to run, or it was permitted and cannot be started.
BY_THE_KERNEL = {
    "empty-path": ENOENT, "no-file": ENOENT, "folder": EACCES, "no-program": EACCES,
    "unmapped-environment": EFAULT,
}  # fmt: skip


def test_odd_commands_arrive_in_the_open(plainly: Payload) -> None:
    """The control: the denied ones run, and what cannot be read is the kernel's own refusal."""
    answers = plainly("odd_commands.py")
    assert {name for name, said in answers.items() if isinstance(said, int)} == RUNS | DENIED
    assert {answers[name] for name in UNREADABLE} == {f"errno {EFAULT}", f"errno {ENAMETOOLONG}"}


def test_r141_odd_commands_are_judged_by_their_file_and_on_record(payload: Payload, workspace: Path) -> None:
    answers, run = payload("odd_commands.py", LISTED)
    wanted: dict[str, Any] = dict.fromkeys(RUNS, 0)
    wanted |= dict.fromkeys(DENIED | UNREADABLE, f"errno {EACCES}")
    wanted |= {name: f"errno {number}" for name, number in BY_THE_KERNEL.items()}
    assert answers == wanted
    permitted = run.attempts(entry="exec", verdict="allow", file="/usr/bin/true")
    denied = run.denials(entry="exec", file="/usr/bin/id")
    unreadable = [r for r in run.denials(entry="exec") if "could not see what this command is" in r["why"]]
    assert len(permitted) == len(RUNS) + 1  # and the one whose environment leads nowhere
    assert len(denied) == len(DENIED)
    assert len(unreadable) == len(UNREADABLE)
    assert {record["program"] for record in unreadable} >= {"/usr/bin/true", "/usr/bin/id"}
    assert {record["reason"] for record in denied + unreadable} == {"program-not-listed"}
    argv = {record["argv"][0]: record["argv"] for record in permitted + denied}
    assert argv["many"] == ["many", *map(str, range(63)), "…"]
    assert argv["long"][1].startswith("a" * 64)
    assert len(argv["long"][1]) < 2000
    assert argv["/usr/bin/true"] == ["/usr/bin/true"]  # no argument at all: the path stands for it
    assert argv["/usr/bin/id"] == ["/usr/bin/id"]
    odd = [record for record in permitted + denied if record["argv"][0] == "not-text"]
    assert {record["program"] for record in odd} == {
        f"{workspace}/\\xff\\xfe",
        f"{workspace}/\\xfd\\n\\u{{1b}}[31m",
    }


def test_r164_secrets_in_the_arguments_of_a_command_are_in_no_record(
    payload: Payload, stockade: Payload
) -> None:
    _answers, run = payload("odd_commands.py", LISTED)
    (record,) = [r for r in run.attempts(entry="exec") if r["argv"][0] == "secrets"]
    assert len(record["argv"]) == 4
    kept = b"".join(path.read_bytes() for path in stockade.ledger.rglob("*") if path.is_file())
    assert b"hunter2hunter2" not in kept
    assert b"ghp_0123456789" not in kept
    assert b"hunter2hunter2" not in str(run.report).encode()


# --- who calls -------------------------------------------------------------------------------------

UNDUMPABLE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
assert libc.prctl(4, 0, 0, 0, 0) == 0 and libc.prctl(3, 0, 0, 0, 0) == 0  # PR_SET_DUMPABLE, PR_GET_DUMPABLE
for path in ("/usr/bin/id", "/usr/bin/true"):
    pid = os.fork()
    if pid == 0:
        try: os.execv(path, [path, "hidden"])
        except OSError as error: os._exit(error.errno)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_f19_a_caller_that_cannot_be_looked_into_is_judged_and_recorded_all_the_same(
    stockade: Payload,
) -> None:
    run = stockade([PYTHON, "-c", UNDUMPABLE], LISTED)
    assert run.out.split() == [str(EACCES), "0"], run.err
    (denied,) = run.denials(entry="exec")
    assert (denied["program"], denied["file"]) == ("/usr/bin/id", "/usr/bin/id")
    assert denied["argv"] == ["/usr/bin/id", "hidden"]
    (permitted,) = run.attempts(entry="exec", verdict="allow", file="/usr/bin/true")
    assert permitted["argv"] == ["/usr/bin/true", "hidden"]
    assert permitted["parent"]["program"] == denied["parent"]["program"] == os.path.realpath(PYTHON)


# SIGURG, since a program that has just started ignores it; SIGUSR1 would end it.
STORM = """
import os, signal, sys
signal.signal(signal.SIGURG, lambda *_: None)
signal.siginterrupt(signal.SIGURG, sys.argv[1] == "interrupts")
os.setpgid(0, 0)
group = os.getpgid(0)
storm = os.fork()
if storm == 0:
    os.setpgid(0, 0)
    while True: os.killpg(group, signal.SIGURG)
ended = []
for number in range(20):
    pid = os.fork()
    if pid == 0:
        try: os.execv("/usr/bin/true", ["true", str(number)])
        except OSError as error: os._exit(error.errno)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
os.kill(storm, 9)
print(*ended)
"""


def test_f19_commands_under_a_storm_of_signals_run_once_and_have_one_record_each(stockade: Payload) -> None:
    run = stockade([PYTHON, "-c", STORM, "restarts"], LISTED)
    assert run.out.split() == ["0"] * 20, run.err
    records = run.attempts(entry="exec", file="/usr/bin/true")
    assert [record["argv"][1] for record in records] == [str(number) for number in range(20)]


def test_f19_a_command_that_a_signal_interrupts_has_not_run_and_those_that_ran_are_on_record(
    stockade: Payload,
) -> None:
    """A handler without SA_RESTART, and a signal before the command is taken up: EINTR, as in a slow call."""
    run = stockade([PYTHON, "-c", STORM, "interrupts"], LISTED)
    ended = run.out.split()
    assert set(ended) <= {"0", str(EINTR)}, run.err
    records = run.attempts(entry="exec", file="/usr/bin/true")
    ran = [str(number) for number, code in enumerate(ended) if code == "0"]
    assert [record["argv"][1] for record in records] == ran


THREADS = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
turns = [0, 0, 0]
def turn(which):
    while True: turns[which] += 1
def call_exec():
    code = "import os; print(os.getpid(), len(os.listdir('/proc/self/task')))"
    assert threading.get_native_id() != os.getpid()
    try: os.execv("/usr/bin/id", ["id"])
    except OSError as error: print(error.errno, os.getpid())
    before = list(turns)
    while any(was == now for was, now in zip(before, turns)): time.sleep(0.001)
    print("all go on", flush=True)
    os.execv(sys.executable, ["python3", "-c", code])
for number in range(3): threading.Thread(target=turn, args=(number,), daemon=True).start()
threading.Thread(target=call_exec).start()
"""


def test_a_thread_that_calls_execve_while_others_run(stockade: Payload) -> None:
    """A denial leaves the others alone; a permitted program takes the whole process's place and number."""
    run = stockade([PYTHON, "-c", THREADS], LISTED)
    refused, going, replaced = run.out.splitlines()
    number, process = refused.split()
    assert (number, going, replaced) == (str(EACCES), "all go on", f"{process} 1")
    assert {record["pid"] for record in run.attempts(entry="exec")} == {int(process)}
    assert [record["verdict"] for record in run.attempts(entry="exec")] == ["allow", "deny", "allow"]


# The first thread of a process ends alone (exit, not exit_group): what is left calls execve.
HEADLESS = """
import ctypes, os, threading
pid = os.fork()
if pid == 0:
    def left():
        state = ""
        while state != "Z":
            with open("/proc/self/stat") as file: state = file.read().rsplit(")", 1)[1].split()[0]
        for path in ("/usr/bin/id", "/usr/bin/true"):
            try: os.execv(path, [path, "headless"])
            except OSError as error: assert error.errno == 13
    threading.Thread(target=left).start()
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
print(pid, os.waitpid(pid, 0)[1])
"""


def test_a_process_whose_first_thread_has_ended_is_named_all_the_same(stockade: Payload) -> None:
    run = stockade([PYTHON, "-c", HEADLESS], LISTED)
    pid, status = run.out.split()
    assert status == "0", run.err
    records = [record for record in run.attempts(entry="exec") if record["argv"][-1] == "headless"]
    assert [record["verdict"] for record in records] == ["deny", "allow"]
    assert {record["pid"] for record in records} == {int(pid)}
    assert {record["parent"]["program"] for record in records} == {os.path.realpath(PYTHON)}


# Numbers of processes are the worker's own, by whatever way its /proc is reached.
ROUNDABOUT = """
import os, subprocess
own = os.getpid()
for path in (f"/proc/{own}/exe", f"/proc/self/../{own}/exe", "/proc/self/../self/exe",
             f"/proc/thread-self/../../../{own}/root/usr/bin/python3", "/../../proc/self/exe",
             "/usr/../../../../usr/bin/python3"):
    print(subprocess.run([path, "-c", "print(1)"], capture_output=True).stdout.decode().strip())
"""


def test_r145_ways_through_proc_and_above_the_root_lead_where_they_lead_the_worker(stockade: Payload) -> None:
    run = stockade([PYTHON, "-c", ROUNDABOUT], LISTED)
    assert run.out.split() == ["1"] * 6, run.err
    assert {r["file"] for r in run.attempts(entry="exec", verdict="allow")} == {os.path.realpath(PYTHON)}


# `subprocess` starts by vfork, posix_spawn shares memory as well, os.fork is an ordinary child; execveat
# takes a descriptor, or a name below one.
STARTS = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
NUMBER = 322 if os.uname().machine == "x86_64" else 281
def forked(action):
    pid = os.fork()
    if pid == 0:
        try: action()
        except OSError as error: os._exit(error.errno)
        os._exit(ctypes.get_errno())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def at(folder, name, path, flags):
    argv = (ctypes.c_char_p * 3)(b"started", path.encode(), None)
    libc.syscall(ctypes.c_long(NUMBER), os.open(folder, os.O_PATH), name, argv, None, flags)
def by_vfork(path):
    assert subprocess._USE_VFORK
    try: return subprocess.run([path, path]).returncode
    except OSError as error: return error.errno
def by_spawn(path):
    try: return os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(path, ["started", path], {}), 0)[1])
    except OSError as error: return error.errno
for path in ("/usr/bin/true", "/usr/bin/id"):
    folder, name = os.path.split(path)
    print(by_vfork(path), by_spawn(path), forked(lambda: os.execv(path, ["started", path])),
          forked(lambda: os.execve(os.open(path, os.O_RDONLY), ["started", path], {})),
          forked(lambda: at(path, b"", path, 0x1000)), forked(lambda: at(folder, name.encode(), path, 0)))
"""


def test_every_way_to_start_a_command_is_seen_once_and_judged_alike(stockade: Payload) -> None:
    run = stockade([PYTHON, "-c", STARTS], LISTED)
    assert run.out.splitlines() == ["0 0 0 0 0 0", "13 13 13 13 13 13"], run.err
    assert len(run.attempts(entry="exec", verdict="allow", file="/usr/bin/true")) == 6
    assert len(run.denials(entry="exec", file="/usr/bin/id")) == 6


# --- what lies there ---------------------------------------------------------------------------------

REPLACED = """
import subprocess, sys
for line in sys.stdin:
    try: print(subprocess.run(["./tool"]).returncode, flush=True)
    except OSError as error: print("errno", error.errno, flush=True)
"""


@pytest.mark.parametrize("layers_off", [(), ("mounts", "landlock")], ids=["sealed", "eye-alone"])
def test_r141_a_listed_program_that_is_replaced_while_the_run_goes_on_is_another_program(
    stockade: Payload, workspace: Path, layers_off: tuple[str, ...]
) -> None:
    shutil.copy("/usr/bin/true", workspace / "tool")
    shutil.copy("/usr/bin/false", workspace / "new")
    extra = [f"--without-layer={name}" for name in layers_off]
    worker = stockade.start([PYTHON, "-c", REPLACED], "exec: {allow: [./tool]}\n", extra=extra)
    said = []
    for step in range(2):
        if step == 1:
            os.rename(workspace / "new", workspace / "tool")
        worker.stdin.write(b"now\n")
        worker.stdin.flush()
        said.append(worker.stdout.readline().decode().strip())
    out, err = worker.communicate(b"", timeout=15)
    run = stockade.finish(worker, out, err)
    assert said == ["0", f"errno {EACCES}"]
    (denied,) = run.denials(entry="exec")
    assert denied["program"] == "./tool"
    assert denied["file"] == f"{workspace}/tool (another file since the start)"


# --- many, and none that is lost --------------------------------------------------------------------

FLOOD = """
import os, subprocess
flood = os.fork()
if flood == 0:
    for number in range(500):
        try: os.execv("/usr/bin/id", ["id", str(number)])
        except OSError as error: assert error.errno == 13
    os._exit(0)
meanwhile = 0
while os.waitpid(flood, os.WNOHANG) == (0, 0):
    meanwhile += subprocess.run(["true"]).returncode == 0
print("meanwhile", meanwhile)
"""


def test_r113_each_of_500_denied_commands_is_on_record_and_others_run_meanwhile(stockade: Payload) -> None:
    run = stockade([PYTHON, "-c", FLOOD], LISTED)
    word, meanwhile = run.out.split()
    assert (run.code, word) == (0, "meanwhile")
    assert int(meanwhile) >= 5
    denied = [record["argv"][1] for record in run.denials(entry="exec", file="/usr/bin/id")]
    assert denied == [str(number) for number in range(500)]
    assert len(run.attempts(entry="exec", file="/usr/bin/true")) == int(meanwhile)
    assert len(run.err.splitlines()) < 20  # people are told once, with the number
    assert "500×" in run.err


# The supervisor stands still (SIGSTOP) while a command waits for it; then the waiting process is killed.
WAITING = """
import mmap, os, signal, subprocess, time
word = mmap.mmap(-1, 1)
waiting = os.fork()
if waiting == 0:
    while word[0] == 0: pass
    os.execv("/usr/bin/true", ["true", "killed"])
def asleep():
    with open(f"/proc/{waiting}/stat") as file: return file.read().rsplit(")", 1)[1].split()[0] == "S"
open("ready", "w").close()
while not os.path.exists("stopped"): time.sleep(0.005)
assert not asleep()
word[0] = 1
while not asleep(): time.sleep(0.005)
os.kill(waiting, signal.SIGKILL)
print(os.waitpid(waiting, 0)[1], flush=True)
open("killed", "w").close()
print(subprocess.run(["true", "after"]).returncode)
"""


def wait_for(path: Path, worker: Any) -> None:
    while not path.exists():
        assert worker.poll() is None
        time.sleep(0.005)


def test_f19_a_waiting_command_that_is_killed_leaves_nothing_hanging(
    stockade: Payload, workspace: Path
) -> None:
    worker = stockade.start([PYTHON, "-c", WAITING], LISTED, extra=["--write", "."])
    wait_for(workspace / "ready", worker)
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        (workspace / "stopped").touch()
        wait_for(workspace / "killed", worker)  # so it could be killed although nobody answered
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    out, err = worker.communicate(b"", timeout=15)
    run = stockade.finish(worker, out, err)
    assert (run.code, run.out.split()) == (0, ["9", "0"]), run.err
    # What was killed before it was seen was never judged; what came after was.
    assert [r["argv"][1] for r in run.attempts(entry="exec", file="/usr/bin/true")] == ["after"]


LATE = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
os.execv("/usr/bin/touch", ["touch", "ran"])
"""


def test_r108_a_command_whose_record_cannot_be_written_never_runs_and_the_run_ends(
    stockade: Payload, workspace: Path
) -> None:
    policy, writable = "exec: {allow: [python3, touch]}\n", ["--write", "."]
    for breaks in (False, True):
        worker = stockade.start([PYTHON, "-c", LATE], policy, extra=writable)
        assert worker.stdout.readline() == b"ready\n"
        if breaks:
            (file,) = stockade.ledger.glob("*/records.jsonl")
            os.truncate(file, 0)
        _out, err = worker.communicate(b"now\n", timeout=15)
        assert worker.returncode == (104 if breaks else 0), err
        assert (workspace / "ran").exists() is not breaks
        (workspace / "ran").unlink(missing_ok=True)
    assert b"ledger" in err


# --- listeners -------------------------------------------------------------------------------------

# A filter of one instruction (allow all), loaded with SECCOMP_FILTER_FLAG_NEW_LISTENER; then a command.
LISTEN = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
libc.prctl(38, 1, 0, 0, 0)
number = 317 if os.uname().machine == "x86_64" else 277
load = lambda flags: libc.syscall(ctypes.c_long(number), ctypes.c_ulong(1), ctypes.c_ulong(flags), program)
listener = load(8)
if len(sys.argv) > 1:
    os.set_inheritable(listener, True)
    os.execv(sys.argv[1], sys.argv[1:])
print("listens" if listener >= 0 else ctypes.get_errno())
assert load(0) == 0
try: os.execv("/usr/bin/id", ["id"])
except OSError as error: print(error.errno)
"""


def test_f19_a_worker_gets_no_listener_of_its_own(stockade: Payload) -> None:
    """And a filter of its own that allows everything takes nothing away: the strictest answer counts."""
    run = stockade([PYTHON, "-c", LISTEN], LISTED)
    assert run.out.split() == [str(EBUSY), str(EACCES)]
    assert [record["program"] for record in run.denials(entry="exec")] == ["/usr/bin/id"]
    without = stockade([PYTHON, "-c", LISTEN], LISTED, extra=["--without-layer=notify"])
    assert without.out.split()[0] == "listens"


def test_f19_a_host_that_watches_us_already_is_refused_by_name_and_may_be_served_without_the_eye(
    stockade: Payload, workspace: Path
) -> None:
    watched = [PYTHON, "-c", LISTEN]
    refused = stockade(["touch", "started"], LISTED, extra=["--write", "."], prefix=watched)
    assert refused.code == 103
    assert f"errno {EBUSY}" in refused.err
    assert "--without-layer=notify" in refused.err
    assert not (workspace / "started").exists()
    served = stockade(
        ["touch", "started"], LISTED, extra=["--write", ".", "--without-layer=notify"], prefix=watched
    )
    assert served.code == 0, served.err
    assert (workspace / "started").exists()
