"""Programs and libraries told apart: by headers made by hand, by real files, by what dlopen says."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from doubles.elf_files import (
    DF_1_NOW,
    DF_1_PIE,
    DT_DEBUG,
    DT_FLAGS_1,
    ET_CORE,
    ET_DYN,
    ET_EXEC,
    ET_REL,
    LOADER,
    PIE,
    PIE_OF_AN_OLD_LINKER,
    PLUGIN,
    PT_DYNAMIC,
    PT_LOAD,
    SHARED,
    elf_file,
    header,
    segment,
)
from stockade.sandbox import elf
from stockade.sandbox.elf import ElfFacts, read_elf

LINKED_AS_PROGRAM = {
    "static": elf_file(ET_EXEC),
    "dynamic, at a fixed address": elf_file(ET_EXEC, loader=LOADER, dynamic=((DT_DEBUG, 0),)),
    "dynamic, at a fixed address, with the tables of a library": elf_file(ET_EXEC, dynamic=SHARED),
    "position-independent": elf_file(loader=LOADER, dynamic=PIE),
    "position-independent, of an old linker": elf_file(loader=LOADER, dynamic=PIE_OF_AN_OLD_LINKER),
    "static and position-independent": elf_file(dynamic=((DT_FLAGS_1, DF_1_PIE),)),
    "static, position-independent, of an old linker": elf_file(dynamic=((DT_DEBUG, 0),)),
    "packed: nothing for a loader in it": elf_file(),
    "with a library's name": elf_file(loader=LOADER, dynamic=(*SHARED, *PIE)),
}
LINKED_AS_LIBRARY = {
    "plain": elf_file(dynamic=SHARED),
    "plug-in without a name": elf_file(dynamic=PLUGIN),
    "as libc.so.6: with a loader and a name": elf_file(loader=LOADER, dynamic=SHARED),
    "as pam_cap.so: with a loader and no name": elf_file(loader=LOADER, dynamic=PLUGIN),
    "with other flags": elf_file(dynamic=((DT_FLAGS_1, DF_1_NOW),)),
    "what follows the end of the table does not count": elf_file(dynamic=((0, 0), (DT_DEBUG, 0))),
}
NEITHER = {
    "object file": elf_file(ET_REL),
    "core dump": elf_file(ET_CORE, dynamic=PIE),
    "of a system's own kind": elf_file(0xFE00, dynamic=PIE),
    "nothing to load": elf_file(dynamic=PIE, is_loadable=False),
    "script": b"#!/bin/sh\n",
    "empty": b"",
    "magic alone": b"\x7fELF",
    "header cut off": header(ET_DYN, 64, 2)[:40],
    "table beyond the end": header(ET_DYN, 1 << 40, 2),
    "table at an offset that pread does not take": header(ET_DYN, (1 << 64) - 1, 2),
}


def judge(tmp_path: Path, content: bytes) -> ElfFacts | None:
    path = tmp_path / "file"
    path.write_bytes(content)
    return read_elf(str(path))


@pytest.mark.parametrize("content", LINKED_AS_PROGRAM.values(), ids=LINKED_AS_PROGRAM.keys())
def test_f4_what_was_linked_as_a_program_is_one(tmp_path: Path, content: bytes) -> None:
    facts = judge(tmp_path, content)
    assert facts is not None
    assert facts.kind == "program"


@pytest.mark.parametrize("content", LINKED_AS_LIBRARY.values(), ids=LINKED_AS_LIBRARY.keys())
def test_what_was_linked_as_a_library_stays_usable(tmp_path: Path, content: bytes) -> None:
    facts = judge(tmp_path, content)
    assert facts is not None
    assert facts.kind == "library"


@pytest.mark.parametrize("content", NEITHER.values(), ids=NEITHER.keys())
def test_what_neither_kernel_nor_loader_takes_is_none(tmp_path: Path, content: bytes) -> None:
    assert judge(tmp_path, content) is None


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [32, 64])
def test_each_class_and_byte_order_is_read(tmp_path: Path, bits: int, order: str) -> None:
    program = elf_file(loader=LOADER, dynamic=PIE, bits=bits, order=order)
    library = elf_file(loader=LOADER, dynamic=SHARED, bits=bits, order=order)
    assert judge(tmp_path, program) == ElfFacts("program", LOADER.decode(), bits)
    assert judge(tmp_path, library) == ElfFacts("library", LOADER.decode(), bits)


def test_the_loader_is_told_and_empty_where_none_is_asked_for(tmp_path: Path) -> None:
    assert judge(tmp_path, elf_file(ET_EXEC, loader=b"/opt/x/ld.so")) == ElfFacts(
        "program", "/opt/x/ld.so", 64
    )
    assert judge(tmp_path, elf_file(ET_EXEC)) == ElfFacts("program", "", 64)


def test_a_program_shorter_than_its_header_is_one_as_for_the_kernel(tmp_path: Path) -> None:
    """The kernel reads 256 bytes into zeros: programs of 45 bytes run (the smallest i386 one known)."""
    assert judge(tmp_path, elf_file(ET_EXEC, bits=32)[:45]) == ElfFacts("program", "", 32)


def test_a_wrong_class_or_byte_order_does_not_hide_a_program(tmp_path: Path) -> None:
    """The kernel looks at neither (elf_check_arch goes by the machine)."""
    content = bytearray(elf_file(ET_EXEC))
    content[4:6] = b"\x07\x09"
    assert judge(tmp_path, bytes(content)) == ElfFacts("program", "", 64)


def test_a_table_far_behind_the_header_is_found(tmp_path: Path) -> None:
    content = header(ET_DYN, 5000, 2).ljust(5000, b"\0") + segment(PT_LOAD, 0, 0)
    content += segment(PT_DYNAMIC, 6000, 32)
    content = content.ljust(6000, b"\0") + DT_DEBUG.to_bytes(8, "little") + bytes(24)
    assert judge(tmp_path, content) == ElfFacts("program", "", 64)


def test_a_hostile_file_costs_a_bounded_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """65,535 headers, and a dynamic section and loader of terabytes in a file that is as long."""
    path = tmp_path / "huge"
    table = segment(PT_LOAD, 0, 0) + segment(PT_DYNAMIC, 4096, 1 << 42) + segment(3, 4096, 1 << 42)
    path.write_bytes(header(ET_DYN, 64, 0xFFFF) + table)
    os.truncate(path, 1 << 43)
    sizes = []
    pread = os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        data = pread(fd, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(elf.os, "pread", counted)
    facts = read_elf(str(path))
    assert facts is not None
    assert facts.loader == ""
    assert sum(sizes) <= 1024 + 65536 + 65536 + 4096


def test_what_is_no_regular_file_is_none_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    reader, writer = os.pipe()
    try:
        for path in ("fifo", "socket", "missing", "", "with\0nul"):
            assert read_elf(str(tmp_path / path) if path else path) is None
        assert read_elf(str(tmp_path)) is None
        assert read_elf(reader) is None
        assert read_elf(-1) is None
    finally:
        os.close(reader)
        os.close(writer)
        listener.close()


def test_a_descriptor_is_read_without_moving_its_place(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(elf_file(loader=LOADER, dynamic=PIE))
    with open(path, "rb") as file:
        assert read_elf(file.fileno()) == ElfFacts("program", LOADER.decode(), 64)
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0


# --- real files ----------------------------------------------------------------------------

# What everybody knows of them; those that a machine lacks are passed over.
REAL_PROGRAMS = (
    "/usr/bin/git",
    "/usr/lib/git-core/git",
    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1",
    "/usr/bin/env",
    "/usr/sbin/ldconfig",
    "/usr/lib/chromium/chromium",
    "/usr/libexec/valgrind/memcheck-x86-linux",
    sys.executable,
)
REAL_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libcap.so.2",
    "/usr/lib/x86_64-linux-gnu/security/pam_cap.so",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/gcc/x86_64-linux-gnu/12/liblto_plugin.so",
)


@pytest.mark.parametrize("path", [path for path in REAL_PROGRAMS if os.path.exists(path)])
def test_a_real_program_is_one(path: str) -> None:
    facts = read_elf(path)
    assert facts is not None
    assert facts.kind == "program"


@pytest.mark.parametrize("path", [path for path in REAL_LIBRARIES if os.path.exists(path)])
def test_a_real_library_and_the_loader_itself_are_none(path: str) -> None:
    facts = read_elf(path)
    assert facts is not None
    assert facts.kind == "library"


def test_extension_modules_of_this_python_are_libraries() -> None:
    import msgspec._core

    assert read_elf(str(msgspec._core.__file__)) == ElfFacts("library", "", 64)


ASK_DLOPEN = """
import ctypes, sys
for path in sys.argv[1:]:
    try:
        ctypes.CDLL(path)
        print("library")
    except OSError as error:
        print("program" if "cannot dynamically load" in str(error) else "unknown")
"""


def test_dlopen_agrees() -> None:
    """The loader's own word: it refuses programs by name, whatever they look like (glibc 2.30)."""
    paths = [entry.path for entry in os.scandir("/usr/bin") if entry.is_file(follow_symlinks=False)]
    paths = [path for path in sorted(paths) if read_elf(path) is not None][:60]
    paths += [path for path in REAL_LIBRARIES if os.path.exists(path) and "/ld-" not in path]
    asked = subprocess.run(
        [sys.executable, "-I", "-c", ASK_DLOPEN, *paths], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = [facts.kind for facts in map(read_elf, paths) if facts is not None]
    different = [
        (path, our, its)
        for path, our, its in zip(paths, ours, asked, strict=True)
        if our != its and its != "unknown"
    ]
    assert different == []
    assert {"program", "library"} <= set(asked)
