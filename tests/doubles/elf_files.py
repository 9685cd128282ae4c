"""ELF files, put together by hand from elf(5), so that each part can be made wrong.

They hold no code: what reads them must go by their headers, as the kernel and the loader do.
"""

from __future__ import annotations

import struct

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_SONAME, DT_DEBUG, DT_FLAGS_1 = 1, 14, 21, 0x6FFFFFFB
DF_1_NOW, DF_1_PIE = 1, 0x08000000
LOADER = b"/lib64/ld-linux-x86-64.so.2"

PIE = ((DT_NEEDED, 1), (DT_DEBUG, 0), (DT_FLAGS_1, DF_1_NOW | DF_1_PIE))
PIE_OF_AN_OLD_LINKER = ((DT_NEEDED, 1), (DT_DEBUG, 0))
SHARED = ((DT_NEEDED, 1), (DT_SONAME, 9))
PLUGIN = ((DT_NEEDED, 1), (DT_FLAGS_1, DF_1_NOW))


def elf_file(
    kind: int = ET_DYN,
    *,
    loader: bytes | None = None,
    dynamic: tuple[tuple[int, int], ...] | None = None,
    is_loadable: bool = True,
    bits: int = 64,
    order: str = "<",
) -> bytes:
    """A file with a header, a program header table, and what that points to."""
    segment_bytes, header_bytes = (56, 64) if bits == 64 else (32, 52)
    parts: list[tuple[int, bytes]] = [(PT_LOAD, b"")] if is_loadable else []
    if loader is not None:
        parts.append((PT_INTERP, loader + b"\0"))
    if dynamic is not None:
        entry = f"{order}QQ" if bits == 64 else f"{order}II"
        parts.append((PT_DYNAMIC, b"".join(struct.pack(entry, *pair) for pair in (*dynamic, (0, 0)))))
    table, content = b"", b""
    content_at = header_bytes + segment_bytes * len(parts)
    for name, data in parts:
        table += segment(name, content_at + len(content), len(data), bits, order)
        content += data
    return header(kind, header_bytes, len(parts), bits, order) + table + content


def header(kind: int, table_at: int, count: int, bits: int = 64, order: str = "<") -> bytes:
    """The first 64 (or 52) bytes."""
    ident = b"\x7fELF" + bytes((2 if bits == 64 else 1, 1 if order == "<" else 2, 1)) + bytes(9)
    machine = 62 if bits == 64 else 3
    layout, sizes = (f"{order}HHIQQQIHHHHHH", (64, 56)) if bits == 64 else (f"{order}HHIIIIIHHHHHH", (52, 32))
    return ident + struct.pack(layout, kind, machine, 1, 0x1000, table_at, 0, 0, *sizes, count, 64, 0, 0)


def segment(kind: int, offset: int, size: int, bits: int = 64, order: str = "<") -> bytes:
    """One entry of the program header table."""
    if bits == 64:
        return struct.pack(f"{order}IIQQQQQQ", kind, 4, offset, offset, offset, size, size, 8)
    return struct.pack(f"{order}IIIIIIII", kind, offset, offset, offset, size, size, 4, 4)


PROGRAM = elf_file(loader=LOADER, dynamic=PIE)
LIBRARY = elf_file(dynamic=SHARED)
