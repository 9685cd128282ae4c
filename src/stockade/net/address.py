"""What kind of place an address is, by a table of our own.

`ipaddress.is_global` is not used: it calls 168.63.129.16, ``64:ff9b::a9fe:a9fe`` and
``::169.254.169.254`` public, and its answers differ between Python versions. Here every
range has a row with its source, the longest prefix wins, and whatever IPv6 space has no
row and lies outside 2000::/3 is reserved.

IPv4 travels inside IPv6 in many ways (mapped, compatible, translated, NAT64, 6to4,
Teredo, ISATAP). An address that carries another one is judged by both: the more
dangerous of the two decides, and no policy can open it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from msgspec import Struct

from stockade.vocabulary import Risk, Word

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class AddressClass(Word):
    """What an address leads to; exactly one for each address."""

    PUBLIC = "public"
    PRIVATE = "private"
    SHARED = "shared"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    METADATA = "metadata"
    MULTICAST = "multicast"
    UNSPECIFIED = "unspecified"
    RESERVED = "reserved"


# The more dangerous of an outer and an embedded address decides; later is worse.
_SEVERITY = {
    address_class: level
    for level, address_class in enumerate(
        (
            AddressClass.PUBLIC,
            AddressClass.RESERVED,
            AddressClass.MULTICAST,
            AddressClass.UNSPECIFIED,
            AddressClass.SHARED,
            AddressClass.PRIVATE,
            AddressClass.LOOPBACK,
            AddressClass.LINK_LOCAL,
            AddressClass.METADATA,
        )
    )
}

_OPENABLE = frozenset({AddressClass.PRIVATE, AddressClass.SHARED, AddressClass.LOOPBACK})


class AddressRange(Struct, frozen=True):
    """One row of the table.

    Attributes:
        network: The range.
        address_class: What lies there.
        risk: What reaching it would mean; None where only the destination's name can say.
        source: The document that sets the range aside.
        note: What it is, in a few words.
    """

    network: IPNetwork
    address_class: AddressClass
    risk: Risk | None
    source: str
    note: str


class AddressFacts(Struct, frozen=True):
    """How an address was judged.

    Attributes:
        address_class: The class that counts.
        row: The row that decided: of the address itself, or of the one that it carries.
        carried: The IPv4 addresses inside it, empty for a plain address.
    """

    address_class: AddressClass
    row: AddressRange
    carried: tuple[IPv4Address, ...] = ()

    @property
    def is_openable(self) -> bool:
        """True if an `internal:` entry may open it; never for wrapped addresses."""
        return self.address_class in _OPENABLE and not self.carried


_METADATA = (AddressClass.METADATA, Risk.METADATA_CREDENTIALS)
_PRIVATE = (AddressClass.PRIVATE, Risk.SSRF)
_LOOPBACK = (AddressClass.LOOPBACK, Risk.SSRF)
_MULTICAST = (AddressClass.MULTICAST, Risk.SSRF)
_UNSPECIFIED = (AddressClass.UNSPECIFIED, Risk.SSRF)
_RESERVED = (AddressClass.RESERVED, None)

_ROWS: tuple[tuple[str, tuple[AddressClass, Risk | None], str, str], ...] = (
    ("0.0.0.0/0", (AddressClass.PUBLIC, None), "RFC 791", "ordinary IPv4 space"),
    ("0.0.0.0/8", _UNSPECIFIED, "RFC 1122 3.2.1.3; RFC 6890", "this host on this network"),
    ("10.0.0.0/8", _PRIVATE, "RFC 1918", "private"),
    ("100.64.0.0/10", (AddressClass.SHARED, Risk.SSRF), "RFC 6598", "carrier-grade NAT, overlay networks"),
    ("100.100.100.200/32", _METADATA, "Alibaba Cloud, instance metadata", "metadata service"),
    ("127.0.0.0/8", _LOOPBACK, "RFC 1122 3.2.1.3", "loopback"),
    ("168.63.129.16/32", _METADATA, "Microsoft Azure, virtual public IP", "host agent of the platform"),
    ("169.254.0.0/16", (AddressClass.LINK_LOCAL, Risk.METADATA_CREDENTIALS), "RFC 3927", "link-local"),
    ("169.254.169.254/32", _METADATA, "EC2, GCE, Azure, OCI, OpenStack and others", "metadata service"),
    ("169.254.170.2/32", _METADATA, "Amazon ECS, task IAM roles", "task credentials"),
    ("169.254.170.23/32", _METADATA, "Amazon EKS, Pod Identity", "pod credentials"),
    ("172.16.0.0/12", _PRIVATE, "RFC 1918", "private"),
    ("192.0.0.0/24", _RESERVED, "RFC 6890", "IETF protocol assignments"),
    ("192.0.0.192/32", _METADATA, "Oracle Cloud Classic, instance metadata", "metadata service"),
    ("192.0.2.0/24", _RESERVED, "RFC 5737", "documentation"),
    ("192.88.99.0/24", _RESERVED, "RFC 7526", "6to4 relays, withdrawn"),
    ("192.168.0.0/16", _PRIVATE, "RFC 1918", "private"),
    ("198.18.0.0/15", _RESERVED, "RFC 2544", "benchmarking; the room's synthetic addresses"),
    ("198.51.100.0/24", _RESERVED, "RFC 5737", "documentation"),
    ("203.0.113.0/24", _RESERVED, "RFC 5737", "documentation"),
    ("224.0.0.0/4", _MULTICAST, "RFC 5771", "multicast"),
    ("240.0.0.0/4", _RESERVED, "RFC 1112 4; RFC 919", "future use and broadcast"),
    ("::/0", _RESERVED, "RFC 4291 2.4; IANA IPv6 address space", "not global unicast"),
    ("2000::/3", (AddressClass.PUBLIC, None), "RFC 4291 2.5.4", "global unicast"),
    ("::/128", _UNSPECIFIED, "RFC 4291 2.5.2", "unspecified"),
    ("::1/128", _LOOPBACK, "RFC 4291 2.5.3", "loopback"),
    ("::/96", _RESERVED, "RFC 4291 2.5.5.1", "IPv4-compatible"),
    ("::ffff:0:0/96", _RESERVED, "RFC 4291 2.5.5.2", "IPv4-mapped"),
    ("::ffff:0:0:0/96", _RESERVED, "RFC 2765 2.1", "IPv4-translated"),
    ("64:ff9b::/96", _RESERVED, "RFC 6052", "NAT64, well-known prefix"),
    ("64:ff9b:1::/48", _RESERVED, "RFC 8215", "NAT64, local-use prefix"),
    ("100::/64", _RESERVED, "RFC 6666", "discard only"),
    ("2001::/23", _RESERVED, "RFC 2928", "IETF protocol assignments, ORCHID, benchmarking"),
    ("2001::/32", _RESERVED, "RFC 4380", "Teredo"),
    ("2001:db8::/32", _RESERVED, "RFC 3849", "documentation"),
    ("2002::/16", _RESERVED, "RFC 3056; RFC 7526", "6to4"),
    ("3ffe::/16", _RESERVED, "RFC 3701", "6bone, returned"),
    ("3fff::/20", _RESERVED, "RFC 9637", "documentation"),
    ("5f00::/16", _RESERVED, "RFC 9602", "segment routing"),
    ("fc00::/7", _PRIVATE, "RFC 4193", "unique local"),
    ("fd00:42::42/128", _METADATA, "Scaleway, instance metadata", "metadata service"),
    ("fd00:c1::a9fe:a9fe/128", _METADATA, "Oracle Cloud, instance metadata", "metadata service"),
    ("fd00:ec2::23/128", _METADATA, "Amazon EKS, Pod Identity", "pod credentials"),
    ("fd00:ec2::254/128", _METADATA, "Amazon EC2, instance metadata", "metadata service"),
    ("fd20:ce::254/128", _METADATA, "Google Compute Engine, metadata server", "metadata service"),
    ("fe80::/10", (AddressClass.LINK_LOCAL, Risk.SSRF), "RFC 4291 2.5.6", "link-local"),
    ("fe80::a9fe:a9fe/128", _METADATA, "OpenStack, metadata over IPv6", "metadata service"),
    ("fec0::/10", (AddressClass.RESERVED, Risk.SSRF), "RFC 3879", "site-local, withdrawn"),
    ("ff00::/8", _MULTICAST, "RFC 4291 2.7", "multicast"),
)

RANGES: tuple[AddressRange, ...] = tuple(
    AddressRange(ip_network(text), address_class, risk, source, note)
    for text, (address_class, risk), source, note in _ROWS
)


def _plan_lookup(version: int) -> tuple[tuple[int, int, AddressRange], ...]:
    """Rows of one family as (mask, value, row), longest prefix first."""
    rows = sorted(
        (row for row in RANGES if row.network.version == version),
        key=lambda row: row.network.prefixlen,
        reverse=True,
    )
    return tuple((int(row.network.netmask), int(row.network.network_address), row) for row in rows)


_LOOKUP = {4: _plan_lookup(4), 6: _plan_lookup(6)}


def _row_of(address: IPAddress) -> AddressRange:
    number = int(address)
    # The last row of each family is its whole space, so there always is one.
    return next(row for mask, value, row in _LOOKUP[address.version] if number & mask == value)


def _carried_numbers(number: int) -> Iterator[int]:
    """The IPv4 addresses that an IPv6 address could stand for, as numbers."""
    low = number & 0xFFFFFFFF
    top96 = number >> 32
    if top96 in (0, 0xFFFF, 0xFFFF_0000, 0x0064_FF9B << 64):  # compatible, mapped, translated, NAT64
        if number > 1:  # :: and ::1 are no IPv4-compatible addresses (RFC 4291 2.5.5.1)
            yield low
    elif number >> 80 == 0x0064_FF9B_0001:  # local NAT64: the operator picks the length (RFC 6052 2.2)
        without_u = ((number >> 64) << 56) | (number & ((1 << 56) - 1))  # bits 64-71 are not part of it
        yield low
        yield from ((without_u >> shift) & 0xFFFFFFFF for shift in (40, 32, 24))
    elif number >> 112 == 0x2002:  # 6to4
        yield (number >> 80) & 0xFFFFFFFF
    elif number >> 96 == 0x2001_0000:  # Teredo: the server, and the client with its bits turned over
        yield (number >> 64) & 0xFFFFFFFF
        yield low ^ 0xFFFFFFFF
    if (number >> 32) & 0xFFFFFFFF in (0x0000_5EFE, 0x0200_5EFE):  # ISATAP, any prefix (RFC 5214 6.1)
        yield low


def carried_addresses(address: IPAddress) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside an IPv6 address, in the order of the ways to read it."""
    if isinstance(address, IPv4Address):
        return ()
    return tuple(IPv4Address(number) for number in dict.fromkeys(_carried_numbers(int(address))))


