"""Any text gives a value, and two spellings of a host give one host."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from stockade.net.address import AddressClass, classify_address, judge_address
from stockade.net.endpoint import Endpoint, Url, parse_authority, parse_url
from stockade.net.host import MAX_RAW, Host, HostRefusal, parse_host, parse_policy_host

LABEL = st.from_regex(r"\A[a-z]([a-z0-9-]{0,10}[a-z0-9])?\Z")
NAMES = st.lists(LABEL, min_size=1, max_size=5).map(".".join)
IPV4 = st.integers(0, 2**32 - 1).map(IPv4Address)
IPV6 = st.integers(0, 2**128 - 1).map(IPv6Address)

# Text that looks like hosts finds more than noise does.
HOSTILE = st.lists(
    st.one_of(
        NAMES,
        st.sampled_from(
            [".", "..", "@", "\\", "%00", "\0", ":", "[", "]", "xn--", "0x7f", "127.1", "\u200b", "。", "ß"]
        ),
        IPV4.map(str),
        IPV6.map(str),
        st.text(max_size=5),
    ),
    max_size=6,
).map("".join)


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300), HOSTILE), st.booleans())
def test_any_text_is_a_host_or_a_refusal(text: bytes | str, is_bracketed: bool) -> None:
    host = parse_host(text, is_bracketed=is_bracketed)
    if isinstance(host, HostRefusal):
        assert len(host.raw) <= MAX_RAW
        assert host.raw.isascii()
        assert host.raw.isprintable() or host.raw == ""
    else:
        assert host.name.isascii()
        assert host.name == host.name.lower()
        assert not host.name.endswith(".")


@given(st.one_of(st.binary(max_size=300), HOSTILE))
def test_any_text_is_an_endpoint_and_a_url_or_a_refusal(text: bytes | str) -> None:
    endpoint = parse_authority(text, 443)
    assert isinstance(endpoint, Endpoint)
    assert 0 <= endpoint.port <= 65535
    assert endpoint.port > 0 or isinstance(endpoint.host, HostRefusal)
    url = parse_url(text)
    if isinstance(url, Url):
        assert url.path.startswith("/")
        assert url.path.isascii()


@given(HOSTILE)
def test_parsing_a_host_again_changes_nothing(text: str) -> None:
    host = parse_host(text, is_bracketed=False)
    if isinstance(host, Host):
        again = parse_host(host.name, is_bracketed=False)
        assert again == host
        assert isinstance(again, Host)
        assert again.address == host.address
        assert parse_policy_host(host.name) == host


@given(NAMES, st.randoms(use_true_random=False), st.booleans())
def test_case_and_a_final_dot_are_one_host(name: str, random: object, dot: bool) -> None:
    plain = parse_host(name)
    spelled = "".join(char.upper() if hash((char, index)) % 2 else char for index, char in enumerate(name))
    other = parse_host(spelled + ("." if dot else ""))
    if isinstance(plain, Host):
        assert other == plain
    else:
        assert isinstance(other, HostRefusal)


@given(IPV6)
def test_every_text_of_an_ipv6_address_is_one_host(address: IPv6Address) -> None:
    texts = (str(address), address.exploded, address.exploded.upper())
    hosts = [parse_host(f"[{text}]") for text in texts]
    assert len(set(hosts)) == 1
    assert all(isinstance(host, Host) and host.address == address for host in hosts)


@given(IPV4)
def test_number_spellings_of_an_ipv4_address_never_become_a_host(address: IPv4Address) -> None:
    number = int(address)
    octets = address.packed
    for text in (
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(map(hex, octets)),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
    ):
        refusal = parse_host(text)
        assert isinstance(refusal, HostRefusal), text
        assert refusal.guess == address


@given(IPV4)
def test_wrapping_never_makes_an_address_less_dangerous(address: IPv4Address) -> None:
    number = int(address)
    plain = classify_address(address)
    wrapped = (
        0xFFFF << 32 | number,
        0x64FF9B << 96 | number,
        0x2002 << 112 | number << 80 | 1,
        0x20010000 << 96 | (number ^ 0xFFFFFFFF),
        0x2606 << 112 | 0x5EFE << 32 | number,
    )
    for form in wrapped:
        outer = classify_address(IPv6Address(form))
        if plain is not AddressClass.PUBLIC:
            assert outer is not AddressClass.PUBLIC
        if plain is AddressClass.METADATA:
            assert outer is AddressClass.METADATA


@given(st.one_of(IPV4, IPV6))
def test_every_address_has_one_class_with_a_source(address: IPv4Address | IPv6Address) -> None:
    facts = judge_address(address)
    assert facts.row.source
    if isinstance(address, IPv6Address) and int(address) >> 125 != 1:
        assert facts.address_class is not AddressClass.PUBLIC
