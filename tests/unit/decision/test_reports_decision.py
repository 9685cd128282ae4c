"""Public fault reports that the engine and the host parser decide, each by its number.

`docs/reports.md` says what each one was. Those that need a gateway, a file or a kernel
are tested there as well; here is the part that is decided without them.
"""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from decision_texts import attempt_of, decide, engine_of
from msgspec.structs import replace

from stockade.decision.engine import Engine
from stockade.net.endpoint import parse_authority
from stockade.net.host import Host, HostRefusal, parse_host
from stockade.policy.load import load_policy_text
from stockade.vocabulary import Control, Entry, PlaceClass, Protocol, Reason, Risk, Verdict

PUBLIC = "93.184.216.34"
ALLOWED = 'rules: [{allow: allowed.test}, {allow: "*.allowed.test"}, {allow: allowed.test, ports: [80]}]'


# --- POLICY ---------------------------------------------------------------------------------


def test_r001_a_host_outside_the_list_is_refused_on_every_road() -> None:
    engine = engine_of("rules: [{allow: allowed.test}]")
    assert decide(engine, "GET https://allowed.test/", PUBLIC).verdict is Verdict.ALLOW
    for line in ("GET https://evil.test/", "GET http://evil.test/", "tcp evil.test 443", "dns evil.test"):
        assert decide(engine, line, PUBLIC).verdict is Verdict.DENY


def test_r004_another_policy_is_followed_at_once_by_a_new_engine() -> None:
    first, second = engine_of("rules: [{allow: a.test}]"), engine_of("rules: [{allow: b.test}]")
    assert decide(first, "GET https://a.test/").verdict is Verdict.ALLOW
    assert decide(second, "GET https://a.test/").verdict is Verdict.DENY
    assert decide(second, "GET https://b.test/").verdict is Verdict.ALLOW
    assert first.policy.digest != second.policy.digest


def test_r005_overlapping_entries_are_a_union_and_never_no_filter() -> None:
    engine = engine_of('rules: [{allow: api.allowed.test}, {allow: "*.allowed.test"}]')
    assert decide(engine, "GET https://api.allowed.test/").verdict is Verdict.ALLOW
    assert decide(engine, "GET https://evil.test/").verdict is Verdict.DENY


@pytest.mark.parametrize("order", [1, -1])
def test_r007_deny_wins_whatever_the_order_or_width(order: int) -> None:
    narrow = ['{allow: "*.corp.test"}', "{deny: five.corp.test}"][::order]
    wide = ["{allow: five.corp.test}", '{deny: "*.corp.test"}'][::order]
    assert decide(f"rules: [{', '.join(narrow)}]", "GET https://five.corp.test/").reason is Reason.LISTED_DENY
    assert decide(f"rules: [{', '.join(narrow)}]", "GET https://six.corp.test/").verdict is Verdict.ALLOW
    assert decide(f"rules: [{', '.join(wide)}]", "GET https://five.corp.test/").reason is Reason.LISTED_DENY


@pytest.mark.parametrize("entry", [Entry.TRANSPARENT, Entry.HTTP_PROXY, Entry.SOCKS5])
@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("GET https://allowed.test/", Verdict.ALLOW),
        ("GET http://allowed.test/", Verdict.ALLOW),
        ("GET https://evil.test/", Verdict.DENY),
        ("GET http://evil.test/", Verdict.DENY),
        ("GET http://169.254.169.254/", Verdict.DENY),
        ("GET http://127.1/", Verdict.DENY),
    ],
)
def test_r009_the_verdict_is_the_same_on_every_entry(entry: Entry, line: str, verdict: Verdict) -> None:
    assert decide(ALLOWED, line, entry=entry).verdict is verdict


def test_r012_deny_everything_hides_every_allow() -> None:
    engine = engine_of('rules: [{allow: allowed.test}, {deny: "*"}]')
    assert decide(engine, "GET https://allowed.test/").reason is Reason.LISTED_DENY


