"""The system-call filter: a table of refusals (system_calls.json), compiled for one run. Pure.

The table is the policy of this layer, a reason on each line; here is what a line means,
twice: as a program for the kernel (`compile_filter`) and as a question that the
supervisor asks about a call that the kernel held for it (`find_refusal`). A test runs
both on the same calls.

What must stay true:

* The architecture is checked before any number is compared, else x32 and 32-bit calls
  mean something else. Such calls get ENOSYS, like those of a kernel newer than the table.
* Only the low 32 bits of an argument are compared, as the kernel does, else
  AF_VSOCK | 1 << 32 passes.
* What sandbox/stage.py itself needs is not refused: prctl, Landlock, seccomp, fork and wait.
  The worker may call seccomp as well: further filters only refuse more, and the kernel
  does not give out a second listener (EBUSY).

How code gets into memory at level `closed`, so that nobody has to ask again: by mmap,
mprotect, pkey_mprotect, shmat, personality and memfd_create, each with a line; by files,
which are the mounts' part; by /proc/self/mem, which is Landlock's. Not by mremap, which moves or
doubles a mapping with the protection that it has. Not by remap_file_pages, which maps the
same file again with the mapping's own protection (its `prot` must be 0). Not by brk, whose
memory is executable only under READ_IMPLIES_EXEC. Not by process_madvise, which only advises
and is left alone, since allocators use it on themselves.
"""

from __future__ import annotations

import errno as errors
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stockade.errors import HostError
from stockade.sandbox import bpf
from stockade.vocabulary import Entry, Protocol, Reason

TABLE = Path(__file__).with_name("system_calls.json")

ALLOW, NOTIFY, ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000  # SECCOMP_RET_*, linux/seccomp.h
WATCHED_CALLS = ("execve", "execveat")
_LOW = 0xFFFFFFFF

Code = Literal["closed", "jit", "any"]
Arguments = tuple[int, ...]


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """A question about one argument: equal to one of `is`, or any bit of `has` set."""

    arg: int
    mask: int = _LOW
    is_: tuple[int, ...] = msgspec.field(default=(), name="is")
    has: int = 0

    def holds(self, arguments: Arguments) -> bool:
        value = arguments[self.arg] & _LOW & self.mask
        return bool(value & self.has) if self.has else value in self.is_


_ABOUT_SOCKETS = frozenset({Reason.SOCKET_FAMILY_REFUSED, Reason.CONTROL_SOCKET})


