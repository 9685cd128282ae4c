"""The field lines of an HTTP/1 head, and the few fields that say how a message is to be read."""

from __future__ import annotations

from stockade.protocol.framing import VALUE_BYTES, malformed
from stockade.vocabulary import Reason

MAX_FIELDS = 256
_HEAD_BYTES = VALUE_BYTES + b"\r\n"


def split_head(raw: bytes) -> list[bytes]:
    lines = raw[:-4].split(b"\r\n")
    if len(lines) - 1 > MAX_FIELDS:
        raise malformed(f"more than {MAX_FIELDS} fields", Reason.HEAD_TOO_LARGE)
    ends = len(lines) + 1
    if raw.count(b"\r") != ends or raw.count(b"\n") != ends:
        raise malformed("a CR or LF inside a line")
    if raw.translate(None, _HEAD_BYTES):
        raise malformed("a control character in a field")
    return lines


_NOTED = frozenset(
    (
        b"host", b"content-length", b"transfer-encoding", b"connection", b"proxy-connection", b"upgrade",
        b"expect", b"location",
    )
)  # fmt: skip


class Marks:
    """The few fields that say how a message is to be read."""

    __slots__ = ("_values", "options")

    def __init__(self, fields: tuple[tuple[bytes, bytes], ...]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in fields:
            if name in _NOTED:
                self._values.setdefault(name, []).append(value)
        self.options = self._read_options(b"connection") or self._read_options(b"proxy-connection")

    def one(self, name: bytes) -> bytes | None:
        """The value of a field that may stand once."""
        values = self._values.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise malformed(f"two {name.decode('ascii').title()} fields")
        return values[0]

    def all(self, name: bytes) -> list[bytes]:
        return self._values.get(name, [])

    def _read_options(self, name: bytes) -> frozenset[bytes]:
        values = self._values.get(name)
        return frozenset() if values is None else read_list(values)


def read_list(values: list[bytes]) -> frozenset[bytes]:
    """The lower-case members of a comma-separated list that may stand in several fields."""
    parts = b",".join(values).lower().split(b",")
    return frozenset([item for part in parts if (item := part.strip(b" \t"))])


def is_persistent(marks: Marks, minor: int) -> bool:
    if b"close" in marks.options:
        return False
    return minor == 1 or b"keep-alive" in marks.options