# --- NAME -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "authority", [b"evil.allowed.test:443", b"evil.allowed.test.:443", b"EVIL.allowed.test.:443"]
)
def test_r018_trailing_dot_does_not_bypass_deny(authority: bytes) -> None:
    engine = engine_of('rules: [{allow: "*.allowed.test"}, {deny: evil.allowed.test}]')
    endpoint = parse_authority(authority, 443)
    attempt = replace(attempt_of("GET https://x.allowed.test/"), host=endpoint.host, port=endpoint.port)
    assert engine.decide(attempt).reason is Reason.LISTED_DENY
    good = parse_authority(b"good.allowed.test.:443", 443).host
    assert engine.decide(replace(attempt, host=good)).verdict is Verdict.ALLOW


def test_r018_two_trailing_dots_are_malformed() -> None:
    assert decide(ALLOWED, "GET https://x.allowed.test../").reason is Reason.MALFORMED_HOST


def test_r018_a_port_glued_to_the_host_header_is_no_other_host() -> None:
    assert decide(ALLOWED, "GET http://allowed.test/", host="allowed.test:80").verdict is Verdict.ALLOW
    assert decide(ALLOWED, "GET http://allowed.test/", host="evil.test:80").reason is Reason.NAME_MISMATCH


def test_r020_upper_case_is_the_same_host_everywhere() -> None:
    for line in ("GET https://API.ALLOWED.TEST/", "GET http://Allowed.test/", "dns ALLOWED.test"):
        assert decide(ALLOWED, line).verdict is Verdict.ALLOW


def test_r021_a_letter_that_folds_to_ascii_is_refused() -> None:
    text = "rules: [{allow: k.allowed.test}]"
    assert decide(text, "GET https://k.allowed.test/").verdict is Verdict.ALLOW
    kelvin = parse_host("\u212a.allowed.test".encode())
    assert engine_of(text).decide(replace(attempt_of("GET https://k.allowed.test/"), host=kelvin)).reason is (
        Reason.MALFORMED_HOST
    )


@pytest.mark.parametrize("entry", ["bücher.example", "xn--bcher-kva.example"])
def test_r022_a_denied_idn_is_denied_however_the_policy_writes_it(entry: str) -> None:
    engine = engine_of(f'rules: [{{deny: "{entry}"}}, {{allow: "*.example"}}]')
    assert decide(engine, "GET https://xn--bcher-kva.example/").reason is Reason.LISTED_DENY
    assert decide(engine, "GET https://bücher.example/").verdict is Verdict.DENY
    assert decide(engine, "GET https://other.example/").verdict is Verdict.ALLOW


@pytest.mark.parametrize("separator", ["\0", "%00", "\r", "\n", "\t", " ", "\x7f"])
def test_r025_a_separator_before_the_allowed_suffix_is_refused(separator: str) -> None:
    host = parse_host(f"evil.test{separator}.allowed.test")
    assert isinstance(host, HostRefusal)
    decision = engine_of(ALLOWED).decide(
        replace(attempt_of("GET https://allowed.test/"), host=host), (ip_address(PUBLIC),)
    )
    assert (decision.reason, decision.control, decision.permit) == (
        Reason.MALFORMED_HOST,
        Control.CANONICALISE_HOST,
        None,
    )


@pytest.mark.parametrize(
    ("pattern", "open_to"),
    [("allowed.test", {"allowed.test"}), ("*.allowed.test", {"a.allowed.test", "a.b.allowed.test"})],
)
def test_r027_r028_what_a_name_and_a_star_cover(pattern: str, open_to: set[str]) -> None:
    engine = engine_of(f'rules: [{{allow: "{pattern}"}}]')
    for name in ("allowed.test", "a.allowed.test", "a.b.allowed.test", "xallowed.test", "test"):
        assert (decide(engine, f"GET https://{name}/").verdict is Verdict.ALLOW) == (name in open_to)


def test_r029_a_denial_names_the_missing_host_and_the_line_to_add() -> None:
    engine = engine_of("rules: [{allow: code.test}]")
    for name in ("api.code.test", "raw.codecontent.test"):
        why = decide(engine, f"GET https://{name}/").why
        assert f"`- allow: {name}` under `rules:`" in why


