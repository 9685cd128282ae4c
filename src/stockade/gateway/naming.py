"""Which command opened a connection: what the gateway asks of whoever can look.

The gateway knows sockets and the sandbox knows processes, and neither knows the other; `run`
hands in a `CommandNames`. It is asked before an attempt is recorded, and so before it is
answered: the process is mostly gone afterwards. Refusals are always asked for; what is let
through only if the operator wants it, so that its way is not a moment longer else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Protocol

from stockade.net.address import IPAddress
from stockade.net.ends import Ends

EndsOf = Callable[[], Ends | None]
"""Finds the ends of what an attempt came by, when they are wanted; None if they are not there any more."""

IP_PKTINFO, IPV6_PKTINFO = 8, 50
_DNS_PORT = 53


class CommandNames(Protocol):
    """Names commands, and what was let through as well if `names_all`."""

    names_all: bool

    def name(self, ends: Ends | None) -> Mapping[str, object] | None:
        """The fields of a record's ``command``; None if it is not known."""


def ends_of_connection(sock: socket.socket) -> Ends | None:
    """Both ends of an accepted connection; None if it is gone."""
    try:
        peer, dialled = sock.getpeername(), sock.getsockname()
    except OSError:
        return None
    return Ends(True, (_address(peer[0]), peer[1]), (_address(dialled[0]), dialled[1]))


def ends_of_question(asker: tuple[str, int], control: list[tuple[int, int, bytes]]) -> Ends | None:
    """Both ends of a datagram, with the packet info that says which address was asked (ip(7), ipv6(7))."""
    for _level, kind, data in control:
        if kind == IP_PKTINFO:
            asked: IPAddress = IPv4Address(data[8:12])
        elif kind == IPV6_PKTINFO:
            asked = IPv6Address(data[:16])
        else:
            continue
        return Ends(False, (_address(asker[0]), asker[1]), (asked, _DNS_PORT))
    return None


def _address(text: str) -> IPAddress:
    return ip_address(text.partition("%")[0])
