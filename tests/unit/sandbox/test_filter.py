"""The filter, run one instruction after the other as the kernel would, on calls with known answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from doubles.filter_calls import (
    ARM,
    AUDIT,
    HIGH,
    I386,
    LINES,
    NUMBERS,
    ORDINARY,
    X86,
    Call,
    numbered,
    run_program,
)
from stockade.decision.labels import REFUSAL_CONTROL
from stockade.errors import HostError
from stockade.policy.load import load_policy_text
from stockade.sandbox import bpf
from stockade.sandbox import filter as filter_module
from stockade.sandbox.filter import (
    Condition,
    FilterTable,
    FilterWish,
    Refusal,
    compile_filter,
    describe_call,
    find_permit,
    find_refusal,
    is_command,
    load_filter_table,
)
from stockade.vocabulary import Reason

ALLOW, NOTIFY, ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000  # linux/seccomp.h
ENOSYS = 38
MACHINES = ("x86_64", "aarch64")
TABLE = load_filter_table()
WISHES = (
    FilterWish(),
    FilterWish(code="jit"),
    FilterWish(code="any"),
    FilterWish(watch=True),
    FilterWish(unix_sockets=True),
    FilterWish(code="jit", unix_sockets=True),
    FilterWish(refuse_calls=False),
    FilterWish(refuse_memory_code=False),
    FilterWish(code="jit", refuse_calls=False, watch=True),
)
PROGRAMS = {(machine, wish): compile_filter(TABLE, machine, wish) for machine in MACHINES for wish in WISHES}

# Written by hand from what the table promises, so that a change of it is a change here.
UNRECORDED = {"openat2", "kcmp", "clone3"}
COMMON = {"unix-sockets", "netlink-protocols", "io-uring", "memory-file", "memory-file-unsealed"}
SOCKET_LINES = {"socket-families", "socketpair-families", "internet-protocols", "netlink-protocols"}
MEMORY_LINES = {
    "memory-file",
    "memory-file-unsealed",
    "memory-file-secret",
    "shared-memory-code",
    "personality",
    "anonymous-code",
    "writable-code",
    "changed-code",
}


def judge(machine: str, call: Call, wish: FilterWish = WISHES[0]) -> int | None:
    """The kernel's answer to a call by name; None if the machine has no such call."""
    number, arguments = numbered(machine, call)
    if number is None:
        return None
    return run_program(PROGRAMS[machine, wish], AUDIT[machine], number, arguments)[0]


def wish_of(name: str) -> FilterWish:
    return FilterWish(code="jit") if name == "memory-file-unsealed" else FilterWish()


def of_machine(machine: str, calls: tuple[Call, ...]) -> Iterator[Call]:
    return (call for call in calls if numbered(machine, call)[0] is not None)


each_line = pytest.mark.parametrize("name", sorted(LINES))
each_machine = pytest.mark.parametrize("machine", MACHINES)


def test_every_line_has_its_calls_here_and_every_call_a_line() -> None:
    assert {line.name for line in TABLE.refusals} == set(LINES)
    for line in TABLE.refusals:
        assert set(line.calls) == {call[0] for call in LINES[line.name].refused}, line.name


@each_line
@each_machine
def test_a_line_refuses_its_calls_whatever_the_high_bits(machine: str, name: str) -> None:
    line = LINES[name]
    for call in of_machine(machine, line.refused):
        high = (call[0], *(int(argument) | HIGH for argument in call[1:]))
        for tried in (call, high):
            assert judge(machine, tried, wish_of(name)) == ERRNO | line.errno, tried


@each_line
@each_machine
def test_the_nearest_calls_pass_whatever_the_high_bits(machine: str, name: str) -> None:
    for call in of_machine(machine, LINES[name].passed):
        high = (call[0], *(int(argument) | HIGH for argument in call[1:]))
        for tried in (call, high):
            assert judge(machine, tried, wish_of(name)) == ALLOW, tried


@each_machine
def test_the_neighbors_of_a_refused_number_pass(machine: str) -> None:
    named = set(TABLE.architectures[machine].numbers.values())
    beside = {n + step for n in named for step in (-1, 1)} - named - {-1, 470}
    assert len(beside) > 30
    for wish in WISHES:
        for number in beside:
            assert run_program(PROGRAMS[machine, wish], AUDIT[machine], number, (0,) * 6)[0] == ALLOW