# --- ADDR -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:a9fe:a9fe", "0:0:0:0:0:ffff:10.0.0.1"]
)
def test_r030_mapped_addresses_are_denied_as_literal_and_as_answer(text: str) -> None:
    literal = decide(ALLOWED, f"GET http://[{text}]/")
    assert literal.verdict is Verdict.DENY
    assert literal.risk in (Risk.SSRF, Risk.METADATA_CREDENTIALS)
    answer = decide(ALLOWED, "GET https://allowed.test/", text)
    assert (answer.control, answer.risk) == (Control.CHECK_RESOLVED_ADDRESS, literal.risk)
    assert decide(ALLOWED, "GET https://allowed.test/", "2606:4700::1").verdict is Verdict.ALLOW


@pytest.mark.parametrize("text", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "169.254.43518"])
def test_r033_odd_spellings_are_refused_in_url_and_host_header(text: str) -> None:
    assert decide(ALLOWED, f"GET http://{text}/").reason is Reason.MALFORMED_HOST
    assert decide(ALLOWED, "GET http://allowed.test/", host=text).reason is Reason.MALFORMED_HOST


@pytest.mark.parametrize("answer", ["127.0.0.1", "127.8.8.8", "0.0.0.0", "::1", "::"])
def test_r034_a_permitted_name_that_resolves_to_loopback_is_denied(answer: str) -> None:
    denied = decide(ALLOWED, "GET https://local.allowed.test/", answer)
    assert (denied.verdict, denied.risk, denied.permit) == (Verdict.DENY, Risk.SSRF, None)


def test_r037_a_literal_is_denied_with_and_without_an_allowed_sni() -> None:
    for more in ({}, {"sni": "allowed.test"}):
        denied = decide(ALLOWED, f"GET https://{PUBLIC}/", PUBLIC, **more)
        assert (denied.reason, denied.permit) == (Reason.LITERAL_ADDRESS, None)


def test_r038_nothing_but_the_number_decides_about_a_literal() -> None:
    # The engine is pure: there is no look-up that a PTR record could answer.
    assert decide("rules: [{allow: allowed.test}]", f"tcp {PUBLIC} 443").reason is Reason.LITERAL_ADDRESS


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "169.254.170.2",
        "168.63.129.16",
        "metadata.google.internal",
        "instance-data",
    ],
)
def test_r039_metadata_is_denied_as_metadata_under_any_policy(host: str, method: str) -> None:
    text = 'rules: [{allow: "*.internal", ports: [80]}, {allow: "*.google.internal", ports: [80]}]'
    denied = decide(text, f"{method} http://{host}/")
    assert (denied.risk, denied.control, denied.place) == (
        Risk.METADATA_CREDENTIALS,
        Control.DENY_LINK_LOCAL_METADATA,
        PlaceClass.METADATA,
    )
    assert decide(text, "GET http://wiki.google.internal/").verdict is Verdict.ALLOW


def test_r039_the_hosts_own_name_for_containers_is_internal() -> None:
    denied = decide("rules: []", "GET http://host.docker.internal/")
    assert (denied.risk, denied.place) == (Risk.SSRF, PlaceClass.INTERNAL)


def test_r041_the_gateways_own_proxy_address_is_no_destination() -> None:
    engine = engine_of(ALLOWED, own_addresses=[ip_address("10.9.9.9")])
    assert decide(engine, "tcp 10.9.9.9 3128").reason is Reason.OWN_ADDRESS
    assert decide(engine, "GET https://allowed.test/", "10.9.9.9").reason is Reason.OWN_ADDRESS


def test_r042_an_internal_answer_says_so_with_the_address() -> None:
    denied = decide("rules: [{allow: intranet.test}]", "GET https://intranet.test/", "10.0.0.5")
    assert denied.reason is Reason.PRIVATE_ADDRESS
    assert denied.address == ip_address("10.0.0.5")
    assert "10.0.0.5" in denied.why


@pytest.mark.parametrize(
    "line", ["GET http://169.254.169.254/", "GET https://evil.test/", "GET http://127.0.0.1/"]
)
def test_r043_each_hop_is_a_decision_of_its_own(line: str) -> None:
    hop = decide(ALLOWED, line, came_from="https://allowed.test/")
    assert (hop.verdict, hop.control) == (Verdict.DENY, Control.RECHECK_REDIRECTS)
    good = decide(ALLOWED, "GET https://a.allowed.test/", came_from="https://allowed.test/")
    assert good.verdict is Verdict.ALLOW


# --- DNS, HTTP --------------------------------------------------------------------------------


