"""Whether a file is a native program or a library, from a few bytes of it. Hostile input.

The seal leaves library folders executable and covers the programs in them again, since
``ld.so FILE`` and execve start any program that can be mapped executable (finding F4).
A program that is missed can be run; a library that is taken for a program cannot be
loaded. The two look alike (a position-independent program *is* a shared object), so:

====================================  ========  =========================================
file                                  kind      why
====================================  ========  =========================================
``ET_EXEC``                           program   started by execve and by ld.so, also when
                                                static; dlopen refuses it
``ET_DYN``, ``DF_1_PIE``              program   also static ones, which name no loader;
                                                dlopen refuses it (glibc 2.30)
``ET_DYN``, ``DT_DEBUG``              program   linkers write it into programs alone, and
                                                older ones no ``DF_1_PIE``
``ET_DYN``, no dynamic section        program   no loader takes it as a library
any other ``ET_DYN``                  library   libc.so.6 and the loader itself too, and
                                                what names a loader only to say its
                                                version when it is started (pam_cap.so)
``ET_REL``, ``ET_CORE``, the rest     None      the kernel and ld.so refuse it
====================================  ========  =========================================

Somebody who makes a file can make it look like a library and run all the same, by ld.so:
this finds the programs of honest linkers. Sources: elf(5); fs/binfmt_elf.c of Linux;
elf/dl-load.c of glibc; what ld, gold and lld do was read from what they made.
"""

from __future__ import annotations

import os
import stat
from struct import Struct as Layout
from typing import Literal, NamedTuple

from msgspec import Struct

ElfKind = Literal["program", "library"]

ET_EXEC, ET_DYN = 2, 3
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_DEBUG, DT_FLAGS_1 = 0, 21, 0x6FFFFFFB
DF_1_PIE = 0x08000000

# One read brings the header and, in nearly every file, the whole program header table.
_FIRST_READ_BYTES = 1024
# As the kernel: a larger table is not loaded (load_elf_phdrs).
_TABLE_LIMIT_BYTES = 65536
# Real ones have some 30 entries of 16 bytes.
_DYNAMIC_LIMIT_BYTES = 65536
# PATH_MAX, as the kernel.
_LOADER_LIMIT_BYTES = 4096
# pread takes a signed offset, and no file reaches this far.
_FURTHEST_OFFSET = 1 << 62


class ElfFacts(Struct, frozen=True):
    """What an ELF file is.

    Attributes:
        kind: ``program`` if execve or ``ld.so FILE`` would start it, else ``library``.
        loader: The loader that it asks for (PT_INTERP), empty if none.
        bits: 64 or 32.
    """

    kind: ElfKind
    loader: str
    bits: int


class _Layouts(NamedTuple):
    """How one class and byte order lays its structures out."""

    header: Layout  # from offset 16: type, phoff, phentsize, phnum
    segment: Layout  # type, offset, filesz
    entry: Layout  # tag, value


def _layouts(order: str) -> dict[int, _Layouts]:
    return {
        64: _Layouts(Layout(f"{order}H14xQ14xHH"), Layout(f"{order}I4xQ16xQ16x"), Layout(f"{order}QQ")),
        32: _Layouts(Layout(f"{order}H10xI10xHH"), Layout(f"{order}II8xI12x"), Layout(f"{order}II")),
    }


_LITTLE, _BIG = _layouts("<"), _layouts(">")
_HEADER_BYTES = 64


def read_elf(source: str | int) -> ElfFacts | None:
    """Read what an ELF file is, from a real path or an open descriptor.

    Opens without waiting (a FIFO gives None at once) and reads at most 130 KiB.

    Returns:
        None for anything that neither the kernel nor a loader would take, and for what
        cannot be read.
    """
    if isinstance(source, int):
        return _read_regular(source)
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    try:
        return _read_regular(fd)
    finally:
        os.close(fd)


def _read_regular(fd: int) -> ElfFacts | None:
    try:
        return read_elf_at(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None


def read_elf_at(fd: int) -> ElfFacts | None:
    """As `read_elf`, for a descriptor that is known to be of a regular file.

    Raises:
        OSError: The file cannot be read (a failing disk); what it is stays unknown.
    """
    first = os.pread(fd, _FIRST_READ_BYTES, 0)
    if not first.startswith(b"\x7fELF"):
        return None
    # The kernel goes by the machine and not by these two bytes; wrong ones are read as usual ones are.
    head = first[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0")  # and it takes what is missing for zeros
    bits = 32 if head[4] == 1 else 64
    layouts = (_BIG if head[5] == 2 else _LITTLE)[bits]
    kind, table_at, entry_bytes, count = layouts.header.unpack_from(head, 16)
    if kind not in (ET_EXEC, ET_DYN):
        return None
    segments: list[tuple[int, int, int]] = []
    if entry_bytes == layouts.segment.size:
        wanted = min(count * entry_bytes, _TABLE_LIMIT_BYTES)
        table = first[table_at : table_at + wanted]
        if len(table) < wanted:
            table = _read(fd, wanted, table_at)
        segments = list(layouts.segment.iter_unpack(table[: len(table) // entry_bytes * entry_bytes]))
    loader = _loader(fd, segments)
    if kind == ET_EXEC:
        return ElfFacts("program", loader, bits)
    if not any(segment[0] == PT_LOAD for segment in segments):
        return None
    dynamic = [segment for segment in segments if segment[0] == PT_DYNAMIC]
    is_program = not dynamic or any(_is_linked_as_program(fd, layouts.entry, part) for part in dynamic[:4])
    return ElfFacts("program" if is_program else "library", loader, bits)


def _read(fd: int, size: int, offset: int) -> bytes:
    return os.pread(fd, size, offset) if offset <= _FURTHEST_OFFSET else b""


def _loader(fd: int, segments: list[tuple[int, int, int]]) -> str:
    for kind, offset, size in segments:
        if kind == PT_INTERP:
            return os.fsdecode(_read(fd, min(size, _LOADER_LIMIT_BYTES), offset).partition(b"\0")[0])
    return ""


def _is_linked_as_program(fd: int, entry: Layout, dynamic: tuple[int, int, int]) -> bool:
    _kind, offset, size = dynamic
    raw = _read(fd, min(size, _DYNAMIC_LIMIT_BYTES), offset)
    for tag, value in entry.iter_unpack(raw[: len(raw) // entry.size * entry.size]):
        if tag == DT_NULL:
            return False
        if tag == DT_DEBUG or (tag == DT_FLAGS_1 and value & DF_1_PIE):
            return True
    return False