@each_machine
def test_ordinary_calls_and_those_of_the_stage_pass_at_every_level(machine: str) -> None:
    for wish in WISHES:
        for name in ORDINARY:
            watched = wish.watch and name in ("execve", "execveat")
            expected = (None, NOTIFY if watched else ALLOW)
            for arguments in ((0,) * 6, (0xFFFFFFFFFFFFFFFF,) * 6):
                assert judge(machine, (name, *arguments), wish) in expected, (name, wish)


@each_line
def test_a_line_holds_at_its_levels_in_its_layer_and_not_beside_them(name: str) -> None:
    table = replace(TABLE, refusals=tuple(line for line in TABLE.refusals if line.name == name))
    layer = "memfd" if name in MEMORY_LINES else "seccomp"
    for code in ("closed", "jit", "any"):
        for calls, memory in ((True, True), (True, False), (False, True)):
            wish = FilterWish(code=code, refuse_calls=calls, refuse_memory_code=memory)  # type: ignore[arg-type]
            is_up = (calls if layer == "seccomp" else memory) and code in LINES[name].codes
            for machine in MACHINES:
                for number, arguments in (
                    numbered(machine, call) for call in of_machine(machine, LINES[name].refused)
                ):
                    assert number is not None
                    program = compile_filter(table, machine, wish)
                    answer = run_program(program, AUDIT[machine], number, arguments)[0]
                    assert (answer != ALLOW) is is_up, (machine, wish)
                    break  # one call of each line and level: the others are the same code


def test_level_any_has_no_memory_layer_and_jit_closes_less_than_closed() -> None:
    assert {line.name for line in TABLE.refusals if line.layer == "memfd"} == MEMORY_LINES
    assert not any("any" in line.codes for line in TABLE.refusals if line.layer == "memfd")
    assert judge("x86_64", ("mmap", 0, 4096, 7, 0x22), FilterWish(code="jit")) == ALLOW
    assert judge("x86_64", ("mprotect", 0, 4096, 5), FilterWish(code="any")) == ALLOW
    assert judge("x86_64", ("memfd_create", 0, 0), FilterWish(code="any")) == ALLOW


def test_unix_sockets_are_granted_by_the_policy_and_other_families_are_not() -> None:
    granted = FilterWish(unix_sockets=True)
    assert judge("x86_64", ("socket", 1, 1, 0), granted) == ALLOW
    assert judge("x86_64", ("socket", 40, 1, 0), granted) == ERRNO | 97
    assert [line.name for line in TABLE.refusals if line.granted_by] == ["unix-sockets"]


# --- the eye ---------------------------------------------------------------------------------


@each_line
@each_machine
def test_with_the_eye_on_a_recorded_line_waits_for_the_supervisor(machine: str, name: str) -> None:
    line = LINES[name]
    wish = FilterWish(code="jit", watch=True) if name == "memory-file-unsealed" else FilterWish(watch=True)
    program = compile_filter(TABLE, machine, wish)
    for number, arguments in (numbered(machine, call) for call in of_machine(machine, line.refused)):
        assert number is not None
        answer = run_program(program, AUDIT[machine], number, arguments)[0]
        assert answer == (ERRNO | line.errno if name in UNRECORDED else NOTIFY)


@each_machine
def test_execve_waits_only_while_the_eye_is_on(machine: str) -> None:
    for name in ("execve", "execveat"):
        assert judge(machine, (name, 1, 2, 3)) == ALLOW
        assert judge(machine, (name, 1, 2, 3), FilterWish(watch=True)) == NOTIFY


def test_the_labels_of_the_lines() -> None:
    lines = {line.name: line for line in TABLE.refusals}
    assert {name for name, line in lines.items() if not line.record} == UNRECORDED
    assert {name for name, line in lines.items() if line.common} == COMMON
    for name, line in lines.items():
        expected = (
            Reason.CONTROL_SOCKET
            if name == "unix-sockets"
            else Reason.SOCKET_FAMILY_REFUSED
            if name in SOCKET_LINES
            else Reason.CODE_IN_MEMORY
            if name in MEMORY_LINES
            else Reason.SYSTEM_CALL_REFUSED
        )
        assert line.reason is expected, name
        assert len(line.why) > 20, name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", line.name)


# --- other conventions -----------------------------------------------------------------------