def test_r044_secrets_in_labels_are_refused_by_name_and_called_what_they_are() -> None:
    secret = "deadbeef" * 5
    for kind in ("A", "AAAA", "TXT", "CNAME", "NULL"):
        denied = decide(ALLOWED, f"dns {secret}.x.evil.test {kind}")
        assert (denied.verdict, denied.risk) == (Verdict.DENY, Risk.EXFILTRATION)


def test_r045_the_name_is_judged_without_any_answer() -> None:
    assert decide(ALLOWED, "GET http://deadbeef.evil.test/").verdict is Verdict.DENY


def test_r048_a_resolver_over_https_is_known_for_one_and_lint_warns_of_broad_lists() -> None:
    denied = decide("rules: []", "POST https://cloudflare-dns.com/dns-query")
    assert (denied.place, denied.control) == (PlaceClass.RESOLVER, Control.OWN_RESOLVER_ONLY)


@pytest.mark.parametrize("answers", [(PUBLIC, "10.0.0.1"), ("10.0.0.1", PUBLIC), (PUBLIC, "::1")])
def test_r051_one_internal_answer_refuses_the_whole_name(answers: tuple[str, ...]) -> None:
    assert decide(ALLOWED, "GET https://allowed.test/", *answers).permit is None
    assert decide(ALLOWED, "GET https://allowed.test/", PUBLIC).permit is not None


def test_r055_a_listed_port_opens_that_port_only() -> None:
    engine = engine_of("rules: [{allow: allowed.test}]")
    assert decide(engine, "GET https://allowed.test/", PUBLIC).verdict is Verdict.ALLOW
    for _ in range(3):
        assert decide(engine, "tcp allowed.test 22", PUBLIC).reason is Reason.WRONG_PORT


def test_r060_r065_all_names_of_a_connection_must_agree() -> None:
    for more in ({"sni": "evil.test"}, {"host": "evil.test"}):
        assert decide(ALLOWED, "GET https://allowed.test/", PUBLIC, **more).reason is Reason.NAME_MISMATCH
    for sni in ("allowed.test", "ALLOWED.test", "allowed.test."):
        assert decide(ALLOWED, "GET https://allowed.test/", PUBLIC, sni=sni).verdict is Verdict.ALLOW


def test_r064_a_bracketed_name_is_not_the_name() -> None:
    assert decide(ALLOWED, "GET https://[allowed.test]/").reason is Reason.MALFORMED_HOST


def test_r069_the_verdict_depends_on_the_request_only() -> None:
    engine = engine_of(ALLOWED)
    attempt = attempt_of("GET https://evil.test/", entry=Entry.HTTP_PROXY)
    assert (
        engine.decide(attempt)
        == engine.decide(attempt)
        == engine.decide(replace(attempt, entry=Entry.SOCKS5))
    )


def test_r073_a_thousand_refusals_leave_the_next_request_alone() -> None:
    engine = engine_of(ALLOWED)
    for number in range(1000):
        assert decide(engine, f"GET https://evil{number}.test/").verdict is Verdict.DENY
    assert decide(engine, "GET https://allowed.test/", PUBLIC).verdict is Verdict.ALLOW


def test_names_from_the_worker_never_grow_the_engine_without_bound() -> None:
    from stockade.decision import engine as module

    engine = engine_of(ALLOWED)
    attempt = attempt_of("dns allowed.test")
    for number in range(module._CACHE_SIZE + 10):
        engine.decide(replace(attempt, host=Host(f"n{number}.evil.test")))
    assert len(engine._standings) <= module._CACHE_SIZE


def test_the_rubric_is_closed_to_the_agent_while_scoring_whatever_a_rule_says() -> None:
    text = "rules: [{allow: answers.test}]\nrubric: [answers.test]"
    policy = load_policy_text(f"version: 1\n{text}")
    scoring = engine_of(text, "scoring")
    assert decide(scoring, "GET https://answers.test/").risk is Risk.EVAL_CONTAMINATION
    assert decide(scoring, "dns answers.test").verdict is Verdict.DENY
    assert Engine(policy).decide(attempt_of("GET https://answers.test/")).verdict is Verdict.ALLOW
    assert Engine(policy).protocol_for(Host("answers.test"), 443) is Protocol.TLS
