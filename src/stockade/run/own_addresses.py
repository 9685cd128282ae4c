"""The addresses of this machine's interfaces, which no policy can open.

A worker that reached one of them would talk to a service of the host. Loopback is left
out here: the address table denies it, and `internal:` may open a port of it by name.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from stockade.net.address import IPAddress

_IPV4_TABLE = Path("/proc/net/fib_trie")
_IPV6_TABLE = Path("/proc/net/if_inet6")


def probe_own_addresses() -> frozenset[IPAddress]:
    """Read the interface addresses of the network namespace that this process is in."""
    return frozenset((*_read(_IPV4_TABLE, parse_fib_trie), *_read(_IPV6_TABLE, parse_if_inet6)))


def _read(path: Path, parse) -> list[IPAddress]:  # type: ignore[no-untyped-def]
    try:
        return list(parse(path.read_text(encoding="ascii")))
    except FileNotFoundError:  # this address family is not in the kernel
        return []


def parse_fib_trie(text: str) -> set[IPAddress]:
    """Addresses of the kernel's local table: a leaf line, then a line ``/32 host LOCAL``."""
    found: set[IPAddress] = set()
    leaf = ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            leaf = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            address = IPv4Address(leaf)
            if not address.is_loopback:
                found.add(address)
    return found


def parse_if_inet6(text: str) -> set[IPAddress]:
    """Addresses of ``/proc/net/if_inet6``: 32 hexadecimal digits first on each line."""
    addresses = {IPv6Address(int(line.split()[0], 16)) for line in text.splitlines() if line.strip()}
    return {address for address in addresses if not address.is_loopback}
