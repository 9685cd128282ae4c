"""Questions to and answers of the kernel's socket table, laid out by hand after linux/inet_diag.h."""

from __future__ import annotations

import errno
import socket
import struct
from ipaddress import ip_address

import pytest

from stockade.net.ends import Ends
from stockade.sandbox.socket_diag import (
    SocketRow,
    SocketTable,
    exact_request,
    parse_row,
    pick_inode,
    port_request,
)


def ends(worker: str, port: int, far: str, far_port: int, *, is_tcp: bool = True) -> Ends:
    return Ends(is_tcp, (ip_address(worker), port), (ip_address(far), far_port))


TCP = ends("10.0.0.1", 40000, "203.0.113.9", 443)
UDP = ends("10.0.0.1", 40000, "9.9.9.9", 53, is_tcp=False)


def message(
    family: int, local: tuple[str, int], remote: tuple[str, int], inode: int, state: int = 1
) -> bytes:
    """struct inet_diag_msg: family, state, timer, retransmits; inet_diag_sockid (ports and addresses in
    network order, device, cookie); expires, rqueue, wqueue, uid, inode."""
    head = struct.pack("=BBBB", family, state, 0, 0)
    sockid = struct.pack("!HH", local[1], remote[1])
    sockid += socket.inet_pton(family, local[0]).ljust(16, b"\0")
    sockid += socket.inet_pton(family, remote[0]).ljust(16, b"\0")
    sockid += struct.pack("=III", 0, 0xAAAAAAAA, 0xBBBBBBBB)
    return head + sockid + struct.pack("=IIIII", 1, 2, 3, 1000, inode)


def framed(kind: int, body: bytes, number: int) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, number, 0) + body


def row(local: tuple[str, int], remote: tuple[str, int], inode: int) -> SocketRow:
    return SocketRow(
        (ip_address(local[0]).packed, local[1]), (ip_address(remote[0]).packed, remote[1]), inode
    )


def test_the_exact_question_has_the_layout_of_inet_diag_h() -> None:
    # nlmsghdr: 72 bytes, SOCK_DIAG_BY_FAMILY 20, REQUEST; inet_diag_req_v2: AF_INET, IPPROTO_TCP, all states;
    # sockid: source is the worker's end; device lo, the cookie that means any.
    expected = struct.pack("=IHHII", 72, 20, 1, 5, 0) + struct.pack("=BBBBI", 2, 6, 0, 0, 0xFFFFFFFF)
    expected += struct.pack("!HH", 40000, 443)
    expected += bytes([10, 0, 0, 1]) + bytes(12) + bytes([203, 0, 113, 9]) + bytes(12)
    expected += struct.pack("=III", 1, 0xFFFFFFFF, 0xFFFFFFFF)
    assert exact_request(TCP, 5) == expected


def test_the_question_for_a_port_asks_for_all_sockets_of_one_family() -> None:
    asked = port_request(socket.AF_INET6, 40000, 6)
    assert struct.unpack_from("=IHHII", asked) == (72, 20, 0x301, 6, 0)  # REQUEST | DUMP
    assert asked[16:18] == bytes([10, 17])
    assert asked[24:60] == struct.pack("!HH", 40000, 0) + bytes(32)


def test_an_answer_is_read_and_ipv4_in_ipv6_is_unwrapped() -> None:
    plain = parse_row(message(socket.AF_INET, ("10.0.0.1", 40000), ("203.0.113.9", 443), 77))
    assert plain == row(("10.0.0.1", 40000), ("203.0.113.9", 443), 77)
    six = parse_row(message(socket.AF_INET6, ("fd00::1", 1), ("2001:db8::1", 443), 78))
    assert six == row(("fd00::1", 1), ("2001:db8::1", 443), 78)
    mapped = parse_row(message(socket.AF_INET6, ("::ffff:10.0.0.1", 1), ("::ffff:203.0.113.9", 443), 79))
    assert mapped == row(("10.0.0.1", 1), ("203.0.113.9", 443), 79)


@pytest.mark.parametrize("length", [0, 1, 4, 52, 71])
def test_an_answer_that_is_cut_short_is_none(length: int) -> None:
    whole = message(socket.AF_INET, ("10.0.0.1", 40000), ("203.0.113.9", 443), 77)
    assert len(whole) == 72
    assert parse_row(whole[:length]) is None


