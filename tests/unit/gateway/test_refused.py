"""Packets as the kernel logs them, laid out by hand after RFC 791, 768, 9293, 8200."""

import struct
from ipaddress import ip_address

import pytest

from stockade.gateway.refused import RefusedLog, RefusedPacket, parse_packet
from stockade.net.ends import Ends


def ipv4(protocol: int, destination: str, payload: bytes, options: bytes = b"") -> bytes:
    words = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH", 0x40 | words, 0, 0, 0, 0, 64, protocol, 0)
    return head + ip_address("10.1.2.3").packed + ip_address(destination).packed + options + payload


def ipv6(next_header: int, destination: str, payload: bytes) -> bytes:
    return (
        struct.pack("!IHBB", 0x60000000, len(payload), next_header, 64)
        + ip_address("fd00::3").packed
        + ip_address(destination).packed
        + payload
    )


def ports(source: int, destination: int) -> bytes:
    return struct.pack("!HH", source, destination)


def tcp(destination: int, flags: int) -> bytes:
    return ports(40000, destination) + bytes(8) + struct.pack("!BB", 5 << 4, flags) + bytes(6)


@pytest.mark.parametrize(
    ("packet", "wanted", "asker"),
    [
        (ipv4(17, "8.8.8.8", ports(4000, 443) + bytes(4)), (17, "8.8.8.8", 443, False), ("10.1.2.3", 4000)),
        (
            ipv4(17, "8.8.8.8", ports(4000, 443), options=bytes(8)),
            (17, "8.8.8.8", 443, False),
            ("10.1.2.3", 4000),
        ),
        (ipv4(6, "203.0.113.9", tcp(80, 0x02)), (6, "203.0.113.9", 80, True), ("10.1.2.3", 40000)),
        (ipv4(6, "203.0.113.9", tcp(80, 0x12)), (6, "203.0.113.9", 80, False), ("10.1.2.3", 40000)),
        (ipv4(1, "8.8.8.8", b"\x08\x00" + bytes(6)), (1, "8.8.8.8", 0, False), None),
        (ipv6(17, "2001:db8::1", ports(1, 123) + bytes(4)), (17, "2001:db8::1", 123, False), ("fd00::3", 1)),
        (ipv6(58, "2001:db8::1", bytes(8)), (58, "2001:db8::1", 0, False), None),
    ],
)
def test_a_refused_packet_says_who_wanted_to_go_where(
    packet: bytes, wanted: tuple[int, str, int, bool], asker: tuple[str, int] | None
) -> None:
    protocol, text, port, is_syn = wanted
    destination, ends = ip_address(text), None
    if asker is not None:
        ends = Ends(protocol == 6, (ip_address(asker[0]), asker[1]), (destination, port))
    assert parse_packet(packet) == RefusedPacket(protocol, destination, port, is_syn, ends)


@pytest.mark.parametrize("length", range(20))
def test_a_packet_that_is_cut_short_tells_nothing(length: int) -> None:
    assert parse_packet(ipv4(17, "8.8.8.8", ports(1, 2))[:length]) is None


class FakeSocket:
    """Gives the messages of a netlink socket, then says that there are no more."""

    def __init__(self, *messages: bytes | OSError) -> None:
        self._messages = list(messages)

    def recv(self, _count: int) -> bytes:
        if not self._messages:
            raise BlockingIOError
        message = self._messages.pop(0)
        if isinstance(message, OSError):
            raise message
        return message


def logged(number: int) -> bytes:
    payload = ipv4(17, "8.8.8.8", ports(1, 443))
    attributes = struct.pack("=HH", 4 + len(payload), 9) + payload
    attributes += bytes(-len(attributes) % 4) + struct.pack("=HH", 8, 12) + struct.pack("!I", number)
    body = bytes(4) + attributes
    return struct.pack("=IHHII", 16 + len(body), 4 << 8, 0, 0, 0) + body


def test_a_gap_in_the_numbers_is_a_loss_and_not_silence() -> None:
    log = RefusedLog(FakeSocket(logged(0), logged(1), OSError(105, "ENOBUFS"), logged(5)))  # type: ignore[arg-type]
    assert len(list(log.read())) == 3
    assert (log.seen, log.lost) == (3, 3)  # 2, 3 and 4 never came


def test_without_a_gap_nothing_is_lost() -> None:
    log = RefusedLog(FakeSocket(logged(0) + logged(1), logged(2)))  # type: ignore[arg-type]
    assert len(list(log.read())) == 3
    assert (log.seen, log.lost) == (3, 0)
