"""The system-call filter under the real kernel: every line's calls, tried by a worker.

Three runs of the same calls pair each "cannot" with a "can". In the product's sandbox the
table's errno comes back. In one without the filter's layers the kernel's own answer does, or
the call is made. There again, with the table compiled to answer EL2HLT, that comes back for
exactly the calls that a line covers: an errno that nothing else gives, so the refusal is ours.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kernel_steps import Contained
from msgspec.structs import replace

from doubles.filter_calls import AUDIT, ENOSYS, HIGH, LINES, Call, numbered
from stockade.sandbox.filter import FilterTable, FilterWish, compile_filter, find_refusal, load_filter_table

MACHINE = os.uname().machine
PAYLOAD = Path(__file__).with_name("system_calls_payload.py").read_text()
LISTED = ("--exec", "listed")
BARE = ("--without-layer", "seccomp", "--without-layer", "memfd", "--without-layer", "notify")
EL2HLT = "51"
TABLE = load_filter_table()
UNRECORDED = {"openat2", "kcmp", "clone3"}

# What the kernel itself refuses to any worker, here or on other hosts, with the errno of our line: it takes a
# capability, or a setting has switched it off. There only the mark tells whose answer it is.
_BOTH = """another-kernel bpf file-watch host-disks host-names io-uring kernel-log kernel-modules
    memory-file-secret performance-events userfaultfd"""
ALSO_THE_KERNEL_S = set(_BOTH.split())

pytestmark = pytest.mark.skipif(MACHINE not in AUDIT, reason="no table for this machine")


def tried_calls() -> list[tuple[str, bool, Call]]:
    """(line, is refused, call) for all examples; what would share our memory is left to the unit tests."""
    found = []
    for name, line in LINES.items():
        calls = [(True, call) for call in line.refused] + [(False, call) for call in line.passed]
        for is_refused, call in calls:
            shares_memory = call[0] == "clone" and int(call[1]) & 0x100
            if numbered(MACHINE, call)[0] is not None and not shares_memory:
                found.append((name, is_refused, call))
    return found


TRIED = tried_calls()


def wish_of(name: str, *, watch: bool = False) -> FilterWish:
    return FilterWish(code="jit" if name == "memory-file-unsealed" else "closed", watch=watch)


def marked() -> FilterTable:
    """The table with an errno that neither the kernel nor a library gives."""
    return replace(TABLE, refusals=tuple(replace(line, errno="EL2HLT") for line in TABLE.refusals))


def run_payload(
    contained: Contained,
    calls: Sequence[Call],
    *,
    program: bytes = b"",
    watch: bool = False,
    options: tuple[str, ...] = (),
) -> dict[str, Any]:
    asked = {"calls": [numbered(MACHINE, call) for call in calls], "filter": program.hex(), "watch": watch}
    result = contained.python(PAYLOAD, options=options, stdin=json.dumps(asked).encode())
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Contained]:
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        work = Path(folder).resolve() / "work"
        work.mkdir()
        yield Contained(work)


Answers = dict[tuple[str, Call], str]


def answers_at(
    sandbox: Contained, code: str, *, options: tuple[str, ...] = (), program: bytes = b""
) -> Answers:
    at = [(name, call) for name, _, call in TRIED if wish_of(name).code == code]
    found = run_payload(sandbox, [call for _, call in at], program=program, options=options)
    return dict(zip(at, found["results"], strict=True))


@pytest.fixture(scope="module")
def in_product(sandbox: Contained) -> Answers:
    jit = answers_at(sandbox, "jit", options=(*LISTED, "--code", "jit"))
    return answers_at(sandbox, "closed", options=LISTED) | jit


@pytest.fixture(scope="module")
def unfiltered(sandbox: Contained) -> Answers:
    return answers_at(sandbox, "closed", options=BARE) | answers_at(sandbox, "jit", options=BARE)


@pytest.fixture(scope="module")
def with_mark(sandbox: Contained) -> Answers:
    found: Answers = {}
    for code in ("closed", "jit"):
        program = compile_filter(marked(), MACHINE, FilterWish(code=code))  # type: ignore[arg-type]
        found |= answers_at(sandbox, code, options=BARE, program=program)
    return found


each_line = pytest.mark.parametrize("name", sorted({name for name, _, _ in TRIED}))


@each_line
def test_every_line_holds_in_a_sandbox(name: str, in_product: Answers) -> None:
    for line, is_refused, call in TRIED:
        if line == name and is_refused:
            assert in_product[line, call] == str(LINES[name].errno), call


@each_line
def test_a_refusal_is_the_line_s_own_and_the_nearest_calls_pass(name: str, with_mark: Answers) -> None:
    for line, is_refused, call in TRIED:
        if line == name:
            assert (with_mark[line, call] == EL2HLT) is is_refused, call


@each_line
def test_calls_of_a_line_arrive_without_the_filter(name: str, unfiltered: Answers) -> None:
    own = {unfiltered[line, call] for line, is_refused, call in TRIED if line == name and is_refused}
    assert EL2HLT not in own
    if name not in ALSO_THE_KERNEL_S:
        assert own != {str(LINES[name].errno)}


def test_high_bits_that_the_kernel_ignores_change_nothing(sandbox: Contained) -> None:
    low = [call for name, is_refused, call in TRIED if is_refused and wish_of(name).code == "closed"]
    high = [(call[0], *(int(argument) | HIGH for argument in call[1:])) for call in low]
    program = compile_filter(marked(), MACHINE, FilterWish())
    found = run_payload(sandbox, high, program=program, options=BARE)["results"]
    assert set(found) == {EL2HLT}, dict(zip(high, found, strict=True))


def test_the_kernel_holds_a_watched_call_and_the_supervisor_reads_it_right(sandbox: Contained) -> None:
    at = [
        (name, call)
        for name, is_refused, call in TRIED
        if is_refused and name not in UNRECORDED and wish_of(name).code == "closed"
    ]
    wish = FilterWish(watch=True)
    program = compile_filter(TABLE, MACHINE, wish)
    found = run_payload(sandbox, [call for _, call in at], program=program, watch=True, options=BARE)
    assert found["results"] == [EL2HLT] * len(at)
    names = []
    for number, arch, *arguments in found["held"]:
        line = find_refusal(TABLE, MACHINE, wish, arch, number, tuple(arguments))
        names.append(line and line.name)
    assert names == [name for name, _ in at]
    assert found["second"] == "16"  # EBUSY: nobody inside gets a listener of his own


def test_an_unrecorded_line_does_not_wait_even_while_watched(sandbox: Contained) -> None:
    calls: list[Call] = [call for name, _, call in TRIED if name in UNRECORDED]
    program = compile_filter(TABLE, MACHINE, FilterWish(watch=True))
    found = run_payload(sandbox, calls, program=program, watch=True, options=BARE)
    assert found["held"] == []
    assert set(found["results"]) == {"1", str(ENOSYS)}


def test_unix_sockets_come_with_the_policy_s_word_for_them(sandbox: Contained) -> None:
    calls: list[Call] = [("socket", 1, 1, 0), ("socket", 40, 1, 0)]
    assert run_payload(sandbox, calls)["results"] == ["97", "97"]
    assert run_payload(sandbox, calls, options=("--unix-sockets",))["results"] == ["made", "97"]


MEMORY: list[Call] = [("mmap", 0, 4096, 7, 0x22), ("memfd_create", 0, 8), ("personality", 0x40000)]


def test_levels_and_layers_close_what_they_say(sandbox: Contained) -> None:
    # memfd_create of no name: EFAULT (14) says that it arrived
    assert run_payload(sandbox, MEMORY, options=LISTED)["results"] == ["13", "38", "1"]
    assert run_payload(sandbox, MEMORY, options=(*LISTED, "--code", "jit"))["results"] == ["made", "14", "1"]
    for given_up in (("--exec", "any"), (*LISTED, "--without-layer", "memfd")):
        assert run_payload(sandbox, MEMORY, options=given_up)["results"] == ["made", "14", "made"]
        assert run_payload(sandbox, [("ptrace", 16, 0)], options=given_up)["results"] == ["1"]
    without_calls = (*LISTED, "--without-layer", "seccomp")
    assert run_payload(sandbox, MEMORY, options=without_calls)["results"] == ["13", "38", "1"]
    assert run_payload(sandbox, [("ptrace", 16, 0)], options=without_calls)["results"] == ["3"]


# --- the ways that code gets into memory, whole ------------------------------------------------

# Machine code that returns 42, or exits with 42 as a program of its own, put into memory and run.
WAYS = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for call in (libc.mmap, libc.shmat): call.restype = ctypes.c_void_p
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
CODE = {"x86_64": "b82a000000c3", "aarch64": "40058052c0035fd6"}[os.uname().machine]
CODE = bytes.fromhex(CODE)
def run(address):
    if address in (None, 2**64 - 1): raise OSError(ctypes.get_errno(), "no memory")
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()
def mapped(protection, flags, fd=-1):
    return libc.mmap(None, 4096, protection, flags, fd, ctypes.c_long(0))
def put(address):
    if address in (None, 2**64 - 1): raise OSError(ctypes.get_errno(), "no memory")
    ctypes.memmove(address, CODE, len(CODE)); return address
def writable_and_executable(): return run(put(mapped(7, 0x22)))
def write_then_execute():
    at = put(mapped(3, 0x22))
    if libc.mprotect(at, 4096, 5): raise OSError(ctypes.get_errno(), "mprotect")
    return run(at)
def shared_memory():
    key = libc.shmget(0, 4096, 0o1700)
    first = put(libc.shmat(key, None, 0)); second = libc.shmat(key, None, 0o110000)
    libc.shmctl(key, 0, None)
    return run(second)
def read_implies_execute():
    if libc.personality(ctypes.c_ulong(0x400000)) < 0: raise OSError(ctypes.get_errno(), "personality")
    return run(put(mapped(3, 0x22)))
def memory_file_mapped():
    fd = libc.memfd_create(b"x", 8)
    if fd < 0: raise OSError(ctypes.get_errno(), "memfd")
    os.write(fd, CODE + bytes(4096 - len(CODE)))
    return run(mapped(5, 2, fd))
def memory_file_executed(flags=0):
    fd = libc.memfd_create(b"x", flags)
    if fd < 0: raise OSError(ctypes.get_errno(), "memfd")
    os.write(fd, open("/usr/bin/true", "rb").read())
    pid = os.fork()
    if pid == 0:
        try: os.execve(fd, ["true"], {})
        except OSError as error: os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code: raise OSError(code, "execve")
    return 42
def sealed_memory_file_executed(): return memory_file_executed(8)
for way in (writable_and_executable, write_then_execute, shared_memory, read_implies_execute,
            memory_file_mapped, memory_file_executed, sealed_memory_file_executed):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try: said = f"ran {way()}"
        except OSError as error: said = f"errno {error.errno}"
        print(way.__name__, said, flush=True); os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status: print(way.__name__, "died of", -status, flush=True)
"""