@pytest.mark.parametrize("wish", WISHES)
def test_another_architecture_gets_no_call_whatever_its_number(wish: FilterWish) -> None:
    expected = NOTIFY if wish.watch else ERRNO | ENOSYS
    for machine, arch in (("x86_64", I386), ("aarch64", 0x40000028), ("x86_64", ARM), ("aarch64", X86)):
        for number in (0, 1, 11, 41, 59, 198, 221, 359):
            assert run_program(PROGRAMS[machine, wish], arch, number, (2, 1, 0, 0, 0, 0))[0] == expected
    assert run_program(PROGRAMS["x86_64", wish], X86, 0, (0,) * 6)[0] == ALLOW


@pytest.mark.parametrize("wish", WISHES)
def test_x32_numbers_get_no_call(wish: FilterWish) -> None:
    expected = NOTIFY if wish.watch else ERRNO | ENOSYS
    for number in (0x40000000, 0x40000000 | 41, 0x40000000 | 520, 0x7FFFFFFF, 0xFFFFFFFF):
        assert run_program(PROGRAMS["x86_64", wish], X86, number, (0,) * 6)[0] == expected


def test_arm64_has_no_such_bit_and_large_numbers_there_are_newer_ones() -> None:
    assert run_program(PROGRAMS["aarch64", WISHES[0]], ARM, 0x40000000 | 63, (0,) * 6)[0] == ERRNO | ENOSYS
    found = find_refusal(TABLE, "aarch64", WISHES[0], ARM, 0x40000000 | 63, (0,) * 6)
    assert found is TABLE.newer


@each_machine
def test_calls_that_did_not_exist_yet_are_absent_without_a_record(machine: str) -> None:
    # file_setattr is 469, the last of Linux 6.18; 512 to 547 are x32's own numbers without its bit
    for wish in WISHES:
        program, arch = PROGRAMS[machine, wish], AUDIT[machine]
        assert run_program(program, arch, 469, (0,) * 6)[0] == ALLOW
        for number in (470, 512, 520, 547, 1000, 0x3FFFFFFF):
            absent = ERRNO | ENOSYS if wish.refuse_calls else ALLOW
            assert run_program(program, arch, number, (0,) * 6)[0] == absent


# --- the same in Python ----------------------------------------------------------------------


def expected_answer(
    machine: str, wish: FilterWish, arch: int, number: int, arguments: tuple[int, ...]
) -> int:
    line = find_refusal(TABLE, machine, wish, arch, number, arguments)
    if line is not None:
        return NOTIFY if wish.watch and line.record else ERRNO | line.errno_number
    is_exec = number in (numbered(machine, ("execve",))[0], numbered(machine, ("execveat",))[0])
    return NOTIFY if wish.watch and is_exec else ALLOW


NUMBER = st.one_of(
    st.integers(0, 475),
    st.sampled_from([n for both in NUMBERS.values() for n in both if n is not None]),
    st.sampled_from([0x40000000 | 41, 512, 2**31, 2**32 - 1]),
)
ARGUMENT = st.one_of(
    st.integers(0, 64),
    st.sampled_from([int(a) for line in LINES.values() for call in line.refused for a in call[1:]]),
    st.integers(0, 2**64 - 1),
)


@settings(max_examples=1000)
@given(
    st.sampled_from(MACHINES),
    st.sampled_from(WISHES),
    st.sampled_from([X86, ARM, I386]),
    NUMBER,
    st.tuples(*[ARGUMENT] * 6),
)
def test_the_supervisor_reads_a_call_as_the_kernel_does(
    machine: str, wish: FilterWish, arch: int, number: int, arguments: tuple[int, ...]
) -> None:
    answer = run_program(PROGRAMS[machine, wish], arch, number, arguments)[0]
    assert answer == expected_answer(machine, wish, arch, number, arguments)


@each_machine
def test_the_supervisor_names_the_line(machine: str) -> None:
    for name, line in LINES.items():
        for call in of_machine(machine, line.refused):
            number, arguments = numbered(machine, call)
            assert number is not None
            found = find_refusal(TABLE, machine, wish_of(name), AUDIT[machine], number, arguments)
            assert found is not None
            assert (found.name, found.errno_number) == (name, line.errno)


def test_a_foreign_call_is_named_too() -> None:
    for arch, number in ((I386, 359), (X86, 0x40000000 | 41), (X86, -1)):
        found = find_refusal(TABLE, "x86_64", FilterWish(watch=True), arch, number, (0,) * 6)
        assert found is not None
        assert (found.name, found.errno_number, found.record) == ("foreign-call", ENOSYS, True)


