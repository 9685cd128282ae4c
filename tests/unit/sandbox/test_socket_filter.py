"""The filter, run instruction by instruction as the kernel would (its networking/filter.rst)."""

from __future__ import annotations

import struct

import pytest

from stockade.sandbox.socket_filter import ALLOW, ERRNO, KILL, compile_filter, load_filter_table

X86, ARM = 0xC000003E, 0xC00000B7
I386 = 0x40000003
# Call numbers from the kernel's own tables (arch/x86/entry/syscalls, include/uapi/asm-generic/unistd.h).
SOCKET = {X86: 41, ARM: 198}
IOCTL = {X86: 16, ARM: 29}
EPERM, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT = 1, 38, 93, 97
PROGRAMS = {
    X86: compile_filter(load_filter_table(), "x86_64"),
    ARM: compile_filter(load_filter_table(), "aarch64"),
}


def judge(machine: int, number: int, *arguments: int, arch: int | None = None) -> int:
    """Interpret the program on a seccomp_data of 64 bytes, little-endian."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, machine if arch is None else arch, 0, *padded)
    code = list(struct.iter_unpack("<HBBI", PROGRAMS[machine]))
    at, accumulator = 0, 0
    while True:
        kind, if_true, if_false, value = code[at]
        at += 1
        if kind == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x54:
            accumulator &= value
        elif kind == 0x15:
            at += if_true if accumulator == value else if_false
        elif kind == 0x45:
            at += if_true if accumulator & value else if_false
        elif kind == 0x06:
            return value
        else:
            raise AssertionError(f"unknown instruction {kind:#x}")


@pytest.mark.parametrize("machine", [X86, ARM])
def test_sockets_are_an_allow_list_on_both_machines(machine: int) -> None:
    call = SOCKET[machine]
    for family, kind, protocol in ((1, 1, 0), (2, 1, 6), (2, 2, 17), (10, 1 | 0o2000000, 0), (16, 3, 0)):
        assert judge(machine, call, family, kind, protocol) == ALLOW
    for family in set(range(64)) - {1, 2, 10, 16}:
        assert judge(machine, call, family, 1, 0) == ERRNO | EAFNOSUPPORT
        assert (
            judge(machine, call, family | 1 << 32, 1, 0) == ERRNO | EAFNOSUPPORT
        )  # the kernel reads 32 bits
    for protocol in set(range(264)) - {0, 6, 17}:
        assert judge(machine, call, 2, 1, protocol) == ERRNO | EPROTONOSUPPORT
    for kind in set(range(16)) - {1, 2}:
        assert judge(machine, call, 10, kind, 0) == ERRNO | EPROTONOSUPPORT
    for protocol in range(1, 24):
        assert judge(machine, call, 16, 3, protocol) == ERRNO | EPROTONOSUPPORT


def test_a_foreign_architecture_ends_the_process_before_any_number_is_compared() -> None:
    assert judge(X86, 41, 2, 1, 0, arch=I386) == KILL
    assert judge(ARM, 198, 2, 1, 0, arch=0x40000028) == KILL


def test_x32_numbers_are_refused() -> None:
    assert judge(X86, 0x40000000 | 41, 2, 1, 0) == ERRNO | ENOSYS
    assert judge(X86, 0x40000000, 0) == ERRNO | ENOSYS


@pytest.mark.parametrize("machine", [X86, ARM])
def test_terminal_injection_is_refused_whatever_the_high_bits(machine: int) -> None:
    for request in (0x5412, 0x541C):
        assert judge(machine, IOCTL[machine], 0, request) == ERRNO | EPERM
        assert judge(machine, IOCTL[machine], 0, request | 1 << 32) == ERRNO | EPERM
    assert judge(machine, IOCTL[machine], 0, 0x5413) == ALLOW  # TIOCGWINSZ


def test_rings_and_keyrings_are_absent() -> None:
    for number in (425, 426, 427, 248, 249, 250):
        assert judge(X86, number) == ERRNO | ENOSYS


def test_set_user_id_bits_are_refused_and_ordinary_modes_pass() -> None:
    creat, at_cwd = 0o100, 0xFFFFFF9C
    assert judge(X86, 90, 0, 0o4755) == ERRNO | EPERM  # chmod
    assert judge(X86, 90, 0, 0o2755) == ERRNO | EPERM
    assert judge(X86, 90, 0, 0o1777) == ALLOW
    assert judge(X86, 268, at_cwd, 0, 0o4755) == ERRNO | EPERM  # fchmodat
    assert judge(X86, 257, at_cwd, 0, creat, 0o4755) == ERRNO | EPERM  # openat that creates
    assert judge(X86, 257, at_cwd, 0, creat, 0o644) == ALLOW
    assert judge(X86, 257, at_cwd, 0, 0, 0o4755) == ALLOW  # not creating: that register is garbage


def test_ordinary_calls_pass() -> None:
    for number in (0, 1, 9, 39, 42, 56, 59, 61, 231, 435):
        assert judge(X86, number, 2, 3, 4) == ALLOW


def test_every_line_says_why() -> None:
    for refusal in load_filter_table().refusals:
        assert len(refusal.why) > 30, refusal.calls


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        compile_filter(load_filter_table(), "riscv64")
