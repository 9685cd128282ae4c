"""The first thing a TLS client says: which host it wants. Nothing is decrypted.

The parser takes a ClientHello apart far enough to read its names, out of as many
records and segments as a client cares to split it into, within limits. What cannot be
read in one way only is a `ProtocolViolation` with code ``malformed-tls``.

Encrypted ClientHello: browsers put an ECH extension with random content into every
hello (GREASE, RFC 9849 section 6.2), by design indistinguishable from a real one, so
its presence alone is no reason to refuse. Inside the room nobody is given ECH keys
(HTTPS and SVCB questions get an empty answer). What remains, a client that brings keys
of its own and hides a second name behind the permitted one at the same provider, is
the known limit of an end-to-end tunnel; docs/concepts/protocols.md says so.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.errors import ProtocolViolation
from stockade.net.host import Host, HostRefusal, parse_host
from stockade.vocabulary import Reason

# Hellos with post-quantum key shares take about 2 KB; 32 KiB leaves room for large tickets.
MAX_HELLO = 32 * 1024
# An honest hello may be split over records (RFC 8446 5.1); so many that reading them costs is hostile.
MAX_RECORDS = 64
MAX_RECORD = 16384

ACCESS_DENIED = 49
INTERNAL_ERROR = 80

_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_ALPN = 16
_EARLY_DATA = 42
_ESNI = 0xFFCE  # the draft before ECH: it takes the place of the name
_ECH = 0xFE0D


class ClientHello(Struct, frozen=True):
    """What of a ClientHello matters here.

    Attributes:
        name: The one host name of server_name, or its refusal; None if it names none.
        alpn: Protocols offered, in order.
        has_ech: There is an (outer, perhaps GREASE) ECH extension.
        has_early_data: It says that data follows before the server has answered.
    """

    name: Host | HostRefusal | None
    alpn: tuple[bytes, ...] = ()
    has_ech: bool = False
    has_early_data: bool = False


def build_alert(description: int) -> bytes:
    """A fatal alert in a plain record, as a server may send before its own hello."""
    return bytes((21, 3, 3, 0, 2, 2, description))


def looks_like_tls(first: int) -> bool:
    """True if a connection that begins with this byte begins with a handshake record."""
    return first == _HANDSHAKE


def parse_client_hello(data: bytes | bytearray) -> ClientHello | None:
    """Read the ClientHello at the start of what a client has sent.

    Returns:
        The hello, or None while bytes are missing.

    Raises:
        ProtocolViolation: ``not-the-protocol`` if it is no handshake at all,
            ``malformed-tls`` if it is one that cannot be read, ``head-too-large``.
    """
    message = _join_records(data)
    return None if message is None else _Hello(message).parse()


def _join_records(data: bytes | bytearray) -> bytes | None:
    """The whole handshake message, without its header; None while bytes are missing.

    Nothing is copied for a record that is not whole: a hello that comes byte by byte costs little.
    """
    parts: list[bytes] = []
    at = have = 0
    for _ in range(MAX_RECORDS):
        if len(data) < at + 5:
            _foresee_record(data, at)
            return None
        end = at + 5 + _read_record_header(data, at)
        is_whole = len(data) >= end
        parts.append(bytes(data[at + 5 : end if is_whole else at + 9]))
        have += min(len(data), end) - (at + 5)
        length = _read_message_header(parts[0] if len(parts[0]) >= 4 else b"".join(parts))
        if length is not None and have > 4 + length:
            raise _malformed("bytes behind the hello in its record")
        if not is_whole:
            return None
        if length is not None and have == 4 + length:
            return b"".join(parts)[4:]
        at = end
    raise _malformed(f"a hello in more than {MAX_RECORDS} records")


def _foresee_record(data: bytes | bytearray, at: int) -> None:
    """Refuse what can no longer become a handshake record, without waiting for the rest."""
    if len(data) > at and data[at] != _HANDSHAKE:
        raise _other_protocol(at)
    if len(data) > at + 1 and data[at + 1] != 3:
        raise _other_protocol(at)


def _read_record_header(data: bytes | bytearray, at: int) -> int:
    if data[at] != _HANDSHAKE or data[at + 1] != 3:
        raise _other_protocol(at)
    length = data[at + 3] << 8 | data[at + 4]
    if not 0 < length <= MAX_RECORD:
        raise _malformed("a record of impossible length")
    return length


def _other_protocol(at: int) -> ProtocolViolation:
    if at:
        return _malformed("another record inside the hello")
    return ProtocolViolation(Reason.NOT_THE_PROTOCOL.value, "the first bytes are not a TLS handshake")


def _read_message_header(message: bytes) -> int | None:
    """The length of the handshake message that begins here, once it can be read."""
    if message and message[0] != _CLIENT_HELLO:
        raise _malformed("a handshake that does not begin with a ClientHello")
    if len(message) < 4:
        return None
    length = message[1] << 16 | message[2] << 8 | message[3]
    if length > MAX_HELLO:
        raise ProtocolViolation(Reason.HEAD_TOO_LARGE.value, f"a hello of more than {MAX_HELLO} bytes")
    return length


class _Hello:
    """A cursor over one ClientHello (RFC 8446 4.1.2)."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def parse(self) -> ClientHello:
        self._skip(2 + 32)  # legacy_version, random
        if self._skip_vector(1) > 32:
            raise _malformed("a session id of impossible length")
        suites = self._skip_vector(2)
        if suites < 2 or suites % 2:
            raise _malformed("a list of cipher suites of impossible length")
        if self._skip_vector(1) < 1:
            raise _malformed("no compression methods")
        if self.at == len(self.data):
            return ClientHello(None)  # hellos without extensions exist, and they name nobody
        if self._number(2) != len(self.data) - self.at:
            raise _malformed("extensions that do not fill the hello")
        return self._parse_extensions()

    def _parse_extensions(self) -> ClientHello:
        data, at, end = self.data, self.at, len(self.data)
        seen: dict[int, bytes] = {}
        while at < end:
            if end - at < 4:
                raise _malformed("an extension that is cut short")
            kind = data[at] << 8 | data[at + 1]
            start = at + 4
            at = start + (data[at + 2] << 8 | data[at + 3])
            if at > end:
                raise _malformed("an extension longer than the hello")
            if kind in seen:
                raise _malformed("the same extension twice")
            seen[kind] = data[start:at] if kind in _READ else b""
        if _ESNI in seen or (_ECH in seen and seen[_ECH][:1] != b"\0"):
            raise _malformed("an encrypted name in place of the outer one")
        name = _parse_server_name(seen[_SERVER_NAME]) if _SERVER_NAME in seen else None
        alpn = _parse_alpn(seen[_ALPN]) if _ALPN in seen else ()
        return ClientHello(name, alpn, _ECH in seen, _EARLY_DATA in seen)

    def _number(self, size: int) -> int:
        start = self.at
        self._skip(size)
        return int.from_bytes(self.data[start : self.at], "big")

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise _malformed("a hello that is cut short")

    def _skip_vector(self, size: int) -> int:
        length = self._number(size)
        self._skip(length)
        return length


