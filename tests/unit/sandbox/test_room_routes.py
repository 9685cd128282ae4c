"""The room's routes, as the kernel lists them (fib_trie, ipv6_route), and one that comes late."""

from __future__ import annotations

import pytest

from stockade.errors import ContainmentError
from stockade.sandbox import room
from stockade.sandbox.room import RoomTools, missing_routes, verify_routes

# Copied from /proc/net of a namespace furnished by iproute2 6.1 on Linux 6.18, and shortened.
FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 host LOCAL
     |-- 127.255.255.255
        /32 link BROADCAST
     |-- 198.18.0.1
        /32 host LOCAL
"""
NO_HOP = "00000000000000000000000000000000 00 00000000000000000000000000000000"
DEFAULT = (
    f"00000000000000000000000000000000 00 {NO_HOP} 00000400 00000001 00000000 80000001       lo\n"
    f"00000000000000000000000000000000 00 {NO_HOP} ffffffff 00000001 00000000 00200200       lo\n"
)
OF_ADDRESS = f"fdfe0000000000000000000000000001 80 {NO_HOP} 00000000 00000002 00000000 80200001       lo\n"
TOOLS = RoomTools(ip="/usr/sbin/ip", nft="/usr/sbin/nft")


def test_a_room_with_all_its_routes_lacks_none() -> None:
    assert missing_routes(FIB_TRIE, DEFAULT + OF_ADDRESS) == []
    assert missing_routes(FIB_TRIE, DEFAULT) == ["fdfe::1/128"]
    assert missing_routes(FIB_TRIE, OF_ADDRESS) == ["::/0"]
    assert missing_routes("", None) == ["0.0.0.0/0", "198.18.0.1/32"]


def test_the_route_of_an_address_may_come_a_moment_after_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A kernel thread puts it in: on a machine with more to do than processors it was missing at first.
    later = iter([DEFAULT, DEFAULT, DEFAULT + OF_ADDRESS])
    monkeypatch.setattr(
        room, "_read_net", lambda _pid, name: next(later) if name == "ipv6_route" else FIB_TRIE
    )
    verify_routes(1, TOOLS, has_ipv6=True)
    assert list(later) == []  # it was asked for until it was there


def test_a_route_that_does_not_come_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ROUTES_TIMEOUT_S", 0.01)
    monkeypatch.setattr(room, "_read_net", lambda _pid, name: DEFAULT if name == "ipv6_route" else FIB_TRIE)
    with pytest.raises(ContainmentError, match="lacks the local routes fdfe::1/128"):
        verify_routes(1, TOOLS, has_ipv6=True)
