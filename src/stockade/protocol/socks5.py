"""The server side of SOCKS5 (RFC 1928): CONNECT, and nothing else.

Method 0 (no authentication) is taken when it is offered: the room is the authentication,
since nobody outside it reaches this port. A client that insists on user and password
(RFC 1929) gets method 2 and any answer is right: such clients are configured with
something because they must be, and refusing them would protect nothing. What they send
is neither kept nor recorded.
"""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, HostRefusal, parse_host
from stockade.vocabulary import Reason

NO_AUTHENTICATION = 0
USER_AND_PASSWORD = 2
NO_METHOD = 0xFF
# The longest message is a CONNECT to a name of 255 bytes; a greeting is shorter.
MAX_MESSAGE = 513


CONNECT = 1
UDP_ASSOCIATE = 3
COMMAND_WORDS = {CONNECT: "CONNECT", 2: "BIND", UDP_ASSOCIATE: "UDP ASSOCIATE"}


class Reply(IntEnum):
    """RFC 1928 section 6."""

    SUCCEEDED = 0
    FAILURE = 1
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4
    REFUSED = 5
    COMMAND_NOT_SUPPORTED = 7
    ADDRESS_TYPE_NOT_SUPPORTED = 8


class Greeting(Struct, frozen=True):
    """The client's first message: `method` is what the server chooses of its offers."""

    method: int
    size: int


class Request(Struct, frozen=True):
    """What the client asks for (see `COMMAND_WORDS`), and how many bytes that took."""

    command: int
    destination: Endpoint
    size: int


def parse_greeting(data: bytes | bytearray) -> Greeting | None:
    """Read the method offers; None while bytes are missing.

    Raises:
        ProtocolViolation: ``not-the-protocol``.
    """
    _expect_version(data, 5)
    if len(data) < 2 or len(data) < 2 + data[1]:
        return None
    offers = data[2 : 2 + data[1]]
    method = next((m for m in (NO_AUTHENTICATION, USER_AND_PASSWORD) if m in offers), NO_METHOD)
    return Greeting(method, 2 + data[1])


def parse_credentials(data: bytes | bytearray) -> int | None:
    """Length of a user and password message (RFC 1929), None while bytes are missing.

    Raises:
        ProtocolViolation: ``not-the-protocol``.
    """
    _expect_version(data, 1)
    if len(data) < 2 or len(data) < 3 + data[1]:
        return None
    size = 3 + data[1] + data[2 + data[1]]
    return size if len(data) >= size else None


def parse_request(data: bytes | bytearray) -> Request | None:
    """Read the request; None while bytes are missing. The host may be a refusal.

    Raises:
        ProtocolViolation: ``not-the-protocol`` or ``malformed-request``.
    """
    _expect_version(data, 5)
    if len(data) < 5:
        return None
    if data[2] != 0:
        raise _malformed("a reserved byte that is not zero")
    end = 4 + _address_size(data)
    if len(data) < end + 2:
        return None
    port = data[end] << 8 | data[end + 1]
    return Request(data[1], Endpoint(_read_host(data[3], bytes(data[4:end])), port), end + 2)


def _address_size(data: bytes | bytearray) -> int:
    kind = data[3]
    if kind == 1:
        return 4
    if kind == 4:
        return 16
    if kind == 3:
        return 1 + data[4]
    raise _malformed("an unknown type of address")


def _read_host(kind: int, raw: bytes) -> Host | HostRefusal:
    if kind == 3:
        return parse_host(raw[1:], is_bracketed=False)
    address = IPv4Address(raw) if kind == 1 else IPv6Address(raw)
    return parse_host(str(address), is_bracketed=False)


def build_reply(reply: Reply) -> bytes:
    """A reply whose bound address is 0.0.0.0:0: what the gateway is bound to is nobody's business."""
    return bytes((5, reply, 0, 1, 0, 0, 0, 0, 0, 0))


def build_method_choice(method: int) -> bytes:
    return bytes((5, method))


# RFC 1929 section 2: version 1, status 0.
CREDENTIALS_TAKEN = b"\x01\x00"


def _expect_version(data: bytes | bytearray, version: int) -> None:
    if data and data[0] != version:
        raise ProtocolViolation(Reason.NOT_THE_PROTOCOL.value, "the first bytes are not SOCKS5")


def _malformed(message: str) -> ProtocolViolation:
    return ProtocolViolation(Reason.MALFORMED_REQUEST.value, message)
