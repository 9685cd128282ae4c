"""The room's system-call filter, assembled from a table (socket_filter.json). Pure.

Why by hand: the filter is part of what the project exists for, the program is forty
lines of assembler, and a library would be one more thing to install. Two mistakes
that others made are excluded by construction: the architecture is checked before any
number is compared (else x32 and 32-bit calls mean something else), and only the low
32 bits of an argument are compared, as the kernel does (else AF_VSOCK | 1 << 32 passes).
The full seal comes later and adds lines to the table, not code.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

TABLE = Path(__file__).with_name("socket_filter.json")

# seccomp_data: nr, arch, instruction pointer, six arguments (seccomp(2)); little-endian low words
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _AND, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_ENOSYS = 38


class Test(Struct, frozen=True, forbid_unknown_fields=True):
    """A question about one argument: equal to one of `is`, or any bit of `has` set."""

    arg: int
    mask: int = 0xFFFFFFFF
    is_: tuple[int, ...] = msgspec.field(default=(), name="is")
    has: int = 0


class Refusal(Struct, frozen=True, forbid_unknown_fields=True):
    calls: tuple[str, ...]
    errno: str
    why: str
    when: tuple[Test, ...] = ()
    unless: tuple[Test, ...] = ()


class Architecture(Struct, frozen=True, forbid_unknown_fields=True):
    audit: int
    foreign_bit: int
    numbers: dict[str, int]


class FilterTable(Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    refusals: tuple[Refusal, ...]
    errnos: dict[str, int]
    architectures: dict[str, Architecture]


def load_filter_table(path: Path = TABLE) -> FilterTable:
    return msgspec.json.decode(path.read_bytes(), type=FilterTable)


class FilterWish(Struct, frozen=True, kw_only=True):
    code: str = "closed"
    refuse_calls: bool = True
    refuse_memory_code: bool = True
    watch: bool = True
    unix_sockets: bool = False

    @property
    def is_needed(self):
        return self.refuse_calls or self.watch or self.refuse_memory_code


_EXEC = {"x86_64": (59, 322), "aarch64": (221, 281)}


def is_command(table, machine, arch, number, at=False):
    return number == _EXEC[machine][1] if at else number in _EXEC[machine]


def find_refusal(*a):
    return None


def describe_call(*a):
    return "?"


class _Assembler:
    """Classic BPF with named places: a jump names where to go when true and when false."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, str, str]] = []
        self.places: dict[str, int] = {}

    def place(self, name: str) -> None:
        self.places[name] = len(self.lines)

    def load(self, offset: int) -> None:
        self.lines.append((_LOAD, offset, "", ""))

    def mask(self, bits: int) -> None:
        self.lines.append((_AND, bits, "", ""))

    def jump(self, code: int, value: int, if_true: str, if_false: str) -> None:
        self.lines.append((code, value, if_true, if_false))

    def answer(self, value: int) -> None:
        self.lines.append((_RETURN, value, "", ""))

    def assemble(self) -> bytes:
        return b"".join(
            struct.pack("<HBBI", code, self._hop(at, yes), self._hop(at, no), value)
            for at, (code, value, yes, no) in enumerate(self.lines)
        )

    def _hop(self, at: int, name: str) -> int:
        hop = self.places[name] - at - 1 if name else 0
        if not 0 <= hop <= 255:
            raise ValueError(f"filter: {name} is {hop} lines away, more than a jump reaches")
        return hop


def compile_filter(table: FilterTable, machine: str, wish: FilterWish) -> bytes:
    """Compile the table for one machine (as `os.uname().machine` says it).

    Raises:
        KeyError: The table has no numbers for this machine.
    """
    architecture = table.architectures[machine]
    code = _Assembler()
    code.load(_ARCHITECTURE)
    code.jump(_JUMP_EQUAL, architecture.audit, "native", "alien")
    code.place("alien")
    code.answer(KILL)
    code.place("native")
    if architecture.foreign_bit:
        code.load(_NUMBER)
        code.jump(_JUMP_SET, architecture.foreign_bit, "x32", "calls")
        code.place("x32")
        code.answer(ERRNO | _ENOSYS)
    code.place("calls")
    if wish.watch:
        code.load(_NUMBER)
        code.jump(_JUMP_EQUAL, _EXEC[machine][0], "see", "notexec")
        code.place("notexec")
        code.jump(_JUMP_EQUAL, _EXEC[machine][1], "see", "rest")
        code.place("see")
        code.answer(0x7FC00000)
        code.place("rest")
    for index, refusal in enumerate(table.refusals):
        numbers = [architecture.numbers[call] for call in refusal.calls if call in architecture.numbers]
        if numbers:
            _compile_refusal(code, str(index), refusal, numbers, table.errnos[refusal.errno])
    code.answer(ALLOW)
    return code.assemble()


def _compile_refusal(
    code: _Assembler, name: str, refusal: Refusal, numbers: Sequence[int], errno: int
) -> None:
    matched, refuse, end = f"{name}/matched", f"{name}/refuse", f"{name}/end"
    code.load(_NUMBER)
    for at, number in enumerate(numbers):
        following = f"{name}/number{at + 1}" if at + 1 < len(numbers) else end
        code.jump(_JUMP_EQUAL, number, matched, following)
        code.place(f"{name}/number{at + 1}")
    code.place(matched)
    for at, test in enumerate(refusal.when):
        _compile_test(code, f"{name}/when{at}", test, end)
    for at, test in enumerate(refusal.unless):
        _compile_test(code, f"{name}/unless{at}", test, refuse)
    if refusal.unless:
        code.load(_ARCHITECTURE)  # a test that held falls through to here; jump over the refusal
        code.jump(_JUMP_SET, 0xFFFFFFFF, end, refuse)
    code.place(refuse)
    code.answer(ERRNO | errno)
    code.place(end)


def _compile_test(code: _Assembler, name: str, test: Test, if_false: str) -> None:
    """Fall through when the test holds, else go to `if_false`."""
    code.load(_FIRST_ARGUMENT + 8 * test.arg)
    holds = f"{name}/holds"
    if test.has:
        code.jump(_JUMP_SET, test.has, holds, if_false)
    if test.mask != 0xFFFFFFFF:
        code.mask(test.mask)
    for at, value in enumerate(test.is_):
        following = f"{name}/value{at + 1}" if at + 1 < len(test.is_) else if_false
        code.jump(_JUMP_EQUAL, value, holds, following)
        code.place(f"{name}/value{at + 1}")
    code.place(holds)
