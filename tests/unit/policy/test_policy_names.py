"""Hosts in policies: one canonical form, and no form that could never match or match too much."""

from __future__ import annotations

import pytest
from policy_texts import load, load_rules, refused

from stockade.policy.load import load_policy_text
from stockade.policy.model import HostPattern
from stockade.policy.problems import PolicyError
from stockade.policy.suffixes import classify_suffix, shared_suffix_below


@pytest.mark.parametrize(
    ("pattern", "apex", "one", "two", "sibling"),
    [
        (HostPattern("x.test"), True, False, False, False),
        (HostPattern("x.test", True), False, True, True, False),
        (HostPattern("", True), True, True, True, True),
    ],
)
def test_r027_r028_apex_and_depth(
    pattern: HostPattern, apex: bool, one: bool, two: bool, sibling: bool
) -> None:
    asked = [pattern.matches(name) for name in ("x.test", "a.x.test", "a.b.x.test", "ax.test")]
    assert asked == [apex, one, two, sibling]


@pytest.mark.parametrize(
    ("written", "code", "remedy"),
    [
        ("https://allowed.test", "host-with-scheme", "write allowed.test"),
        ("http://allowed.test:8080/a", "host-with-scheme", "ports: [8080]"),
        ("allowed.test/org/*", "host-with-path", "paths: [/org/*]"),
        ("allowed.test/org", "host-with-path", "`proxy: allowed.test`"),
        ("allowed.test:8443", "host-with-port", "ports: [8443]"),
        ("user@allowed.test", "host-with-user", "write allowed.test"),
        (".allowed.test", "wildcard-misplaced", '"*.allowed.test"'),
        ("a.*.test", "wildcard-misplaced", '"*.test"'),
        ("*allowed.test", "wildcard-misplaced", '"*.allowed.test"'),
        ("*.*.test", "wildcard-misplaced", '"*.test"'),
        ("allowed..test", "host-malformed", None),
        ("-allowed.test", "host-malformed", None),
        ("allowed .test", "host-malformed", None),
        ("allowed\\\\.test", "host-malformed", None),
    ],
)
@pytest.mark.parametrize("level", ["allow", "proxy", "deny"])
def test_r027_pasted_forms_that_can_never_match_are_refused(
    level: str, written: str, code: str, remedy: str | None
) -> None:
    error = refused(f'- {level}: "{written}"')
    assert error.code == code
    if remedy:
        assert remedy in str(error.hint)


@pytest.mark.parametrize("level", ["allow", "deny"])
def test_r018_a_final_dot_is_the_same_host_and_a_glued_port_is_refused(level: str) -> None:
    policy = load(f"version: 1\nrules: [{{{level}: evil.test.}}]")
    assert policy.rules[0].host == HostPattern("evil.test")
    assert [note.code for note in policy.notes] == ["name-respelled"]
    assert refused(f"- {level}: evil.test:443").code == "host-with-port"
    assert refused(f"- {level}: evil.test..").code == "host-malformed"


def test_r020_capital_letters_are_the_same_host() -> None:
    policy = load("version: 1\nrules: [{allow: API.Allowed.TEST}]")
    assert policy.rules[0].host == HostPattern("api.allowed.test")
    assert policy.notes == ()


@pytest.mark.parametrize(
    "written",
    [
        "\u212a.allowed.test",  # Kelvin sign, lower-cases to k
        "\u0130.allowed.test",  # capital I with a dot
        "\uff41llowed.test",  # full-width a
        "allowed\u3002test",  # ideographic full stop
        "al\u200blowed.test",  # zero-width space
        "\u24d0llowed.test",  # circled a
    ],
)
@pytest.mark.parametrize("level", ["allow", "deny"])
def test_r021_a_lookalike_letter_never_becomes_an_ascii_one(level: str, written: str) -> None:
    assert refused(f'- {level}: "{written}"').code == "host-malformed"


@pytest.mark.parametrize("level", ["allow", "deny"])
def test_r022_a_unicode_name_is_the_name_that_clients_send(level: str) -> None:
    # RFC 3492 and IDNA 2008: the A-label of bücher is xn--bcher-kva
    unicode_form = load(f"version: 1\nrules: [{{{level}: bücher.example}}]")
    sent_form = load(f"version: 1\nrules: [{{{level}: xn--bcher-kva.example}}]")
    assert unicode_form.rules[0].host == sent_form.rules[0].host == HostPattern("xn--bcher-kva.example")
    assert unicode_form.digest == sent_form.digest
    assert [(note.code, note.message) for note in unicode_form.notes] == [
        ("name-converted", '"bücher.example" is xn--bcher-kva.example on the wire')
    ]


def test_r022_capital_letters_of_ascii_are_lowered_and_others_are_refused() -> None:
    assert load_rules("- allow: Bücher.EXAMPLE")[0].host == HostPattern("xn--bcher-kva.example")
    assert refused("- allow: BÜCHER.example").code == "host-malformed"


@pytest.mark.parametrize("byte", ["\\0", "%00", "\\r", "\\n", "\\t", " ", "\\x7f"])
def test_r025_no_control_character_gets_into_a_rule(byte: str) -> None:
    assert refused(f'- allow: "evil.test{byte}.allowed.test"').code == "host-malformed"


# addresses


