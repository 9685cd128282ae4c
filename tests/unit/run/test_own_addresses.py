"""The kernel's tables, as they look; the addresses in them are read by eye."""

from ipaddress import ip_address

from stockade.run.own_addresses import parse_fib_trie, parse_if_inet6, probe_own_addresses

FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.9.0.0/24 2 0 2
        |-- 10.9.0.0
           /24 link UNICAST
        |-- 10.9.0.2
           /32 host LOCAL
        |-- 10.9.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
"""
IF_INET6 = """\
00000000000000000000000000000001 01 80 10 80       lo
fd090000000000000000000000000002 02 40 00 80   range0
fe800000000000000000000000000042 02 40 20 80   range0
"""


def test_local_addresses_without_loopback_networks_and_broadcasts() -> None:
    assert parse_fib_trie(FIB_TRIE) == {ip_address("10.9.0.2")}


def test_ipv6_addresses_without_loopback() -> None:
    assert parse_if_inet6(IF_INET6) == {ip_address("fd09::2"), ip_address("fe80::42")}


def test_this_namespace_is_read() -> None:
    """In the range the host is 10.9.0.2; under a bare `unshare -n` there is loopback only."""
    own = probe_own_addresses()
    assert ip_address("127.0.0.1") not in own
    assert all(not address.is_loopback for address in own)
