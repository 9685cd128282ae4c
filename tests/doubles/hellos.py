"""ClientHellos, put together by hand from RFC 8446 4.1.2, so that each part can be made wrong."""

from __future__ import annotations

GREASE_ECH = (0xFE0D, b"\0\0\1\0\1\x2a\0\x20" + bytes(32) + b"\0\x90" + bytes(144))


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data


def server_name(*names: bytes, kind: int = 0) -> tuple[int, bytes]:
    entries = b"".join(bytes((kind,)) + len(name).to_bytes(2, "big") + name for name in names)
    return 0, len(entries).to_bytes(2, "big") + entries


def alpn(*protocols: bytes) -> tuple[int, bytes]:
    entries = b"".join(bytes((len(protocol),)) + protocol for protocol in protocols)
    return 16, len(entries).to_bytes(2, "big") + entries


def hello_message(extensions: list[tuple[int, bytes]] | None) -> bytes:
    """The handshake message: type, length, body. None leaves the extensions out altogether."""
    body = b"\3\3" + bytes(range(32)) + b"\x20" + bytes(32) + b"\0\4\x13\1\x13\2" + b"\1\0"
    if extensions is not None:
        block = b"".join(extension(kind, data) for kind, data in extensions)
        body += len(block).to_bytes(2, "big") + block
    return b"\1" + len(body).to_bytes(3, "big") + body


def in_records(message: bytes, *sizes: int) -> bytes:
    """The message in TLS records of these sizes, and the rest in one more."""
    records = b""
    for size in (*sizes, len(message)):
        part, message = message[:size], message[size:]
        if part:
            records += b"\x16\3\1" + len(part).to_bytes(2, "big") + part
    return records


def hello(name: bytes | None = b"app.test", *more: tuple[int, bytes]) -> bytes:
    """An ordinary hello, as one record."""
    names = [] if name is None else [server_name(name)]
    return in_records(hello_message([*names, (10, b"\0\2\0\x1d"), alpn(b"h2", b"http/1.1"), *more]))