@pytest.mark.parametrize(
    ("written", "named_range"),
    [
        ("169.254.169.254", "169.254.0.0/16"),
        ("127.0.0.1", "127.0.0.0/8"),
        ("10.0.0.5", "10.0.0.0/8"),
        ("fe80::1", "fe80::/10"),
        ('"[fe80::1]"', "fe80::/10"),
        ('"::1"', "::1/128"),
        ('"::ffff:169.254.169.254"', "169.254.0.0/16"),
        ('"fd00:ec2::254"', "fd00:ec2::254/128"),
        ("168.63.129.16", "168.63.129.16/32"),
        ("224.0.0.1", "224.0.0.0/4"),
        ("0.0.0.0", "0.0.0.0/8"),
        ('"::"', "::/128"),
    ],
)
@pytest.mark.parametrize("level", ["allow", "proxy"])
def test_r014_an_address_in_a_rule_is_refused_with_its_range(
    level: str, written: str, named_range: str
) -> None:
    error = refused(f"- {level}: {written}")
    assert error.code == "address-in-rule"
    assert named_range in error.message


@pytest.mark.parametrize(
    "written", ["127.0.0.0/8", "169.254.0.0/16", '"fe80::/10"', "93.184.216.0/24", '"[fe80::]/10"']
)
@pytest.mark.parametrize("level", ["allow", "proxy", "deny"])
def test_r014_r007_a_network_in_a_rule_is_refused(level: str, written: str) -> None:
    assert refused(f"- {level}: {written}").code == "network-in-rule"


def test_always_denied_and_openable_addresses_are_told_apart() -> None:
    assert "no rule can open it" in refused("- allow: 169.254.169.254").message
    assert "internal:" in str(refused("- allow: 10.0.0.5").hint)
    assert "no rule can open it" not in refused("- allow: 10.0.0.5").message


@pytest.mark.parametrize("written", ["0xA9FEA9FE", "2852039166", "0251.0376.0251.0376", "127.1"])
def test_an_odd_spelling_of_an_address_is_refused_with_what_a_browser_makes_of_it(written: str) -> None:
    error = refused(f"- allow: {written}")
    assert error.code == "host-malformed"
    assert "address 1" in str(error.hint)  # 169.254.169.254 or 127.0.0.1


def test_r007_a_single_address_can_be_denied() -> None:
    assert load_rules("- deny: 203.0.113.9")[0].host == HostPattern("203.0.113.9")
    assert load_rules('- deny: "[2001:DB8::1]"')[0].host == HostPattern("2001:db8::1")


@pytest.mark.parametrize(
    "name", ["metadata.google.internal", "METADATA.google.internal.", "instance-data.ec2.internal"]
)
@pytest.mark.parametrize("level", ["allow", "proxy"])
def test_a_metadata_name_cannot_be_opened(level: str, name: str) -> None:
    assert refused(f"- {level}: {name}").code == "metadata-name"


def test_a_metadata_name_can_be_denied() -> None:
    assert load_rules("- deny: metadata.google.internal")[0].host.name == "metadata.google.internal"


# wildcards


@pytest.mark.parametrize("written", ["*.com", "*.co.uk", "*.uk", "*.ck", "*.foo.ck", "*.COM.", "*"])
@pytest.mark.parametrize("level", ["allow", "proxy"])
def test_r088_a_wildcard_over_a_public_suffix_is_refused(level: str, written: str) -> None:
    error = refused(f'- {level}: "{written}"')
    assert error.code == "wildcard-too-broad"


@pytest.mark.parametrize(
    "written", ["*.example.com", "*.example.co.uk", "*.www.ck", "*.a.foo.ck", "*.github.io"]
)
def test_r088_a_wildcard_over_somebodys_own_name_loads(written: str) -> None:
    assert load_rules(f'- allow: "{written}"')[0].host.text == written


@pytest.mark.parametrize("written", ["*.com", "*"])
def test_wide_wildcards_may_be_denied(written: str) -> None:
    assert load_rules(f'- deny: "{written}"')[0].host.text == written


# Expected values: the Public Suffix List's own test vectors (test_psl.txt, public domain).
# checkPublicSuffix(x, null) says that x is itself a suffix.
_PSL_SUFFIXES = [
    "com",
    "biz",
    "uk.com",
    "ac.jp",
    "kyoto.jp",
    "ide.kyoto.jp",
    "c.kobe.jp",
    "ck",
    "test.ck",
    "us",
    "ak.us",
]
_PSL_DOMAINS = [
    "example.com",
    "domain.biz",
    "example.uk.com",
    "test.ac.jp",
    "city.kobe.jp",
    "b.c.kobe.jp",
    "www.ck",
    "b.test.ck",
]


@pytest.mark.parametrize("name", [*_PSL_SUFFIXES, "k12.ak.us"])
def test_what_the_list_calls_a_suffix_is_one(name: str) -> None:
    assert classify_suffix(name) in ("public", "shared")


@pytest.mark.parametrize("name", [*_PSL_DOMAINS, "test.k12.ak.us"])
def test_what_the_list_calls_a_domain_is_none(name: str) -> None:
    assert classify_suffix(name) is None


def test_shared_suffixes_and_unlisted_zones_have_their_own_kind() -> None:
    assert classify_suffix("github.io") == "shared"
    assert classify_suffix("test") == "zone"
    assert classify_suffix("xn--55qx5d.cn") == "public"  # 公司.cn in the list
    assert shared_suffix_below("amazonaws.com") is not None
    assert shared_suffix_below("example.org") is None


def test_an_unknown_level_of_faults_still_names_the_policy() -> None:
    with pytest.raises(PolicyError, match=r"^team\.yaml:1: "):
        load_policy_text("version: 3", "team.yaml")
