"""Any bytes give facts or None, and nothing is raised: a worker may have written the file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubles.elf_files import LIBRARY, LOADER, PIE, PROGRAM, elf_file
from stockade.sandbox.elf import ElfFacts, read_elf

WELL_FORMED = [
    PROGRAM,
    LIBRARY,
    elf_file(loader=LOADER, dynamic=PIE, bits=32),
    elf_file(loader=LOADER, dynamic=PIE, order=">"),
]


@pytest.fixture(scope="module")
def fd() -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


def judge(fd: int, content: bytes) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, content, 0)
    facts = read_elf(fd)
    assert facts is None or isinstance(facts, ElfFacts)
    if facts is not None:
        assert content.startswith(b"\x7fELF")
        assert facts.kind in ("program", "library")
        assert len(facts.loader) <= 4096


@given(st.binary(max_size=4096))
def test_any_bytes(fd: int, content: bytes) -> None:
    judge(fd, content)


@given(st.binary(max_size=2048))
def test_any_bytes_behind_the_magic(fd: int, content: bytes) -> None:
    judge(fd, b"\x7fELF" + content)


@given(
    st.sampled_from(WELL_FORMED),
    st.lists(
        st.tuples(
            st.integers(0, 400),
            st.sampled_from([b"\0", b"\xff", b"\x7f", b"\x01"] * 2) | st.binary(max_size=8),
        )
    ),
    st.integers(0, 400),
)
def test_a_file_with_parts_overwritten_and_cut(
    fd: int, content: bytes, changes: list[tuple[int, bytes]], kept: int
) -> None:
    changed = bytearray(content)
    for at, data in changes:
        changed[at : at + len(data)] = data
    judge(fd, bytes(changed[:kept]))
    judge(fd, bytes(changed))
