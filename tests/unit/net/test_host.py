"""Host text: what every reader reads alike is a host, everything else is refused."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from stockade.net.host import Host, HostRefusal, escape_text, parse_host, parse_policy_host


def parsed(text: bytes | str) -> Host:
    host = parse_host(text)
    assert isinstance(host, Host), host
    return host


def refused(text: bytes | str) -> HostRefusal:
    host = parse_host(text)
    assert isinstance(host, HostRefusal), host
    return host


@pytest.mark.parametrize("text", ["example.com", "EXAMPLE.com", "example.com.", b"Example.COM."])
def test_case_and_one_final_dot_are_spelling_and_not_another_host(text: bytes | str) -> None:
    assert parsed(text) == Host("example.com")
    assert hash(parsed(text)) == hash(Host("example.com"))
    assert parsed(text).was_normalized is (text != "example.com")


@pytest.mark.parametrize("text", ["example.com..", ".example.com", "a..b", ".", "..", ""])
def test_empty_labels_are_refused(text: str) -> None:
    refused(text)


def test_lengths_end_where_rfc_1035_says() -> None:
    parsed("a" * 63 + ".test")
    refused("a" * 64 + ".test")
    longest = ".".join(["a" * 63] * 3 + ["a" * 61])
    assert len(longest) == 253
    parsed(longest)
    parsed(longest + ".")
    refused(longest + "a")


@pytest.mark.parametrize(
    "text", ["a_b.test", "_dmarc.example.com", "r3---sn-abc.test", "1e100.net", "3com.test", "a"]
)
def test_unusual_names_that_nobody_misreads_are_taken(text: str) -> None:
    assert parsed(text).name == text


@pytest.mark.parametrize(
    "text", ["-a.test", "a-.test", "a b.test", "a\tb.test", "a\x7f.test", "a,b.test", "a*.test", "a\r\n.test"]
)
def test_what_no_host_name_has_is_refused(text: str) -> None:
    refused(text)


# Spellings of 169.254.169.254 and 127.0.0.1 that inet_aton takes (glibc, and WHATWG URL 3.5).
ODD_IPV4 = {
    "2852039166": "169.254.169.254",
    "0xA9FEA9FE": "169.254.169.254",
    "0xa9.0xfe.0xa9.0xfe": "169.254.169.254",
    "0251.0376.0251.0376": "169.254.169.254",
    "169.254.43518": "169.254.169.254",
    "169.16689662": "169.254.169.254",
    "2130706433": "127.0.0.1",
    "0x7f000001": "127.0.0.1",
    "0177.0.0.1": "127.0.0.1",
    "127.1": "127.0.0.1",
    "0": "0.0.0.0",
    "0x": "0.0.0.0",
    "010.0.0.1": "8.0.0.1",
    "00000000000000000000000127.0.0.1": "87.0.0.1",
}


@pytest.mark.parametrize(("text", "address"), ODD_IPV4.items())
def test_r033_odd_ipv4_spellings_are_refused_and_read_as_a_browser_would(text: str, address: str) -> None:
    assert refused(text).guess == ip_address(address)


@pytest.mark.parametrize(
    "text", ["256.1.1.1", "1.2.3.4.5", "1.2.3.08", "foo.1", "foo.0x1", "4294967296", "1.2.3.256"]
)
def test_numbers_that_are_no_address_are_refused_without_a_guess(text: str) -> None:
    assert refused(text).guess is None


def test_a_dotted_quad_is_an_address() -> None:
    assert parsed("169.254.169.254").address == ip_address("169.254.169.254")
    assert not parsed("169.254.169.254").was_normalized
    assert parsed("169.254.169.254.").address == ip_address("169.254.169.254")
    assert parsed("169.254.169.254.").was_normalized


@pytest.mark.parametrize(
    "text", ["[2606:4700::1]", "[2606:4700:0:0::0001]", "[2606:4700:0000::1]", "[2606:4700::0.0.0.1]"]
)
def test_every_text_of_an_ipv6_address_is_one_host(text: str) -> None:
    host = parsed(text)
    assert host.name == "2606:4700::1"
    assert host.address == ip_address("2606:4700::1")
    assert host.was_normalized is (text != "[2606:4700::1]")


@pytest.mark.parametrize("text", ["[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]"])
def test_an_address_that_carries_another_one_counts_as_respelled(text: str) -> None:
    assert parsed(text).was_normalized


@pytest.mark.parametrize(
    "text", ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1", "::1]", "[::1]x", "[v1.x]", "[1.2.3.4]", "[]"]
)
def test_zones_and_broken_brackets_are_refused(text: str) -> None:
    refused(text)


def test_r064_brackets_are_for_ipv6_only() -> None:
    refused("[allowed.test]")
    parsed("[::1]")


def test_bare_ipv6_is_taken_only_where_no_port_can_follow() -> None:
    assert isinstance(parse_host("::1"), HostRefusal)
    assert parse_host("::1", is_bracketed=False) == Host("::1")
    assert parse_host("[::1]", is_bracketed=False) == Host("::1")


# What the reader that is fooled would dial: a C resolver at NUL, else WHATWG URL 3.5.
TRICKS = {
    "R025 NUL": (b"evil.test\x00.allowed.test", "evil.test"),
    "R025 escaped NUL": (b"evil.test%00.allowed.test", "evil.test"),
    "escaped letter": ("ex%61mple.test", "example.test"),
    "userinfo": ("allowed.test@evil.test", "evil.test"),
    "backslash": ("evil.test\\@allowed.test", "evil.test"),
    "slash": ("evil.test/.allowed.test", "evil.test"),
    "question mark": ("evil.test?.allowed.test", "evil.test"),
    "fragment": ("evil.test#@allowed.test", "evil.test"),
    "zero width": ("ev\u200bil.test", "evil.test"),
    "soft hyphen": ("ev\u00adil.test", "evil.test"),
    "full width": ("ｅｖｉｌ.test", "evil.test"),
    "ideographic full stop": ("evil。test", "evil.test"),
    "R021 Kelvin sign": ("\u212a.allowed.test", "k.allowed.test"),
    "circled metadata": ("①⑥⑨.②⑤④.①⑥⑨.②⑤④", ip_address("169.254.169.254")),
    "metadata before NUL": (b"169.254.169.254\x00.allowed.test", ip_address("169.254.169.254")),
    "metadata behind userinfo": ("allowed.test@169.254.169.254", ip_address("169.254.169.254")),
    "Cyrillic": ("еxample.test", "xn--xample-2of.test"),
}


@pytest.mark.parametrize(("text", "guess"), TRICKS.values(), ids=TRICKS)
def test_texts_that_two_readers_read_differently_are_refused(text: bytes | str, guess: object) -> None:
    assert refused(text).guess == guess


@pytest.mark.parametrize("byte", ["\x00", "%00", "\r", "\n", "\t", " ", "\x7f"])
def test_r025_separators_inside_a_name_are_refused_and_shown_escaped(byte: str) -> None:
    raw = refused(f"evil.test{byte}.allowed.test").raw
    assert raw.isascii()
    assert raw.isprintable()
    assert "evil.test" in raw


def test_r025_raw_bytes_appear_escaped() -> None:
    assert refused(b"evil.test\x00.allowed.test").raw == "evil.test\\x00.allowed.test"
    assert refused(b"\xff\xfe.test").raw == "\\xff\\xfe.test"


@pytest.mark.parametrize("secret", ["s3cret" * 10, "s3cret" * 100, "x@" + "s3cret" * 100, "\u1e9e\0" * 300])
@pytest.mark.parametrize("host", ["evil.test", "evil.test" * 100])
def test_r164_a_long_user_part_never_stands_without_its_at_sign(secret: str, host: str) -> None:
    """The record redacts what stands before an @: cutting the @ off would keep the password."""
    for text in (f"user:{secret}@{host}", f"user:{secret}@{host}".encode()):
        refusal = parse_host(text)
        assert isinstance(refusal, HostRefusal)
        assert refusal.raw.rpartition("@")[2][:9] == "evil.test"
        assert len(refusal.raw) <= 255


def test_r021_non_ascii_is_refused_on_the_wire_as_bytes_too() -> None:
    refused("\u212a.allowed.test".encode())
    refused("bücher.example")
    assert parsed("xn--bcher-kva.example").name == "xn--bcher-kva.example"


def test_r021_a_policy_entry_is_never_quietly_another_name() -> None:
    assert isinstance(parse_policy_host("\u0130.test"), HostRefusal)
    assert isinstance(parse_policy_host("\u212a.allowed.test"), HostRefusal)
    assert isinstance(parse_policy_host("ｅvil.test"), HostRefusal)


def test_r022_unicode_in_a_policy_and_punycode_on_the_wire_are_one_host() -> None:
    assert parse_policy_host("bücher.example") == parsed("xn--bcher-kva.example")
    assert parse_policy_host("Bücher.Example.") == parsed("XN--BCHER-KVA.example.")


# RFC 5891 5.4: an A-label must be the encoding of a valid U-label, and of nothing else.
@pytest.mark.parametrize("label", ["xn--a", "xn--", "xn--abc-", "xn--example-", "xn--7a"])
def test_punycode_that_idna_2008_does_not_permit_is_refused(label: str) -> None:
    refused(f"{label}.test")


def test_a_homograph_is_a_valid_name_of_its_own() -> None:
    assert parsed("xn--docs-pthon-3wi.example").name == "xn--docs-pthon-3wi.example"


def test_long_refusals_are_cut() -> None:
    assert len(refused("a" * 100_000).raw) == 255
    assert len(refused(b"\x00" * 100_000).raw) <= 255


def test_escaping_keeps_printable_ascii_and_nothing_else() -> None:
    assert escape_text("a\x1b[31m\\") == "a\\x1b[31m\\\\"
    assert escape_text("\udc80") == "\\udc80"
