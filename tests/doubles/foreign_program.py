"""A program of 200 bytes that starts `id` by one calling convention or another, for x86-64.

It is loaded below 4 GB, so that its pointers are the same for a 32-bit call. If the call comes
back, it ends with the errno as its exit code.
"""

from __future__ import annotations

import struct

BASE, HEADERS = 0x400000, 64 + 56
TARGET = b"/usr/bin/id\0"
EXIT_WITH_ERRNO = bytes.fromhex("89c7 f7df b83c000000 0f05")  # mov edi,eax; neg edi; mov eax,60; syscall


def foreign_program(convention: str) -> bytes:
    """A static ELF executable.

    Args:
        convention: ``native``, ``x32`` (number 520 with its bit) or ``int80`` (the 32-bit execve, number 11).
    """
    texts_at = BASE + HEADERS + 64
    vector_at = texts_at + 16
    wide = convention == "native"
    if convention == "int80":  # mov eax,11; mov ebx,path; mov ecx,argv; xor edx,edx; int 0x80
        code = (
            b"\xb8\x0b\0\0\0\xbb" + _word(texts_at) + b"\xb9" + _word(vector_at) + bytes.fromhex("31d2 cd80")
        )
    else:  # mov eax,number; mov edi,path; mov esi,argv; xor edx,edx; syscall
        number = 59 if wide else 0x40000000 | 520
        code = b"\xb8" + _word(number) + b"\xbf" + _word(texts_at) + b"\xbe" + _word(vector_at)
        code += bytes.fromhex("31d2 0f05")
    vector = struct.pack("<2Q" if wide else "<2I", texts_at, 0)
    body = (code + EXIT_WITH_ERRNO).ljust(64, b"\x90") + TARGET.ljust(16, b"\0") + vector
    return _header(len(body)) + body


def _word(value: int) -> bytes:
    return struct.pack("<I", value)


def _header(body_bytes: int) -> bytes:
    """elf(5): an executable for x86-64 with one segment that is readable and executable."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    size = HEADERS + body_bytes
    head = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return ident + head + struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1000)