def ways(sandbox: Contained, *options: str) -> dict[str, str]:
    result = sandbox.python(WAYS, options=options)
    assert result.code == 0, result.err
    return dict(line.split(" ", 1) for line in result.out.splitlines())


def test_f5_no_native_code_is_made_in_memory_at_level_closed(sandbox: Contained) -> None:
    assert ways(sandbox, *LISTED) == {
        "writable_and_executable": "errno 13",
        "write_then_execute": "errno 13",
        "shared_memory": "errno 13",
        "read_implies_execute": "errno 1",
        "memory_file_mapped": "errno 38",
        "memory_file_executed": "errno 38",
        "sealed_memory_file_executed": "errno 38",
    }


def test_f3_at_level_jit_code_is_made_but_no_program_runs_from_memory(sandbox: Contained) -> None:
    found = ways(sandbox, *LISTED, "--code", "jit")
    assert found["writable_and_executable"] == found["write_then_execute"] == "ran 42"
    assert found["memory_file_executed"] == "errno 38"
    assert found["sealed_memory_file_executed"] == "errno 13"  # the kernel's own answer to MFD_NOEXEC_SEAL


def test_the_same_ways_all_run_without_the_layer(sandbox: Contained) -> None:
    found = ways(sandbox, *LISTED, "--without-layer", "memfd")
    assert found.pop("sealed_memory_file_executed") == "errno 13"
    assert set(found.values()) == {"ran 42"}, found
