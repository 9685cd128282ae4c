"""The few netfilter messages that we speak ourselves: bind an NFLOG group, read counters.

Packing and unpacking are pure; the two functions at the end talk over a socket that
was opened in the room. The kernel checks who opened it and who sends, so it works from
outside for the owner of the room's user namespace and for nobody else.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_NETFILTER = 0, 4, 12
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_ULOG_CONFIG = 4 << 8 | 1
_NFT_GET_OBJECT, _NFT_NEW_OBJECT = 10 << 8 | 19, 10 << 8 | 18
_NFPROTO_UNSPEC, _NFPROTO_INET = 0, 1

_CFG_CMD, _CFG_MODE, _CFG_QTHRESH, _CFG_FLAGS = 1, 2, 5, 6
_CMD_BIND, _COPY_PACKET, _FLAG_SEQ = 1, 2, 1
_OBJ_TABLE, _OBJ_NAME, _OBJ_DATA = 1, 2, 4
_COUNTER_PACKETS = 2

_HEADER = struct.Struct("=IHHII")
_NFGEN = struct.Struct("!BBH")


def _attribute(kind: int, value: bytes) -> bytes:
    padded = value + b"\0" * (-len(value) % 4)
    return struct.pack("=HH", 4 + len(value), kind) + padded


def _message(kind: int, flags: int, family: int, resource: int, attributes: bytes) -> bytes:
    body = _NFGEN.pack(family, 0, resource) + attributes
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def nflog_bind_messages(group: int, copy_bytes: int) -> tuple[bytes, ...]:
    """Bind a group, copy so many bytes of each packet, report each at once, number them."""
    flags = NLM_F_REQUEST | NLM_F_ACK

    def configure(attributes: bytes) -> bytes:
        return _message(_ULOG_CONFIG, flags, _NFPROTO_UNSPEC, group, attributes)

    return (
        configure(_attribute(_CFG_CMD, bytes([_CMD_BIND]))),
        configure(
            _attribute(_CFG_MODE, struct.pack("!IBB", copy_bytes, _COPY_PACKET, 0))
            + _attribute(_CFG_QTHRESH, struct.pack("!I", 1))
            + _attribute(_CFG_FLAGS, struct.pack("!H", _FLAG_SEQ))
        ),
    )


def counters_request(table: str) -> bytes:
    attributes = _attribute(_OBJ_TABLE, table.encode() + b"\0")
    return _message(_NFT_GET_OBJECT, NLM_F_REQUEST | NLM_F_DUMP, _NFPROTO_INET, 0, attributes)


def split_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each message in a datagram as (type, body)."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _flags, _seq, _pid = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            return
        yield kind, data[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def split_attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def parse_counter(body: bytes) -> tuple[str, int]:
    """Name and packet count of one named counter."""
    fields = split_attributes(body[_NFGEN.size :])
    name = fields[_OBJ_NAME].rstrip(b"\0").decode()
    packets = split_attributes(fields[_OBJ_DATA])[_COUNTER_PACKETS]
    return name, int.from_bytes(packets, "big")


def _raise_for(body: bytes) -> None:
    number = -struct.unpack_from("=i", body)[0]
    if number:
        raise OSError(number, os.strerror(number))


def apply_nflog_bind(channel: socket.socket, group: int, copy_bytes: int) -> None:
    """Make this netlink socket the listener of a group in the caller's network namespace."""
    for message in nflog_bind_messages(group, copy_bytes):
        channel.send(message)
        for kind, body in split_messages(channel.recv(4096)):
            if kind == _NLMSG_ERROR:
                _raise_for(body)


def read_counters(channel: socket.socket, table: str) -> dict[str, int]:
    """All named counters of a table in the room that this socket was opened in."""
    channel.send(counters_request(table))
    found: dict[str, int] = {}
    while True:
        data = channel.recv(1 << 16)
        if not data:
            raise OSError(errno.EPIPE, "netlink socket ended")
        for kind, body in split_messages(data):
            if kind == _NLMSG_DONE:
                return found
            if kind == _NLMSG_ERROR:
                _raise_for(body)
            elif kind == _NFT_NEW_OBJECT:
                name, packets = parse_counter(body)
                found[name] = packets
