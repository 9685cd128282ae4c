"""Which socket of the room a connection belongs to, asked of the kernel (sock_diag(7)).

The question goes over a netlink socket that was opened in the room, so it is answered
for the room wherever it is asked from. The answer is an inode; `owner` then looks for
the process that holds it.

What must stay true: an inode is given only for the one socket that has both ends.

* The kernel's exact TCP look-up falls back to listeners. The worker's own server on
  the asking port is not the client, so the ends in the answer are compared.
* Look-ups name the device lo (1 in every namespace): a socket that the worker bound to
  the device is not found otherwise.
* UDP has no connections. The kernel's exact look-up scores sockets and may take the wrong
  one of several on a port, so all of that port are asked for, and if more than one could
  have sent the question, none is named.

Layouts: linux/inet_diag.h, linux/sock_diag.h; unchanged since 3.3.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable

from msgspec import Struct

from stockade.net.ends import Ends
from stockade.sandbox.netlink import NLM_F_DUMP, NLM_F_REQUEST, split_messages

_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_LOOPBACK_INDEX = 1
_ANY_STATE = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
# inet_diag_req_v2: family, protocol, extensions, padding, states; then inet_diag_sockid.
_REQUEST = struct.Struct("=BBBxI")
# inet_diag_sockid: both ports and addresses in network order; then device and cookie.
_PORTS = struct.Struct("!HH16s16s")
# inet_diag_msg: four bytes that begin with the family, sockid (48), expires, rqueue, wqueue, uid, inode.
_ANSWER_BYTES, _INODE_AT = 72, 68
_MAPPED = bytes(10) + b"\xff\xff"
_RECEIVE_BYTES = 1 << 16

Place = tuple[bytes, int]


class SocketRow(Struct, frozen=True):
    """One socket in an answer; addresses are 4 or 16 bytes, IPv4 in IPv6 is unwrapped.

    Attributes:
        remote: Zeros if it is not connected.
        inode: 0 if no process holds it any more.
    """

    local: Place
    remote: Place
    inode: int


# --- messages; pure ------------------------------------------------------------------------


def exact_request(ends: Ends, number: int) -> bytes:
    """Ask for the one TCP socket with these ends, seen from the worker's side."""
    family = socket.AF_INET if ends.far[0].version == 4 else socket.AF_INET6
    ids = _PORTS.pack(
        ends.worker[1], ends.far[1], _padded(ends.worker[0].packed), _padded(ends.far[0].packed)
    )
    return _request(family, socket.IPPROTO_TCP, NLM_F_REQUEST, number, ids)


def port_request(family: int, port: int, number: int) -> bytes:
    """Ask for all UDP sockets of a family that have this local port."""
    ids = _PORTS.pack(port, 0, bytes(16), bytes(16))
    return _request(family, socket.IPPROTO_UDP, NLM_F_REQUEST | NLM_F_DUMP, number, ids)


def _request(family: int, protocol: int, flags: int, number: int, ids: bytes) -> bytes:
    device = struct.pack("=I", _LOOPBACK_INDEX)
    body = _REQUEST.pack(family, protocol, 0, _ANY_STATE) + ids + device + _NO_COOKIE
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, flags, number, 0) + body


def _padded(packed: bytes) -> bytes:
    return packed.ljust(16, b"\0")


def parse_row(body: bytes) -> SocketRow | None:
    """Read one inet_diag_msg; None if it is cut short."""
    if len(body) < _ANSWER_BYTES:
        return None
    local_port, remote_port, local, remote = _PORTS.unpack_from(body, 4)
    return SocketRow(
        local=(_address(body[0], local), local_port),
        remote=(_address(body[0], remote), remote_port),
        inode=struct.unpack_from("=I", body, _INODE_AT)[0],
    )


def _address(family: int, raw: bytes) -> bytes:
    if family == socket.AF_INET:
        return raw[:4]
    return raw[12:] if raw[:12] == _MAPPED else raw


def pick_inode(ends: Ends, rows: Iterable[SocketRow]) -> int:
    """The inode of the one socket that these ends belong to; 0 if it is not there, or not certain."""
    worker, far = (ends.worker[0].packed, ends.worker[1]), (ends.far[0].packed, ends.far[1])
    if ends.is_tcp:
        found = [row for row in rows if row.local == worker and row.remote == far]
    else:
        found = [row for row in rows if _may_have_sent(row, worker, far)]
    return found[0].inode if len(found) == 1 else 0


def _may_have_sent(row: SocketRow, worker: Place, far: Place) -> bool:
    """A UDP socket sends from its port, from any address unless bound, to anybody unless connected."""
    sends_from_there = row.local[1] == worker[1] and (row.local[0] == worker[0] or not any(row.local[0]))
    return sends_from_there and (row.remote[1] == 0 or row.remote == far)


# --- the conversation ------------------------------------------------------------------------


class SocketTable:
    """The room's sockets, by the diagnosis socket that the room's builder handed out."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._channel.setblocking(False)  # the kernel answers within `send`
        self._number = 0

    def inode_of(self, ends: Ends) -> int:
        """The worker's socket with these ends; 0 if none is there or it is not certain which.

        Raises:
            OSError: The kernel does not answer such questions.
        """
        if ends.is_tcp:
            return pick_inode(ends, self._ask(exact_request(ends, self._next())))
        # An IPv6 socket may have asked an IPv4 server.
        families = (socket.AF_INET, socket.AF_INET6) if ends.far[0].version == 4 else (socket.AF_INET6,)
        port = ends.worker[1]
        return pick_inode(
            ends, [row for f in families for row in self._ask(port_request(f, port, self._next()))]
        )

    def _next(self) -> int:
        self._number = self._number % 0x7FFFFFFF + 1
        return self._number

    def _ask(self, request: bytes) -> list[SocketRow]:
        """All rows of the answer. What an earlier question left, because it failed, is passed over."""
        _length, _kind, flags, number, _port = _HEADER.unpack_from(request)
        self._channel.send(request)
        rows: list[SocketRow] = []
        while True:
            data = self._channel.recv(_RECEIVE_BYTES)
            if _HEADER.unpack_from(data)[3] != number:
                continue
            for kind, body in split_messages(data):
                if kind == _NLMSG_DONE:
                    return rows
                if kind == _NLMSG_ERROR:
                    return _none_or_raise(rows, -struct.unpack_from("=i", body)[0])
                row = parse_row(body)
                if row is not None:
                    rows.append(row)
            if not flags & NLM_F_DUMP:
                return rows


def _none_or_raise(rows: list[SocketRow], number: int) -> list[SocketRow]:
    if number == errno.ENOENT:  # there is no such socket
        return rows
    raise OSError(number, os.strerror(number))