@lru_cache(maxsize=4096)
def judge_address(address: IPAddress) -> AddressFacts:
    """Judge an address by the table, wrapped ones by what they carry as well.

    The cache is bounded because the addresses come from the worker.
    """
    carried = carried_addresses(address)
    rows = [_row_of(address), *(_row_of(inner) for inner in carried)]
    row = max(rows, key=lambda candidate: _SEVERITY[candidate.address_class])
    return AddressFacts(row.address_class, row, carried)


def classify_address(address: IPAddress) -> AddressClass:
    """Say what kind of place an address is, judged by the number alone.

    The gateway asks this for every answer the resolver gives, after the name itself was
    permitted: a permitted name that points at 169.254.169.254 is the attack this exists
    for. What has no row of its own is ``RESERVED``, and no policy can open that.
    """
    return judge_address(address).address_class


def is_openable(address: IPAddress) -> bool:
    """True if an `internal:` entry may open this address: private, shared or loopback, not wrapped."""
    return judge_address(address).is_openable


def classify_network(network: IPNetwork) -> AddressClass:
    """The class of the narrowest row around a whole network; the policy loader asks for `internal:`.

    10.0.0.0/8 is private, 0.0.0.0/0 is not. Single metadata addresses inside a private network
    do not change its class: they are refused when they are judged.
    """
    around = [row for row in RANGES if _is_within(network, row.network)]
    return max(around, key=lambda row: row.network.prefixlen).address_class


def _is_within(inner: IPNetwork, outer: IPNetwork) -> bool:
    return (
        outer.version == inner.version
        and outer.prefixlen <= inner.prefixlen
        and int(inner.network_address) & int(outer.netmask) == int(outer.network_address)
    )
