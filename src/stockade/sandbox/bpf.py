"""An assembler for classic BPF, the language of system-call filters. Pure.

Jumps go to named places, forward only. A conditional jump reaches 255 instructions; a
place that is further away gets an unconditional jump, which reaches any, beside it. By
hand, since a library would be one more thing to install for these few lines.

Only instructions that the kernel can follow on the call's number alone are used to let
a call pass (`seccomp_is_const_allow` in kernel/seccomp.c, Linux 5.11): it then remembers
the answer, and such a call costs no instruction at all.
"""

from __future__ import annotations

import struct

from msgspec import Struct

# struct seccomp_data: number, architecture, instruction pointer, six arguments (seccomp(2));
# the low half of an argument comes first, since every machine that we know is little-endian.
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, ARGUMENT_SIZE = 0, 4, 16, 8

# linux/bpf_common.h: class, size and mode, operation, source
LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP, JUMP_EQUAL, JUMP_NOT_BELOW, JUMP_ANY_BIT = 0x05, 0x15, 0x35, 0x45

_FARTHEST = 255  # the two hops of a conditional jump are bytes
_MOST = 4096  # BPF_MAXINSNS, linux/bpf_common.h
_NEXT = ""


class _Line(Struct, frozen=True):
    """One instruction; `yes` and `no` name where a jump goes, empty for the following line."""

    code: int
    value: int = 0
    yes: str = _NEXT
    no: str = _NEXT


class Assembler:
    """Takes instructions one after the other and gives the program that the kernel loads."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._places: dict[str, int] = {}

    def place(self, name: str) -> None:
        """Name the following instruction."""
        self._places[name] = len(self._lines)

    def load(self, offset: int) -> None:
        """Take 32 bits of the call's data for the tests that follow."""
        self._lines.append(_Line(LOAD, offset))

    def keep_bits(self, bits: int) -> None:
        self._lines.append(_Line(AND, bits))

    def jump(self, code: int, value: int, yes: str = _NEXT, no: str = _NEXT) -> None:
        self._lines.append(_Line(code, value, yes, no))

    def go(self, place: str) -> None:
        self._lines.append(_Line(JUMP, yes=place))

    def answer(self, value: int) -> None:
        """End with a seccomp answer."""
        self._lines.append(_Line(RETURN, value))

    def assemble(self) -> bytes:
        """The program as an array of `struct sock_filter`.

        Raises:
            ValueError: It is longer than the kernel takes, or jumps backward.
        """
        far: set[tuple[int, str]] = set()
        while True:
            starts = self._lay_out(far)
            found = self._find_far(starts, far)
            if not found:
                break
            far |= found  # each round makes the program longer, so a near jump can become a far one
        program = b"".join(self._encode(at, starts, far) for at in range(len(self._lines)))
        if len(program) > 8 * _MOST:
            raise ValueError(f"filter: {len(program) // 8} instructions, and the kernel takes {_MOST}")
        return program

    def _lay_out(self, far: set[tuple[int, str]]) -> list[int]:
        """Where each line starts, with the lines that far jumps add; one more for the end."""
        starts = [0]
        for at, line in enumerate(self._lines):
            starts.append(starts[-1] + 1 + sum((at, side) in far for side in {line.yes, line.no}))
        return starts

    def _find_far(self, starts: list[int], far: set[tuple[int, str]]) -> set[tuple[int, str]]:
        return {
            (at, side)
            for at, line in enumerate(self._lines)
            if line.code in (JUMP_EQUAL, JUMP_NOT_BELOW, JUMP_ANY_BIT)
            for side in {line.yes, line.no}
            if (at, side) not in far and self._target(at, side, starts) - starts[at] - 1 > _FARTHEST
        }

    def _target(self, at: int, side: str, starts: list[int]) -> int:
        target = starts[at + 1] if side == _NEXT else starts[self._places[side]]
        if target <= starts[at]:
            raise ValueError(f"filter: {side} stands before the jump to it")
        return target

    def _encode(self, at: int, starts: list[int], far: set[tuple[int, str]]) -> bytes:
        line, here = self._lines[at], starts[at]
        if line.code == JUMP:
            return struct.pack("<HBBI", JUMP, 0, 0, self._target(at, line.yes, starts) - here - 1)
        if line.code in (LOAD, AND, RETURN):
            return struct.pack("<HBBI", line.code, 0, 0, line.value)
        sides = sorted({side for side in (line.yes, line.no) if (at, side) in far})
        hops = [
            sides.index(side) if side in sides else self._target(at, side, starts) - here - 1
            for side in (line.yes, line.no)
        ]
        steps = [struct.pack("<HBBI", line.code, *hops, line.value)]
        for place, side in enumerate(sides, start=here + 1):
            steps.append(struct.pack("<HBBI", JUMP, 0, 0, self._target(at, side, starts) - place - 1))
        return b"".join(steps)
