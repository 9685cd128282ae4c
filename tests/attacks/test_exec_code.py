"""No native code but that of permitted files, at level `closed`: by memory, by files, or over what is there.

Each way is gone with nothing forbidden first, where it arrives. What each layer stops alone
follows from what the layer is, and the table is finding F5 of the attack on the design: noexec
mounts judge files, Landlock the writing below /proc, the layer `memfd` protections of
memory, `seccomp` the reach into another process, and the eye what is executed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room")]

PYTHON = "/usr/bin/python3"
LISTED = "exec: {allow: [python3]}\n"
JIT = "exec: {allow: [python3], code: jit}\n"
ANY = "exec: {mode: any}\n"
ALL_LAYERS = ("mounts", "memfd", "landlock", "seccomp", "notify")

MEMORY = {
    "writable-and-executable", "written-then-executable", "with-a-key", "read-implies-execute",
    "shared-memory", "memory-file-mapped", "memory-file-executed", "code-made-writable",
}  # fmt: skip
FILES = {
    "file-tmp", "file-shm", "file-home", "file-work", "file-without-a-name", "file-mapped-twice", "dev-zero",
    "library",
}  # fmt: skip
BELOW_PROC = {"proc-self-mem", "proc-thread-mem"}
EVERY_WAY = MEMORY | FILES | BELOW_PROC | {"poked"}

Payload = Callable[..., Any]


def stopped(answers: dict[str, Any]) -> set[str]:
    assert set(answers) == EVERY_WAY
    return {way for way, (said, _pid) in answers.items() if said != "42"}


@pytest.fixture
def try_ways(payload: Payload) -> Callable[..., set[str]]:
    """Which ways did not lead to code that ran."""
    return lambda policy, *layers_off: stopped(payload("code.py", policy, *layers_off)[0])


def all_but(layer: str) -> tuple[str, ...]:
    return tuple(name for name in ALL_LAYERS if name != layer)


def test_every_way_leads_to_code_where_nothing_forbids_it(try_ways: Payload) -> None:
    assert try_ways(LISTED, *ALL_LAYERS) == set()


def test_where_any_program_may_run_so_may_any_code_and_what_reaches_further_stays_closed(
    try_ways: Payload,
) -> None:
    assert try_ways(ANY) == BELOW_PROC | {"poked"}


# What the record of each way says. Protections and flags are those of mmap(2), shmat(2), memfd_create(2).
CALLS = {
    "writable-and-executable": ("mmap(PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS)", "memfd"),
    "written-then-executable": ("mprotect(PROT_READ|PROT_EXEC)", "memfd"),
    "with-a-key": ("pkey_mprotect(PROT_READ|PROT_EXEC)", "memfd"),
    "read-implies-execute": ("personality(READ_IMPLIES_EXEC)", "memfd"),
    "shared-memory": ("shmat(SHM_RDONLY|SHM_EXEC)", "memfd"),
    "memory-file-mapped": ("memfd_create(MFD_NOEXEC_SEAL)", "memfd"),
    "memory-file-executed": ("memfd_create(0)", "memfd"),
    "code-made-writable": ("mprotect(PROT_READ|PROT_WRITE|PROT_EXEC)", "memfd"),
    "dev-zero": ("mmap(PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE)", "memfd"),
    "poked": ("ptrace(PTRACE_ATTACH, ", "seccomp"),
}


CLOSED_AT_JIT = {"memory-file-executed", "read-implies-execute", "poked"}


def test_f5_no_way_leads_to_new_code_at_level_closed_and_each_call_is_on_record(payload: Payload) -> None:
    answers, run = payload("code.py", LISTED)
    assert stopped(answers) == EVERY_WAY
    denials = {record["pid"]: record for record in run.denials(entry="exec")}
    for way, (call, layer) in CALLS.items():
        record = denials[answers[way][1]]
        assert record["call"].startswith(call), way
        assert record["layer"] == layer, way
        assert record["risk"] == "boundary-tampering"
        assert record["program"] == os.path.realpath(PYTHON)
        assert record["reason"] == ("system-call-refused" if layer == "seccomp" else "code-in-memory")
        assert ("code: jit" in record["why"]) == (way not in CLOSED_AT_JIT), way
    assert len(denials) == len(CALLS)


def test_at_level_jit_a_program_makes_code_of_its_own_and_runs_no_file_of_its_own(try_ways: Payload) -> None:
    assert try_ways(JIT) == EVERY_WAY - (MEMORY - CLOSED_AT_JIT)


STOPPED_ALONE_BY = {
    "mounts": FILES,
    "memfd": MEMORY | {"dev-zero"},  # writable and executable at once, of whatever file
    "landlock": BELOW_PROC,
    "seccomp": {"poked"},
    "notify": {"memory-file-executed"},  # the one that comes as a command
}


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_f5_what_a_layer_stops_alone(try_ways: Payload, layer: str) -> None:
    assert try_ways(LISTED, *all_but(layer)) == STOPPED_ALONE_BY[layer]


MDWE = (
    "import ctypes; libc = ctypes.CDLL(None); print(libc.prctl(66, 0, 0, 0, 0), libc.prctl(65, 0, 0, 0, 0))"
)


def test_the_kernel_s_own_switch_is_on_beside_the_filter(stockade: Payload) -> None:
    """PR_GET_MDWE (66) answers PR_MDWE_REFUSE_EXEC_GAIN (1), and PR_SET_MDWE (65) takes nothing back."""
    closed = stockade([PYTHON, "-c", MDWE], LISTED).out.split()
    if closed[0] == "-1":
        pytest.skip("this kernel is older than 6.3")
    assert closed == ["1", "-1"]
    assert stockade([PYTHON, "-c", MDWE], JIT).out.split()[0] == "0"
    assert stockade([PYTHON, "-c", MDWE], LISTED, extra=["--without-layer=memfd"]).out.split()[0] == "0"


# --- folders of libraries ---------------------------------------------------------------------

IN_A_LIBRARY_FOLDER = "exec: {allow: [python3], libraries: [lib]}\n"
AGAINST_THE_FOLDER = {
    "load-own", "planted", "overwritten", "renamed-into", "linked-into", "made-writable", "removed",
    "run-tool", "load-tool", "moved-aside",
}  # fmt: skip


@pytest.fixture
def library_folder(workspace: Path) -> Path:
    """`lib` in the workspace: a library that was there before the run, and a program that was, too."""
    folder = workspace / "lib"
    folder.mkdir()
    library = sorted(Path("/usr/lib").glob("*/libz.so.1.*"))[0]
    shutil.copy(library, folder / "good.so")
    shutil.copy(library, folder / "doomed.so")
    shutil.copy("/usr/bin/id", folder / "tool")
    return folder


def refused(answers: dict[str, str]) -> set[str]:
    return {name for name, said in answers.items() if said != "done"}


@pytest.mark.parametrize("code", ["closed", "jit"])
def test_a_folder_of_libraries_in_the_workspace_is_loaded_from_and_not_written(
    payload: Payload, library_folder: Path, code: str
) -> None:
    answers, run = payload("libraries.py", IN_A_LIBRARY_FOLDER.replace("}", f", code: {code}}}"))
    assert refused(answers) == AGAINST_THE_FOLDER
    assert answers["planted"] == "errno 30: Read-only file system"
    assert answers["moved-aside"] == "errno 16: Device or resource busy"
    assert "failed to map segment" in answers["load-own"]
    assert sorted(path.name for path in library_folder.iterdir()) == ["doomed.so", "good.so", "tool"]
    (denial,) = [r for r in run.denials(entry="exec") if r["program"] == f"{library_folder}/tool"]
    assert (denial["layer"], denial["risk"]) == ("notify", "boundary-tampering")


@pytest.mark.parametrize(
    ("policy", "layers_off"), [(ANY, ()), (IN_A_LIBRARY_FOLDER, ALL_LAYERS)], ids=["any", "given-up"]
)
def test_the_same_folder_is_open_to_all_of_it_where_nothing_forbids_it(
    payload: Payload, library_folder: Path, policy: str, layers_off: tuple[str, ...]
) -> None:
    answers, _run = payload("libraries.py", policy, *layers_off)
    assert refused(answers) == set()


def test_the_mounts_alone_hold_a_folder_of_libraries(payload: Payload, library_folder: Path) -> None:
    answers, _run = payload("libraries.py", IN_A_LIBRARY_FOLDER, *all_but("mounts"))
    assert refused(answers) == AGAINST_THE_FOLDER


PRELOAD = """
import os, subprocess, sys
for path in sys.argv[1:]:
    seen = f"[line for line in open('/proc/self/maps') if {path!r} in line and 'x' in line.split()[1]]"
    code = f"print(bool({seen}))"
    done = subprocess.run([sys.executable, "-c", code], env={"LD_PRELOAD": path}, capture_output=True)
    print(done.stdout.decode().strip(), b"cannot be preloaded" in done.stderr)
