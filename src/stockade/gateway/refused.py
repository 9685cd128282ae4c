"""Reading what the packet filter refused in the room, from its NFLOG socket.

The filter answers at once with an ICMP error or a reset; the log message only tells us
about it. Messages can be lost when a worker floods, and the kernel numbers them, so a
gap is counted and reported as a loss, never taken for silence.

Format: nfnetlink_log(7)-like messages as in linux/netfilter/nfnetlink_log.h; IPv4 header
RFC 791, IPv6 header RFC 8200 (extension headers are not followed: the next-header
number is what gets recorded).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

from stockade.net.address import IPAddress
from stockade.net.ends import Ends

_NFULNL_MSG_PACKET = (4 << 8) | 0  # NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET
_NFULA_PAYLOAD = 9
_NFULA_SEQ = 12
_NETLINK_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE_HEADER = struct.Struct("=HH")
_GENERIC_HEADER_BYTES = 4
RECEIVE_BYTES = 65536


class RefusedPacket(Struct, frozen=True):
    """One packet that the room's filter turned away.

    Attributes:
        protocol: IP protocol number (6 TCP, 17 UDP, 1 ICMP, 58 ICMPv6 …).
        port: Destination port of TCP and UDP, else 0.
        is_syn: A TCP packet that would have opened a connection.
        ends: Of TCP and UDP, whose packet it was.
    """

    protocol: int
    destination: IPAddress
    port: int
    is_syn: bool
    ends: Ends | None = None


class RefusedLog:
    """Turns the bytes of the NFLOG socket into packets, and counts those that are missing.

    Attributes:
        seen: Messages that arrived.
        lost: Messages that the kernel numbered and that never arrived.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._next = 0
        self.seen = 0
        self.lost = 0

    def read(self) -> Iterator[RefusedPacket]:
        """All packets that wait in the socket now."""
        while True:
            try:
                data = self._sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                return
            except OSError:  # ENOBUFS: the kernel dropped some; the numbers of the next ones tell how many
                continue
            if not data:
                return
            yield from self._messages(data)

    def _messages(self, data: bytes) -> Iterator[RefusedPacket]:
        offset = 0
        while offset + _NETLINK_HEADER.size <= len(data):
            length, kind, _flags, _seq, _pid = _NETLINK_HEADER.unpack_from(data, offset)
            if length < _NETLINK_HEADER.size:
                return
            if kind == _NFULNL_MSG_PACKET:
                packet = self._message(data[offset + _NETLINK_HEADER.size : offset + length])
                if packet is not None:
                    yield packet
            offset += (length + 3) & ~3

    def _message(self, body: bytes) -> RefusedPacket | None:
        self.seen += 1
        attributes = dict(_attributes(body[_GENERIC_HEADER_BYTES:]))
        number = attributes.get(_NFULA_SEQ)
        if number is not None:
            self._count(struct.unpack("!I", number)[0])
        return parse_packet(attributes.get(_NFULA_PAYLOAD, b""))

    def _count(self, number: int) -> None:
        self.lost += max(0, number - self._next)
        self._next = number + 1


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _ATTRIBUTE_HEADER.size <= len(data):
        length, kind = _ATTRIBUTE_HEADER.unpack_from(data, offset)
        if length < _ATTRIBUTE_HEADER.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTRIBUTE_HEADER.size : offset + length]
        offset += (length + 3) & ~3


def parse_packet(packet: bytes) -> RefusedPacket | None:
    """Read both ends of an IP packet; None if the copy is too short to tell."""
    source: IPAddress
    destination: IPAddress
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        header_bytes = (packet[0] & 0x0F) * 4
        protocol = packet[9]
        source, destination = IPv4Address(packet[12:16]), IPv4Address(packet[16:20])
    elif len(packet) >= 40 and packet[0] >> 4 == 6:
        header_bytes = 40
        protocol = packet[6]
        source, destination = IPv6Address(packet[8:24]), IPv6Address(packet[24:40])
    else:
        return None
    rest = packet[header_bytes:]
    port = int.from_bytes(rest[2:4], "big") if protocol in (6, 17, 33, 132, 136) and len(rest) >= 4 else 0
    # Flags of RFC 9293: FIN 1, SYN 2, RST 4, ACK 16; only SYN of the four opens a connection.
    is_syn = protocol == 6 and len(rest) > 13 and rest[13] & 0x17 == 0x02
    ends = None
    if protocol in (6, 17) and port:
        ends = Ends(protocol == 6, (source, int.from_bytes(rest[:2], "big")), (destination, port))
    return RefusedPacket(protocol, destination, port, is_syn, ends)
