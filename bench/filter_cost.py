"""What the system-call filter adds to a call: the same loop with and without it, and a count of instructions.

Usage: .venv/bin/python bench/filter_cost.py [ROUNDS]

The loop is C (it needs `cc`), since a Python loop costs more than the calls. Rounds with
and without the filter take turns, and the best of each counts: others use this machine.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from stockade.sandbox.filter import FilterWish, compile_filter, load_filter_table

LOOP = Path(__file__).with_name("loop.c")


def run_loop(binary: Path, *arguments: str) -> dict[str, float]:
    done = subprocess.run([binary, "calls", *arguments], capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def count_steps(program: bytes, arch: int, number: int) -> int:
    """Instructions that a call takes which no line names: it passes without a look at its arguments."""
    code, at, steps, accumulator = list(struct.iter_unpack("<HBBI", program)), 0, 0, 0
    while True:
        kind, if_true, if_false, value = code[at]
        at, steps = at + 1, steps + 1
        match kind:
            case 0x20:
                accumulator = arch if value == 4 else number
            case 0x05:
                at += value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case _:
                return steps


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 7
    table, machine = load_filter_table(), os.uname().machine
    program = compile_filter(table, machine, FilterWish())
    architecture = table.architectures[machine]
    plain = [n for n in range(335) if n not in architecture.numbers.values()]
    steps = [count_steps(program, architecture.audit, number) for number in plain]
    print(f"{len(program) // 8} instructions; a call that no line names takes {min(steps)} to {max(steps)}")
    with tempfile.TemporaryDirectory() as folder:
        binary, code = Path(folder) / "loop", Path(folder) / "filter"
        subprocess.run(["cc", "-O2", "-o", binary, LOOP], check=True)
        code.write_bytes(program)
        best: dict[str, list[float]] = {}
        for _ in range(rounds):
            bare, filtered = run_loop(binary), run_loop(binary, str(code))
            for name in bare:
                so_far = best.setdefault(name, [bare[name], filtered[name]])
                best[name] = [min(so_far[0], bare[name]), min(so_far[1], filtered[name])]
    print(f"load {os.getloadavg()[0]:.1f}, best of {rounds}, nanoseconds")
    for name, (without, with_it) in best.items():
        print(f"{name:14} {without:8.1f} {with_it:8.1f}   ratio {with_it / without:.2f}")


if __name__ == "__main__":
    main()