def test_an_empty_wish_has_no_filter() -> None:
    nothing = FilterWish(refuse_calls=False, refuse_memory_code=False)
    assert compile_filter(TABLE, "x86_64", nothing) == b""
    assert find_refusal(TABLE, "x86_64", nothing, I386, 59, (0,) * 6) is None
    assert compile_filter(TABLE, "x86_64", replace(nothing, watch=True)) != b""


@pytest.mark.parametrize(
    ("call", "permit"),
    [
        (("socket", 1, 1, 0), "exec: {unix-sockets: true}"),
        (("socket", 40, 1, 0), None),
        (("ptrace", 16, 1), None),
        (("mmap", 0, 4096, 7, 0x22), "exec: {code: jit}"),
        (("mprotect", 0, 4096, 5), "exec: {code: jit}"),
        (("shmat", 0, 0, 0o100000), "exec: {code: jit}"),
        (("memfd_create", 0, 8), "exec: {code: jit}"),
        (("memfd_create", 0, 0), None),  # at jit it is refused as well
        (("personality", 0x400000), None),
    ],
)
def test_what_would_permit_a_call(call: Call, permit: str | None) -> None:
    number, arguments = numbered("x86_64", call)
    assert number is not None
    assert find_permit(TABLE, "x86_64", FilterWish(), X86, number, arguments) == permit


@pytest.mark.parametrize("call", [("socket", 1, 1, 0), ("mmap", 0, 4096, 7, 0x22)])
def test_the_offered_key_loads_and_the_call_then_passes(call: Call) -> None:
    number, arguments = numbered("x86_64", call)
    assert number is not None
    offer = find_permit(TABLE, "x86_64", FilterWish(), X86, number, arguments)
    opened = load_policy_text(f"version: 1\n{offer}", "policy.yaml").exec
    assert opened is not None
    wish = FilterWish(code=opened.code, unix_sockets=opened.unix_sockets)
    assert run_program(compile_filter(TABLE, "x86_64", wish), X86, number, arguments)[0] == ALLOW


def test_nothing_is_offered_that_is_granted_already() -> None:
    number, arguments = numbered("x86_64", ("memfd_create", 0, 0))
    assert number is not None
    wish = FilterWish(code="jit", unix_sockets=True)
    assert find_permit(TABLE, "x86_64", wish, X86, number, arguments) is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("socket", 40, 1, 0), "socket(AF_VSOCK, SOCK_STREAM, 0)"),
        (("socket", 40 | HIGH, 1, 0), "socket(AF_VSOCK+0x100000000, SOCK_STREAM, 0)"),
        (("socket", 2, 3 | 0o2000000, 1), "socket(AF_INET, SOCK_RAW, 1)"),
        (("socket", 2, 1, 262), "socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP)"),
        (("socket", 99, 77, 5), "socket(99, 13, 5)"),
        (("memfd_create", 0xDEAD, 0), "memfd_create(0)"),
        (("memfd_create", 0xDEAD, 0x20), "memfd_create(0x20)"),
        (("memfd_create", 0xDEAD, 9), "memfd_create(MFD_CLOEXEC|MFD_NOEXEC_SEAL)"),
        (("ptrace", 16, 7), "ptrace(PTRACE_ATTACH, 7)"),
        (("ptrace", 0x4209, 7), "ptrace(16905, 7)"),
        (("ioctl", 0, 0x5412), "ioctl(TIOCSTI)"),
        (("clone", 0x10020011), "clone(CLONE_NEWNS|CLONE_NEWUSER)"),
        (("unshare", 0x10000080), "unshare(CLONE_NEWTIME|CLONE_NEWUSER)"),
        (("openat", 0, 0, 0o102, 0o4755), "openat(0o4755)"),
        (("mmap", 0, 4096, 7, 0x22), "mmap(PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS)"),
        (("mprotect", 0, 4096, 0x1000005), "mprotect(PROT_READ|PROT_EXEC|0x1000000)"),
        (("bpf", 5), "bpf"),
    ],
)
def test_a_call_in_words(call: Call, text: str) -> None:
    number, arguments = numbered("x86_64", call)
    assert number is not None
    assert describe_call(TABLE, "x86_64", number, arguments, X86) == text