_READ = frozenset((_SERVER_NAME, _ALPN, _ECH))


def _parse_server_name(data: bytes) -> Host | HostRefusal:
    """The one name of a server_name extension (RFC 6066 section 3)."""
    if len(data) < 5 or (data[0] << 8 | data[1]) != len(data) - 2:
        raise _malformed("a server_name list of impossible length")
    if data[2] != 0:
        raise _malformed("a server_name that is no host name")
    length = data[3] << 8 | data[4]
    if length == 0:
        raise _malformed("an empty server_name")
    if length != len(data) - 5:
        raise _malformed("more or less than one server_name")
    return parse_host(data[5:])


def _parse_alpn(data: bytes) -> tuple[bytes, ...]:
    """The protocols of an ALPN extension (RFC 7301 3.1)."""
    if len(data) < 2 or (data[0] << 8 | data[1]) != len(data) - 2:
        raise _malformed("an ALPN list of impossible length")
    protocols = []
    at = 2
    while at < len(data):
        end = at + 1 + data[at]
        if end == at + 1 or end > len(data):
            raise _malformed("an ALPN entry of impossible length")
        protocols.append(data[at + 1 : end])
        at = end
    return tuple(protocols)


def _malformed(message: str) -> ProtocolViolation:
    return ProtocolViolation(Reason.MALFORMED_TLS.value, message)