class Refusal(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One line of the table; `about` there says what each field means."""

    name: str
    layer: Literal["seccomp", "memfd"]
    calls: tuple[str, ...]
    errno: str
    reason: Reason
    why: str
    record: bool
    common: bool = False
    leads_out: bool = False
    codes: tuple[Code, ...] = ("closed", "jit", "any")
    granted_by: Literal["", "unix-sockets"] = ""
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()

    @property
    def errno_number(self) -> int:
        """The number that the caller gets; the same on every machine of the table."""
        number: int = getattr(errors, self.errno)
        return number

    @property
    def entry(self) -> Entry:
        """By which door a refused try came, for its record."""
        return Entry.SOCKET if self.reason in _ABOUT_SOCKETS else Entry.EXEC

    @property
    def protocol(self) -> Protocol:
        return Protocol.SOCKET if self.reason in _ABOUT_SOCKETS else Protocol.EXEC

    def covers(self, arguments: Arguments) -> bool:
        """True if a call of this line with these arguments is refused."""
        if not all(test.holds(arguments) for test in self.when):
            return False
        return not self.unless or not all(test.holds(arguments) for test in self.unless)


class Shown(Struct, frozen=True, forbid_unknown_fields=True):
    """How a record writes one argument: by name, as flags, or as a number."""

    arg: int
    names: dict[str, int] = {}
    flags: dict[str, int] = {}
    mask: int = _LOW
    base: Literal["decimal", "octal"] = "decimal"


class Architecture(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The numbers of one machine.

    Attributes:
        audit: What the kernel calls it (AUDIT_ARCH_*).
        foreign_bit: The bit in a number that means another calling convention, 0 if there is none.
        newest: The last number that existed when the table was written (Linux 6.18).
    """

    audit: int
    foreign_bit: int
    newest: int
    numbers: dict[str, int]


class FilterTable(Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    refusals: tuple[Refusal, ...]
    foreign: Refusal
    newer: Refusal
    shown: dict[str, tuple[Shown, ...]]
    architectures: dict[str, Architecture]


class FilterWish(Struct, frozen=True, kw_only=True):
    """What one run wants of the filter.

    Attributes:
        code: How far code in memory is closed: not at all (``any``), for other programs
            (``jit``), or for native code that is made at run time too (``closed``).
        refuse_calls: Put up the layer `seccomp`.
        refuse_memory_code: Put up the layer `memfd`.
        watch: The eye is on: execve and execveat wait for the supervisor, and so do the
            refused calls that are worth a record.
        unix_sockets: The policy permits Unix sockets.
    """

    code: Code = "closed"
    refuse_calls: bool = True
    refuse_memory_code: bool = True
    watch: bool = False
    unix_sockets: bool = False

    @property
    def is_needed(self) -> bool:
        """False if there is nothing to load."""
        return self.refuse_calls or self.refuse_memory_code or self.watch


@cache
def load_filter_table(path: Path = TABLE) -> FilterTable:
    return msgspec.json.decode(path.read_bytes(), type=FilterTable)


# --- for the kernel --------------------------------------------------------------------------


def compile_filter(table: FilterTable, machine: str, wish: FilterWish) -> bytes:
    """Compile what a run wants for one machine (as `os.uname().machine` says it).

    The number is found by halving, so any call passes after about ten instructions; the
    lines of one number stand behind it in the table's order, and the first that covers a
    call answers.

    Returns:
        An array of `struct sock_filter`; empty if the wish is.

    Raises:
        HostError: The table has no numbers for this machine.
    """
    architecture = table.architectures.get(machine)
    if architecture is None:
        known = " and ".join(table.architectures)
        hint = f"{known} are supported; {TABLE.name} takes others"
        raise HostError("machine-unsupported", f"there is no system-call table for {machine}", hint)
    if not wish.is_needed:
        return b""
    code = bpf.Assembler()
    code.load(bpf.ARCHITECTURE)
    code.jump(bpf.JUMP_EQUAL, architecture.audit, no="foreign")
    code.load(bpf.NUMBER)
    if architecture.foreign_bit:
        code.jump(bpf.JUMP_ANY_BIT, architecture.foreign_bit, yes="foreign")
    _compile_search(code, list(_segments(table, architecture, wish)), wish, "call")
    code.place("foreign")
    code.answer(_answer(table.foreign, wish))
    return code.assemble()


class _Segment(Struct, frozen=True):
    """The numbers from `start` to the next segment, and what they get."""

    start: int
    lines: tuple[Refusal, ...] = ()
    is_watched: bool = False

    def is_like(self, other: _Segment) -> bool:
        return self.lines == other.lines and self.is_watched == other.is_watched


def _segments(table: FilterTable, architecture: Architecture, wish: FilterWish) -> Iterator[_Segment]:
    """All numbers in order; neighbors that get the same are one."""
    last = _Segment(0)
    yield last
    for segment in _all_segments(table, architecture, wish):
        if not segment.is_like(last):
            yield segment
            last = segment


def _all_segments(table: FilterTable, architecture: Architecture, wish: FilterWish) -> Iterator[_Segment]:
    following = 0
    lines: dict[str, list[Refusal]] = {call: [] for call in architecture.numbers}
    for line in _wanted_lines(table, wish):
        for call in line.calls:
            lines.get(call, []).append(line)  # a call that this machine does not have goes nowhere
    for call, number in sorted(architecture.numbers.items(), key=lambda item: item[1]):
        if number > following:
            yield _Segment(following)
        yield _Segment(number, tuple(lines[call]), wish.watch and call in WATCHED_CALLS)
        following = number + 1
    yield _Segment(following)
    if wish.refuse_calls:
        yield _Segment(architecture.newest + 1, (table.newer,))


def _wanted_lines(table: FilterTable, wish: FilterWish) -> Iterator[Refusal]:
    return (line for line in table.refusals if _is_wanted(line, wish))


def _is_wanted(line: Refusal, wish: FilterWish) -> bool:
    if line.granted_by == "unix-sockets" and wish.unix_sockets:
        return False
    layer_is_up = wish.refuse_calls if line.layer == "seccomp" else wish.refuse_memory_code
    return layer_is_up and wish.code in line.codes


def _answer(line: Refusal, wish: FilterWish) -> int:
    return NOTIFY if wish.watch and line.record else ERRNO | line.errno_number


def _compile_search(code: bpf.Assembler, segments: list[_Segment], wish: FilterWish, name: str) -> None:
    if len(segments) == 1:
        _compile_segment(code, segments[0], wish, name)
        return
    middle = len(segments) // 2
    code.jump(bpf.JUMP_NOT_BELOW, segments[middle].start, yes=f"{name}+")
    _compile_search(code, segments[:middle], wish, f"{name}-")
    code.place(f"{name}+")
    _compile_search(code, segments[middle:], wish, f"{name}+")


def _compile_segment(code: bpf.Assembler, segment: _Segment, wish: FilterWish, name: str) -> None:
    for at, line in enumerate(segment.lines):
        _compile_refusal(code, line, _answer(line, wish), f"{name}/{at}")
    code.answer(NOTIFY if segment.is_watched else ALLOW)


def _compile_refusal(code: bpf.Assembler, line: Refusal, answer: int, name: str) -> None:
    refuse, end = f"{name}/refuse", f"{name}/end"
    for at, test in enumerate(line.when):
        _compile_test(code, test, f"{name}/when{at}", if_false=end)
    for at, test in enumerate(line.unless):
        _compile_test(code, test, f"{name}/unless{at}", if_false=refuse)
    if line.unless:
        code.go(end)  # every test of `unless` held
    code.place(refuse)
    code.answer(answer)
    code.place(end)


def _compile_test(code: bpf.Assembler, test: Condition, name: str, *, if_false: str) -> None:
    """Fall through when the test holds."""
    holds = f"{name}/holds"
    code.load(bpf.FIRST_ARGUMENT + bpf.ARGUMENT_SIZE * test.arg)
    if test.has:
        code.jump(bpf.JUMP_ANY_BIT, test.has & test.mask, yes=holds, no=if_false)
    else:
        if test.mask != _LOW:
            code.keep_bits(test.mask)
        for value in test.is_[:-1]:
            code.jump(bpf.JUMP_EQUAL, value, yes=holds)
        code.jump(bpf.JUMP_EQUAL, test.is_[-1], yes=holds, no=if_false)
    code.place(holds)


# --- for the supervisor ----------------------------------------------------------------------


def find_refusal(
    table: FilterTable, machine: str, wish: FilterWish, arch: int, number: int, args: Arguments
) -> Refusal | None:
    """The line that refuses a call, None if none does; what the compiled filter decides, in Python.

    Args:
        arch: `seccomp_data.arch` of the call.
        number: `seccomp_data.nr`.
        args: `seccomp_data.args`, all six, unsigned.
    """
    architecture = table.architectures[machine]
    number &= _LOW
    if not wish.is_needed:
        return None
    if arch != architecture.audit or number & architecture.foreign_bit:
        return table.foreign
    if number > architecture.newest:
        return table.newer if wish.refuse_calls else None
    call = _call_name(architecture, number)
    lines = _wanted_lines(table, wish)
    return next((line for line in lines if call in line.calls and line.covers(args)), None)


def find_permit(
    table: FilterTable, machine: str, wish: FilterWish, arch: int, number: int, args: Arguments
) -> str | None:
    """What would have to stand in the policy for a refused call to pass, None if nothing does.

    Found by asking the table under each wider wish, so that it stays true of every line.
    """
    wider = (
        ("exec: {unix-sockets: true}", replace(wish, unix_sockets=True)),
        ("exec: {code: jit}", replace(wish, code="jit")),
    )
    for text, other in wider:
        if other != wish and find_refusal(table, machine, other, arch, number, args) is None:
            return text
    return None


def is_command(table: FilterTable, machine: str, arch: int, number: int, *, at: bool = False) -> bool:
    """True if a call starts a program; with `at` only for execveat, whose path is its second argument."""
    architecture = table.architectures[machine]
    names = WATCHED_CALLS[1:] if at else WATCHED_CALLS
    return arch == architecture.audit and number in [architecture.numbers[name] for name in names]


def _call_name(architecture: Architecture, number: int) -> str:
    return next((name for name, own in architecture.numbers.items() if own == number), "")


# --- for a record ----------------------------------------------------------------------------


def describe_call(
    table: FilterTable, machine: str, number: int, args: Arguments, arch: int | None = None
) -> str:
    """A call in a few words, such as ``socket(AF_VSOCK, SOCK_STREAM, 0)`` or ``ptrace(PTRACE_ATTACH, 7)``.

    Args:
        arch: `seccomp_data.arch`; None means that of the machine.
    """
    architecture = table.architectures[machine]
    number &= _LOW
    if arch is not None and arch != architecture.audit:
        return f"number {number} of another architecture ({arch:#x})"
    if number & architecture.foreign_bit:
        return f"number {number & ~architecture.foreign_bit} by the x32 convention"
    name = _call_name(architecture, number)
    if not name:
        return f"number {number}"
    shown = table.shown.get(name, ())
    return f"{name}({', '.join(_write(each, args[each.arg]) for each in shown)})" if shown else name


def _write(shown: Shown, argument: int) -> str:
    """One argument; bits that the kernel does not look at are shown too, since they tell of intent."""
    value = argument & shown.mask
    unread = argument & ~_LOW
    text = next((name for name, own in shown.names.items() if own == value), "")
    if not text and shown.flags:
        known = [name for name, bit in shown.flags.items() if value & bit]
        rest = value & ~sum(shown.flags.values())
        text = "|".join([*known, f"{rest:#x}"] if rest else known)
    if not text:
        text = f"{value:#o}" if shown.base == "octal" else str(value)
    return f"{text}+{unread:#x}" if unread else text