def test_calls_without_a_name_of_their_own_in_words() -> None:
    none = (0,) * 6
    assert describe_call(TABLE, "x86_64", 39, none) == "number 39"
    assert describe_call(TABLE, "x86_64", 0x40000000 | 41, none) == "number 41 by the x32 convention"
    assert (
        describe_call(TABLE, "x86_64", 359, none, I386) == "number 359 of another architecture (0x40000003)"
    )


# --- the table -------------------------------------------------------------------------------


@each_machine
def test_the_numbers_are_the_kernel_s_and_each_is_used(machine: str) -> None:
    numbers = TABLE.architectures[machine].numbers
    place = MACHINES.index(machine)
    used = {call for line in TABLE.refusals for call in line.calls} | {"execve", "execveat"}
    assert numbers == {
        name: both[place] for name, both in NUMBERS.items() if name in used and both[place] is not None
    }
    assert set(TABLE.shown) <= used


def test_the_numbers_agree_with_the_headers_that_are_installed() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("no kernel headers here")
    words = [line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR_")]
    installed = {name.removeprefix("__NR_"): int(number) for _, name, number in words}
    shared = {name: both[0] for name, both in NUMBERS.items() if name in installed}
    assert len(shared) > 100
    assert shared == {name: installed[name] for name in shared}


def answers(table: FilterTable, calls: list[Call]) -> list[tuple[str, bool, str, int] | None]:
    """What becomes of calls on both machines and under every wish, as the supervisor sees it."""
    found: list[tuple[str, bool, str, int] | None] = []
    for machine in MACHINES:
        for call in calls:
            number, arguments = numbered(machine, call)
            for wish in WISHES if number is not None else ():
                assert number is not None
                line = find_refusal(table, machine, wish, AUDIT[machine], number, arguments)
                found.append(line and (line.name, line.record, line.reason.value, line.errno_number))
    return found


def changed_tests(tests: tuple[Condition, ...]) -> Iterator[tuple[str, tuple[Condition, ...]]]:
    """Every test left out, on another argument, and with each bit and value left out, added or shifted."""
    for at, test in enumerate(tests):
        for text, other in changed_test(test):
            yield text, (*tests[:at], *other, *tests[at + 1 :])


def changed_test(test: Condition) -> Iterator[tuple[str, tuple[Condition, ...]]]:
    yield "left out", ()
    for arg in {max(test.arg - 1, 0), test.arg + 1} - {test.arg}:
        yield f"asks argument {arg}", (replace(test, arg=arg),)
    for value in test.is_:
        rest = tuple(other for other in test.is_ if other != value)
        yield f"without {value}", (replace(test, is_=rest or (0xDEAD,)),)
        if value + 1 & test.mask == value + 1 and value + 1 not in test.is_:
            yield f"with {value + 1}", (replace(test, is_=(*test.is_, value + 1)),)
    if test.is_ and test.mask == 0xFFFFFFFF:
        yield "without bit 31", (replace(test, mask=0x7FFFFFFF),)
    if test.mask != 0xFFFFFFFF:
        yield "unmasked", (replace(test, mask=0xFFFFFFFF),)
        for bit in bits(test.mask):
            yield f"masked without {bit:#x}", (replace(test, mask=test.mask & ~bit),)
    if test.has:
        around = {max(bits(test.has)) << 1, min(bits(test.has)) >> 1} & set(bits(0xFFFFFFFF))
        for bit in bits(test.has):
            yield f"without {bit:#x}", (replace(test, has=test.has & ~bit or 1 << 30),)
        for bit in around:
            yield f"with {bit:#x}", (replace(test, has=test.has | bit),)


def bits(number: int) -> list[int]:
    return [1 << place for place in range(32) if number >> place & 1]


def changed_lines(line: Refusal) -> Iterator[tuple[str, Refusal]]:
    for call in line.calls:
        yield f"without {call}", replace(line, calls=tuple(other for other in line.calls if other != call))
    yield "another errno", replace(line, errno="EINTR")
    yield "the other kind of record", replace(line, record=not line.record)
    yield "another layer", replace(line, layer="memfd" if line.layer == "seccomp" else "seccomp")
    yield "granted", replace(line, granted_by="" if line.granted_by else "unix-sockets")
    for code in line.codes:
        yield f"not at {code}", replace(line, codes=tuple(other for other in line.codes if other != code))
    for text, tests in changed_tests(line.when):
        yield f"when: {text}", replace(line, when=tests)
    for text, tests in changed_tests(line.unless):
        yield f"unless: {text}", replace(line, unless=tests)


# Families that these lines would take in are refused by the line of families, which stands before them.
NO_DIFFERENCE = {
    ("internet-protocols", "when: with 3"),
    ("internet-protocols", "when: with 11"),
    ("internet-protocols", "when: without bit 31"),
    ("netlink-protocols", "when: with 17"),
    ("netlink-protocols", "when: without bit 31"),
    ("unix-sockets", "when: without bit 31"),
}


@each_line
def test_no_line_is_dead_and_every_change_of_one_shows(name: str) -> None:
    line = next(line for line in TABLE.refusals if line.name == name)
    calls = [
        call
        for example in LINES.values()
        for call in (*example.refused, *example.passed)
        if call[0] in line.calls
    ]
    now = answers(TABLE, calls)

    def with_line(*other: Refusal) -> FilterTable:
        at = TABLE.refusals.index(line)
        return replace(TABLE, refusals=(*TABLE.refusals[:at], *other, *TABLE.refusals[at + 1 :]))

    assert answers(with_line(), calls) != now, "dead: without it all stays the same"
    for text, other in changed_lines(line):
        if (name, text) not in NO_DIFFERENCE:
            assert answers(with_line(other), calls) != now, text


def test_every_line_can_become_a_record() -> None:
    for line in (*TABLE.refusals, TABLE.foreign, TABLE.newer):
        assert line.reason in REFUSAL_CONTROL, line.name
        is_about_sockets = "socket" in line.calls or "socketpair" in line.calls
        expected = ("socket", "socket") if is_about_sockets else ("exec", "exec")
        assert (str(line.entry), str(line.protocol)) == expected, line.name


def test_a_command_is_told_from_other_calls_by_number_and_architecture() -> None:
    for machine, arch, both in (("x86_64", X86, (59, 322)), ("aarch64", ARM, (221, 281))):
        found = [n for n in range(470) if is_command(TABLE, machine, arch, n)]
        assert tuple(found) == both
        assert [n for n in range(470) if is_command(TABLE, machine, arch, n, at=True)] == [both[1]]
        assert not is_command(TABLE, machine, I386, both[0])


def test_a_misspelt_key_or_word_of_the_table_is_found_when_it_is_read(tmp_path: Path) -> None:
    text = Path(filter_module.TABLE).read_text()
    for old, new in (
        ('"unless"', '"unles"'),
        ('"code-in-memory"', '"code-in-mind"'),
        ('"layer": "memfd"', '"layer": "x"'),
    ):
        assert old in text
        path = tmp_path / "table.json"
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(msgspec.ValidationError):
            load_filter_table(path)


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(HostError) as refused:
        compile_filter(TABLE, "riscv64", FilterWish())
    assert refused.value.code == "machine-unsupported"


# --- the program -----------------------------------------------------------------------------


@each_machine
def test_an_ordinary_call_passes_after_few_instructions(machine: str) -> None:
    program = PROGRAMS[machine, WISHES[0]]
    assert len(program) // 8 < 400  # the kernel takes 4096 for all filters of a process together
    for name in ("read", "write", "getpid", "futex", "close", "statx", "ppoll"):
        number, arguments = numbered(machine, (name,))
        assert number is not None
        assert run_program(program, AUDIT[machine], number, arguments)[1] <= 12, name


def test_a_far_place_is_reached_by_a_longer_jump() -> None:
    for distance in (254, 255, 256, 600):
        code = bpf.Assembler()
        code.load(bpf.NUMBER)
        code.jump(bpf.JUMP_EQUAL, 1, yes="far")
        code.jump(bpf.JUMP_EQUAL, 2, no="far")
        for _ in range(distance):
            code.keep_bits(0xFF)
        code.answer(111)
        code.place("far")
        code.answer(222)
        program = code.assemble()
        for number, answer in ((1, 222), (2, 111), (3, 222)):
            assert run_program(program, X86, number, (0,) * 6)[0] == answer


def test_a_jump_backward_and_an_endless_program_are_refused() -> None:
    code = bpf.Assembler()
    code.place("back")
    code.load(bpf.NUMBER)
    code.go("back")
    with pytest.raises(ValueError, match="before the jump"):
        code.assemble()
    long = bpf.Assembler()
    for _ in range(4097):
        long.answer(ALLOW)
    with pytest.raises(ValueError, match="4096"):
        long.assemble()
