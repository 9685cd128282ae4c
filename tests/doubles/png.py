"""A picture read back: PNG (RFC 2083), eight bits a channel, RGB or RGBA, not interlaced."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

Pixel = tuple[int, int, int]
_CHANNELS = {2: 3, 6: 4}  # color type: truecolor, truecolor with alpha


@dataclass(frozen=True)
class Picture:
    width: int
    height: int
    rows: list[bytes]
    channels: int

    def pixel(self, x: int, y: int) -> Pixel:
        red, green, blue = self.rows[y][x * self.channels : x * self.channels + 3]
        return red, green, blue

    def colors(self) -> set[Pixel]:
        return {self.pixel(x, y) for y in range(self.height) for x in range(self.width)}


def read_png(data: bytes) -> Picture:
    """Decode it; anything else than such a PNG fails an assertion."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    packed, at, head = b"", 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + length)[0]
        head = body if kind == b"IHDR" else head
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, color, _compression, _filter, interlaced = struct.unpack(">IIBBBBB", head)
    assert (depth, interlaced) == (8, 0)
    channels = _CHANNELS[color]
    return Picture(width, height, _rows(zlib.decompress(packed), width * channels, channels), channels)


def _rows(raw: bytes, size: int, step: int) -> list[bytes]:
    rows: list[bytes] = []
    above = bytes(size)
    for start in range(0, len(raw), size + 1):
        above = _restore(raw[start], bytearray(raw[start + 1 : start + 1 + size]), above, step)
        rows.append(above)
    return rows


def _restore(kind: int, row: bytearray, above: bytes, step: int) -> bytes:
    """Undo one of the five filters of RFC 2083, section 6."""
    for i in range(len(row)):
        left = row[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        up = above[i]
        guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        row[i] = (row[i] + guess) & 0xFF
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda near: abs(guess - near))
