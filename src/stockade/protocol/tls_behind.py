"""What a TLS client says behind its hello: whether it is a second hello.

A server may answer a hello by asking for another one (HelloRetryRequest, RFC 8446 4.1.4). The second
comes in clear text as well, should differ in little, and common servers go by the name in it. Nothing
else that a client sends in clear text names a host: so its records are looked at until one comes that
cannot stand before a second hello. Then the rest is the tunnel's.

Before it may stand what servers skip: compatibility records (ChangeCipherSpec), warnings, and early
data (RFC 8446 4.2.10), which a server that asks for another hello throws away unread.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.protocol.tls_hello import ClientHello, parse_client_hello

# Four times what servers throw away of early data (OpenSSL 3: SSL3_RT_MAX_PLAIN_LENGTH, BoringSSL: 16 KiB).
MAX_SKIPPED_BYTES = 65536

_CHANGE_CIPHER_SPEC, _ALERT, _HANDSHAKE, _APPLICATION_DATA = 20, 21, 22, 23
_CLIENT_HELLO = 1


class Behind(Struct, frozen=True):
    """What comes next.

    Attributes:
        size: Bytes at the start that are clear now and may go on.
        hello: The second hello, if it is one.
        is_over: No second hello can follow any more.
    """

    size: int
    hello: ClientHello | None = None
    is_over: bool = False


_OVER = Behind(0, is_over=True)


def measure_hello(data: bytes | bytearray) -> int:
    """The bytes that the whole hello at the start takes, with the heads of its records."""
    length = int.from_bytes(_first_bytes(data, 4)[1:4], "big") + 4
    at = 0
    while length > 0:
        size = data[at + 3] << 8 | data[at + 4]
        at += 5 + size
        length -= size
    return at


def read_behind(data: bytes | bytearray, has_early_data: bool) -> Behind | None:
    """Look at the next record of a client that has said hello; None while bytes are missing.

    Args:
        has_early_data: The first hello announced it; without that, data means that the handshake is over.

    Raises:
        ProtocolViolation: It begins a second hello that cannot be read.
    """
    if not data:
        return None
    if data[0] == _HANDSHAKE:
        if len(data) < 6:
            return None
        if data[5] != _CLIENT_HELLO:
            return _OVER
        hello = parse_client_hello(data)
        return None if hello is None else Behind(measure_hello(data), hello)
    if data[0] not in (_CHANGE_CIPHER_SPEC, _ALERT) and not (data[0] == _APPLICATION_DATA and has_early_data):
        return _OVER
    if len(data) < 5:
        return None
    size = 5 + (data[3] << 8 | data[4])
    return Behind(size) if len(data) >= size else None


def _first_bytes(data: bytes | bytearray, count: int) -> bytes:
    """The first bytes of the handshake message, whatever records they are cut into."""
    found, at = b"", 0
    while len(found) < count:
        size = data[at + 3] << 8 | data[at + 4]
        found += bytes(data[at + 5 : at + 5 + size])
        at += 5 + size
    return found[:count]