"""


def test_r144_a_preloaded_library_of_the_worker_s_own_is_not_loaded_and_the_system_s_is(
    stockade: Payload, workspace: Path
) -> None:
    system = str(sorted(Path("/usr/lib").glob("*/libz.so.1.*"))[0])
    own = shutil.copy(system, workspace / "own.so")
    run = stockade([PYTHON, "-c", PRELOAD, str(own), system], LISTED)
    assert run.out.splitlines() == ["False True", "True False"]
    anything = stockade([PYTHON, "-c", PRELOAD, str(own), system], ANY)
    assert anything.out.splitlines() == ["True False"] * 2


# --- other names of what may run -----------------------------------------------------------------

# Both files had a second name before the run (an earlier worker can leave one): is writing by it the same?
BY_ANOTHER_NAME = """
import ctypes, os, subprocess
def overwrite(path, source):
    with open(source, "rb") as file: content = file.read()
    try:
        with open(path, "r+b") as file: file.write(content)
    except OSError as error: return f"errno {error.errno}"
    return "written"
print(overwrite("same-tool", "/usr/bin/id"), overwrite("same.so", "/usr/bin/id"),
      overwrite("deep/same.so", "/usr/bin/id"), overwrite("other", "/usr/bin/id"))
print(b"uid=" in subprocess.run(["./tool"], capture_output=True).stdout)
os.rename("deep", "moved")
print(overwrite("moved/same.so", "/usr/bin/id"))
"""
LISTED_BY_NAME = "exec: {allow: [./tool], libraries: [lib]}\n"


@pytest.fixture
def other_names(workspace: Path, library_folder: Path) -> None:
    shutil.copy("/usr/bin/true", workspace / "tool")
    shutil.copy("/usr/bin/true", workspace / "other")
    (workspace / "deep").mkdir()
    os.link(workspace / "tool", workspace / "same-tool")
    os.link(library_folder / "good.so", workspace / "same.so")
    os.link(library_folder / "good.so", workspace / "deep" / "same.so")


@pytest.mark.usefixtures("other_names")
def test_what_may_run_is_not_written_by_another_name_that_it_has(stockade: Payload, workspace: Path) -> None:
    for _again in range(2):  # the second time by what was remembered of the folder
        run = stockade([PYTHON, "-c", BY_ANOTHER_NAME], LISTED_BY_NAME, extra=["--write", "."])
        written, ran, moved = run.out.splitlines()
        assert written == "errno 30 errno 30 errno 30 written"  # EROFS
        assert (ran, moved) == ("False", "errno 30")
        (workspace / "moved").rename(workspace / "deep")
    plan = stockade([PYTHON], LISTED_BY_NAME, extra=["--write", ".", "--dry-run"]).out
    for name in ("same-tool", "same.so", "deep/same.so"):
        assert f"read-only, another name of what may run: {workspace}/{name}\n" in plan
    assert f"{workspace}/other" not in plan


@pytest.mark.usefixtures("other_names")
def test_the_other_name_is_a_way_in_where_the_mounts_are_given_up(stockade: Payload) -> None:
    extra = ["--write", ".", "--without-layer=mounts"]
    run = stockade([PYTHON, "-c", BY_ANOTHER_NAME], LISTED_BY_NAME, extra=extra)
    assert run.out.splitlines() == ["written written written written", "True", "written"]


# --- the record of what is repeated ------------------------------------------------------------

REPEATED = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(40): libc.memfd_create(b"x", 0)
for _ in range(3): libc.personality(ctypes.c_ulong(8))
for _ in range(7): libc.unshare(0x10000000)
for _ in range(7): subprocess.run(["unshare", "-U", "true"], stderr=subprocess.DEVNULL)
print(os.getpid(), flush=True)
if sys.argv[1:]: os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("killed", [(), ("killed",)], ids=["ends", "is-killed"])
def test_equal_calls_of_one_program_are_written_five_times_and_then_counted_to_the_last(
    stockade: Payload, killed: tuple[str, ...]
) -> None:
    run = stockade([PYTHON, "-c", REPEATED, *killed], "exec: {allow: [unshare]}\n")
    assert run.code == (137 if killed else 0)
    python, tool = os.path.realpath(PYTHON), "/usr/bin/unshare"
    counts = {
        (python, "memfd_create(0)"): [1] * 5 + [35],
        (python, "personality(0x8)"): [1] * 3,
        (python, "unshare(CLONE_NEWUSER)"): [1] * 5 + [2],
        (tool, "unshare(CLONE_NEWUSER)"): [1] * 5 + [2],
    }
    for (program, call), wanted in counts.items():
        found = [record for record in run.denials(entry="exec", call=call) if record["program"] == program]
        assert [record.get("repeated", 1) for record in found] == wanted
    own = run.denials(entry="exec", call="memfd_create(0)")
    assert {record["pid"] for record in own} == {int(run.out)}


MANY_KINDS = """
import ctypes
libc = ctypes.CDLL(None)
for number in range(1, 701): libc.personality(ctypes.c_ulong(number << 8))
print("went on")
"""


def test_calls_of_more_kinds_than_are_kept_apart_are_still_counted_to_the_last(stockade: Payload) -> None:
    run = stockade([PYTHON, "-c", MANY_KINDS], LISTED)
    assert run.out == "went on\n"
    found = [r for r in run.denials(entry="exec") if r.get("call", "").startswith("personality(")]
    assert len({record["call"] for record in found}) >= 500
    assert sum(record.get("repeated", 1) for record in found) == 700