@pytest.mark.parametrize(
    ("local", "remote", "inode"),
    [
        (("10.0.0.1", 40000), ("203.0.113.9", 443), 77),
        (("10.0.0.1", 40000), ("0.0.0.0", 0), 0),  # a listener on the asking port, which the kernel gives too
        (("0.0.0.0", 40000), ("0.0.0.0", 0), 0),
        (("10.0.0.2", 40000), ("203.0.113.9", 443), 0),
        (("10.0.0.1", 40001), ("203.0.113.9", 443), 0),
        (("10.0.0.1", 40000), ("203.0.113.9", 444), 0),
        (("203.0.113.9", 443), ("10.0.0.1", 40000), 0),  # the gateway's own end
    ],
)
def test_only_the_socket_with_both_ends_is_the_client(
    local: tuple[str, int], remote: tuple[str, int], inode: int
) -> None:
    assert pick_inode(TCP, [row(local, remote, 77)]) == inode


@pytest.mark.parametrize(
    ("local", "remote", "inode"),
    [
        (("0.0.0.0", 40000), ("0.0.0.0", 0), 77),
        (("10.0.0.1", 40000), ("0.0.0.0", 0), 77),
        (("10.0.0.1", 40000), ("9.9.9.9", 53), 77),
        (("::", 40000), ("::", 0), 77),  # an IPv6 socket may ask an IPv4 server
        (("10.0.0.2", 40000), ("0.0.0.0", 0), 0),
        (("10.0.0.1", 40001), ("0.0.0.0", 0), 0),
        (("10.0.0.1", 40000), ("9.9.9.9", 54), 0),
        (("10.0.0.1", 40000), ("8.8.8.8", 53), 0),
    ],
)
def test_a_datagram_comes_from_a_socket_that_could_have_sent_it(
    local: tuple[str, int], remote: tuple[str, int], inode: int
) -> None:
    assert pick_inode(UDP, [row(local, remote, 77)]) == inode


def test_of_two_sockets_that_could_have_sent_it_none_is_named() -> None:
    both = [row(("0.0.0.0", 40000), ("0.0.0.0", 0), 77), row(("10.0.0.1", 40000), ("9.9.9.9", 53), 78)]
    assert pick_inode(UDP, both) == 0
    assert pick_inode(UDP, [*both[:1], row(("0.0.0.0", 40000), ("8.8.8.8", 53), 78)]) == 77


class FakeChannel:
    """A netlink socket that answers with what it was given."""

    def __init__(self, *answers: bytes) -> None:
        self.asked: list[bytes] = []
        self._answers = list(answers)

    def setblocking(self, _flag: bool) -> None:
        pass

    def send(self, data: bytes) -> None:
        self.asked.append(data)

    def recv(self, _count: int) -> bytes:
        if not self._answers:
            raise BlockingIOError
        return self._answers.pop(0)


def table(*answers: bytes) -> SocketTable:
    return SocketTable(FakeChannel(*answers))  # type: ignore[arg-type]


FOUND = message(socket.AF_INET, ("10.0.0.1", 40000), ("203.0.113.9", 443), 77)
ERROR, DONE = 2, 3


def test_a_socket_that_is_not_there_is_0_and_a_kernel_that_will_not_answer_is_an_error() -> None:
    assert table(framed(20, FOUND, 1)).inode_of(TCP) == 77
    assert table(framed(ERROR, struct.pack("=i", -errno.ENOENT), 1)).inode_of(TCP) == 0
    with pytest.raises(OSError, match="not permitted"):
        table(framed(ERROR, struct.pack("=i", -errno.EPERM), 1)).inode_of(TCP)
    with pytest.raises(BlockingIOError):
        table().inode_of(TCP)


def test_what_an_earlier_question_left_is_passed_over() -> None:
    late = message(socket.AF_INET, ("10.0.0.1", 40000), ("203.0.113.9", 443), 66)
    asked = table(framed(20, late, 99), framed(20, FOUND, 1))
    assert asked.inode_of(TCP) == 77


def test_a_dump_is_read_to_its_end_for_both_families() -> None:
    v4 = message(socket.AF_INET, ("0.0.0.0", 40000), ("0.0.0.0", 0), 5)
    v6 = message(socket.AF_INET6, ("::", 40000), ("::", 0), 6)
    done1, done2 = framed(DONE, bytes(4), 1), framed(DONE, bytes(4), 2)
    assert table(framed(20, v4, 1), done1, done2).inode_of(UDP) == 5
    assert table(done1, framed(20, v6, 2) + done2).inode_of(UDP) == 6
    assert table(framed(20, v4, 1) + done1, framed(20, v6, 2), done2).inode_of(UDP) == 0  # either could have
