"""The room's telephone book: each name gets an address that means this name and nothing else.

A worker that looks a name up gets a synthetic address out of 198.18.0.0/15, whatever
the verdict; a connection to that address then carries the name, and no question has
left the machine. An address is never given to a second name in one run, since a
worker may keep it for as long as it likes.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from stockade.net.host import Host

# RFC 2544 benchmarking range: no real destination lives there, so nothing is hidden by its use.
POOL_FIRST = int(IPv4Address("198.18.0.2"))
POOL_LAST = int(IPv4Address("198.19.255.254"))
GATEWAY_ADDRESS = "198.18.0.1"
HTTP_PROXY_PORT = 3128
SOCKS5_PORT = 1080

# 131,069 addresses are in the pool; a worker that burns more names than this is not at work any more.
DEFAULT_NAME_LIMIT = 20_000


class NameTable:
    """Names of one room and their synthetic addresses.

    Args:
        limit: How many names the room may ask for in one run.
    """

    def __init__(self, limit: int = DEFAULT_NAME_LIMIT) -> None:
        self._limit = min(limit, POOL_LAST - POOL_FIRST + 1)
        self._address_of: dict[str, str] = {}
        self._host_at: dict[str, Host] = {}

    def __len__(self) -> int:
        return len(self._address_of)

    def address_for(self, host: Host) -> str | None:
        """The synthetic IPv4 address of a name, as text; None when the names are used up."""
        known = self._address_of.get(host.name)
        if known is not None:
            return known
        if len(self._address_of) >= self._limit:
            return None
        address = str(IPv4Address(POOL_FIRST + len(self._address_of)))
        self._address_of[host.name] = address
        self._host_at[address] = host
        return address

    def host_at(self, address: str) -> Host | None:
        """The name behind a dialled address, None if it was never given out."""
        return self._host_at.get(address)
