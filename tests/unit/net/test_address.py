"""The address table. Classes come from the RFC or vendor page named in each row."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest

from stockade.net.address import (
    RANGES,
    AddressClass,
    carried_addresses,
    classify_address,
    classify_network,
    is_openable,
    judge_address,
)
from stockade.vocabulary import Risk

PUBLIC, RESERVED = AddressClass.PUBLIC, AddressClass.RESERVED

# The first and last address of each range of the IANA special-purpose registries (and the
# multicast registry), and what lies one step outside.
IPV4_EDGES = [
    ("0.0.0.0", "0.255.255.255", AddressClass.UNSPECIFIED, None, "1.0.0.0"),
    ("10.0.0.0", "10.255.255.255", AddressClass.PRIVATE, "9.255.255.255", "11.0.0.0"),
    ("100.64.0.0", "100.127.255.255", AddressClass.SHARED, "100.63.255.255", "100.128.0.0"),
    ("127.0.0.0", "127.255.255.255", AddressClass.LOOPBACK, "126.255.255.255", "128.0.0.0"),
    ("169.254.0.0", "169.254.255.255", AddressClass.LINK_LOCAL, "169.253.255.255", "169.255.0.0"),
    ("172.16.0.0", "172.31.255.255", AddressClass.PRIVATE, "172.15.255.255", "172.32.0.0"),
    ("192.0.0.0", "192.0.0.255", RESERVED, "191.255.255.255", "192.0.1.0"),
    ("192.0.2.0", "192.0.2.255", RESERVED, "192.0.1.255", "192.0.3.0"),
    ("192.88.99.0", "192.88.99.255", RESERVED, "192.88.98.255", "192.88.100.0"),
    ("192.168.0.0", "192.168.255.255", AddressClass.PRIVATE, "192.167.255.255", "192.169.0.0"),
    ("198.18.0.0", "198.19.255.255", RESERVED, "198.17.255.255", "198.20.0.0"),
    ("198.51.100.0", "198.51.100.255", RESERVED, "198.51.99.255", "198.51.101.0"),
    ("203.0.113.0", "203.0.113.255", RESERVED, "203.0.112.255", "203.0.114.0"),
    ("224.0.0.0", "239.255.255.255", AddressClass.MULTICAST, "223.255.255.255", None),
    ("240.0.0.0", "255.255.255.255", RESERVED, None, None),
]
IPV6_EDGES = [
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", None, "2001:200::"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff::1", "2001:db9::"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:ffff::1", "2003::"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", None, "3fff:1000::"),
]


@pytest.mark.parametrize(("first", "last", "expected", "before", "after"), IPV4_EDGES)
def test_ipv4_ranges_end_where_the_registry_says(
    first: str, last: str, expected: AddressClass, before: str | None, after: str | None
) -> None:
    assert classify_address(IPv4Address(first)) is expected
    assert classify_address(IPv4Address(last)) is expected
    for outside in filter(None, (before, after)):
        assert classify_address(IPv4Address(outside)) is PUBLIC


@pytest.mark.parametrize(("first", "last", "before", "after"), IPV6_EDGES)
def test_ipv6_ranges_end_where_the_registry_says(
    first: str, last: str, before: str | None, after: str | None
) -> None:
    assert classify_address(IPv6Address(first)) is not PUBLIC
    assert classify_address(IPv6Address(last)) is not PUBLIC
    for outside in filter(None, (before, after)):
        assert classify_address(IPv6Address(outside)) is PUBLIC


METADATA = [
    "169.254.169.254",  # EC2, GCE, Azure, OCI, OpenStack
    "169.254.170.2",  # ECS
    "169.254.170.23",  # EKS
    "168.63.129.16",  # Azure
    "100.100.100.200",  # Alibaba
    "192.0.0.192",  # Oracle Classic
    "fd00:ec2::254",  # EC2
    "fd00:ec2::23",  # EKS
    "fd20:ce::254",  # GCE
    "fd00:c1::a9fe:a9fe",  # OCI
    "fd00:42::42",  # Scaleway
]


@pytest.mark.parametrize("text", METADATA)
def test_metadata_addresses_are_named_and_their_neighbours_are_not(text: str) -> None:
    address = ip_address(text)
    assert classify_address(address) is AddressClass.METADATA
    assert judge_address(address).row.risk is Risk.METADATA_CREDENTIALS
    assert not is_openable(address)
    for neighbour in (address - 1, address + 1):
        assert classify_address(neighbour) is not AddressClass.METADATA


def test_neighbours_of_the_azure_address_are_public() -> None:
    assert classify_address(ip_address("168.63.129.15")) is PUBLIC
    assert classify_address(ip_address("168.63.129.17")) is PUBLIC


def test_all_of_ipv4_link_local_risks_credentials_and_ipv6_link_local_the_inside() -> None:
    assert judge_address(ip_address("169.254.0.1")).row.risk is Risk.METADATA_CREDENTIALS
    assert judge_address(ip_address("169.254.169.123")).row.risk is Risk.METADATA_CREDENTIALS
    assert judge_address(ip_address("fe80::1")).row.risk is Risk.SSRF
    assert classify_address(ip_address("febf::1")) is AddressClass.LINK_LOCAL
    assert classify_address(ip_address("fec0::1")) is RESERVED


@pytest.mark.parametrize(
    "text", ["1::", "100::1", "1000::", "1fff::1", "4000::", "5f00::1", "8000::1", "fb00::"]
)
def test_everything_outside_global_unicast_is_reserved(text: str) -> None:
    assert classify_address(ip_address(text)) is RESERVED


@pytest.mark.parametrize("text", ["2000::1", "2606:2800:220:1::1", "2a00:1450:4001::1", "3ffd::1"])
def test_ordinary_ipv6_is_public(text: str) -> None:
    assert classify_address(ip_address(text)) is PUBLIC


# Each form of 169.254.169.254 and 10.0.0.1 inside IPv6, written by hand from the RFC.
WRAPPED = {
    "mapped, RFC 4291 2.5.5.2": ("::ffff:a9fe:a9fe", "::ffff:10.0.0.1"),
    "compatible, RFC 4291 2.5.5.1": ("::169.254.169.254", "::a00:1"),
    "translated, RFC 2765 2.1": ("::ffff:0:a9fe:a9fe", "::ffff:0:a00:1"),
    "NAT64, RFC 6052 2.1": ("64:ff9b::a9fe:a9fe", "64:ff9b::a00:1"),
    "NAT64 local, as /96": ("64:ff9b:1::a9fe:a9fe", "64:ff9b:1:ffff::a00:1"),
    "NAT64 local, as /48, RFC 6052 2.2": ("64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a00:0:100::"),
    "NAT64 local, as /56": ("64:ff9b:1:00a9:fe:a9fe::", "64:ff9b:1:000a:00:0001::"),
    "NAT64 local, as /64": ("64:ff9b:1:0:a9:fea9:fe00:0", "64:ff9b:1:0:a:0:100:0"),
    "6to4, RFC 3056": ("2002:a9fe:a9fe::1", "2002:a00:1:1::1"),
    "Teredo client, RFC 4380 4": ("2001::5601:5601", "2001:0:5db8:d822:0:0:f5ff:fffe"),
    "Teredo server, RFC 4380 4": ("2001:0:a9fe:a9fe::", "2001:0:a00:1::"),
    "ISATAP, RFC 5214 6.1": ("2606:4700::5efe:a9fe:a9fe", "2606:4700::200:5efe:a00:1"),
    "ISATAP, link-local": ("fe80::5efe:a9fe:a9fe", "fe80::200:5efe:a00:1"),
}


@pytest.mark.parametrize(("metadata", "private"), WRAPPED.values(), ids=WRAPPED)
def test_ipv4_inside_ipv6_is_unwrapped_before_it_is_judged(metadata: str, private: str) -> None:
    assert classify_address(ip_address(metadata)) is AddressClass.METADATA
    assert IPv4Address("169.254.169.254") in carried_addresses(ip_address(metadata))
    assert IPv4Address("10.0.0.1") in carried_addresses(ip_address(private))
    assert classify_address(ip_address(private)) is not PUBLIC
    assert not is_openable(ip_address(private))


def test_a_wrapped_public_address_is_not_public_either() -> None:
    for text in ("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7"):
        assert classify_address(ip_address(text)) is RESERVED


def test_an_isatap_address_of_a_public_host_stays_public() -> None:
    assert classify_address(ip_address("2606:4700::5efe:808:808")) is PUBLIC


def test_loopback_and_unspecified_are_not_read_as_compatible_addresses() -> None:
    assert carried_addresses(ip_address("::")) == ()
    assert carried_addresses(ip_address("::1")) == ()
    assert classify_address(ip_address("::1")) is AddressClass.LOOPBACK
    assert classify_address(ip_address("::")) is AddressClass.UNSPECIFIED


def test_only_private_shared_and_loopback_can_be_opened() -> None:
    for text in ("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "127.0.0.1", "::1", "fd12::1"):
        assert is_openable(ip_address(text))
    for text in ("169.254.1.1", "0.0.0.0", "224.0.0.1", "192.0.2.1", "fe80::1", "8.8.8.8", "::ffff:10.0.0.1"):
        assert not is_openable(ip_address(text))


def test_a_network_has_the_class_of_the_narrowest_range_around_it() -> None:
    assert classify_network(ip_network("10.0.0.0/8")) is AddressClass.PRIVATE
    assert classify_network(ip_network("127.0.0.1/32")) is AddressClass.LOOPBACK
    assert classify_network(ip_network("10.0.0.0/7")) is PUBLIC
    assert classify_network(ip_network("0.0.0.0/0")) is PUBLIC
    assert classify_network(ip_network("169.254.169.254/32")) is AddressClass.METADATA


def test_every_row_names_its_source_and_no_row_stands_twice() -> None:
    assert all(row.source and row.note for row in RANGES)
    assert len({row.network for row in RANGES}) == len(RANGES)
