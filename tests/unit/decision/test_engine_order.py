"""How an attempt is decided: the order and the example table of docs/concepts/decisions.md, by level."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from decision_texts import attempt_of, decide, engine_of, words
from msgspec.structs import replace

from stockade.decision.engine import Engine
from stockade.net.host import Host
from stockade.policy.model import DENY_ALL
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Reason, Risk, Verdict

PUBLIC = "93.184.216.34"

CORP = 'rules: [{allow: "*.corp.test"}, {proxy: api.corp.test, methods: [GET]}]'
HUB = "rules: [{allow: hub.test}]\nrubric: [{host: hub.test, paths: [/a/**]}]"
APP = """
rules:
  - {allow: "*.corp.test", ports: [443]}
  - {allow: "*.corp.test", ports: [8080], protocol: http}
internal: [{host: app.corp.test, networks: [10.20.0.0/24], ports: [8080]}]
"""

# The example table by rows: policy, phase, line, answers, verdict, reason, risk (None: the table says none).
EXAMPLES = [
    (CORP, "work", "POST https://api.corp.test/x", [], "deny", "method-not-permitted", None),
    (CORP, "work", "GET https://wiki.corp.test/", [], "allow", "rule-allows", None),
    (HUB, "scoring", "GET https://hub.test/b", [], "deny", "rubric-in-scoring", None),
    (HUB, "work", "GET https://hub.test/b", [], "allow", "rule-allows", None),
    (APP, "work", "GET http://app.corp.test:8080/", ["10.20.0.5"], "allow", "rule-allows", None),
    (APP, "work", "GET https://app.corp.test/", ["10.20.0.5"], "deny", "private-address", "ssrf"),
    (
        APP,
        "work",
        "GET http://app.corp.test:8080/",
        ["10.20.0.5", "169.254.169.254"],
        "deny",
        "metadata-address",
        "metadata-credentials",
    ),
    (APP, "work", "GET http://10.20.0.5:8080/", [], "deny", "private-address", "ssrf"),
]


@pytest.mark.parametrize(("policy", "phase", "line", "answers", "verdict", "reason", "risk"), EXAMPLES)
def test_the_example_table(
    policy: str, phase: str, line: str, answers: list[str], verdict: str, reason: str, risk: str | None
) -> None:
    decision = decide(engine_of(policy, phase), line, *answers)
    assert (decision.verdict.word, str(decision.reason)) == (verdict, reason)
    assert risk is None or decision.risk == risk


def test_the_wrong_operation_is_called_by_its_control() -> None:
    assert decide(CORP, "POST https://api.corp.test/x").control is Control.OPERATION_SCOPE


# --- the list ------------------------------------------------------------------------------


def test_without_a_policy_everything_is_denied() -> None:
    engine = Engine(DENY_ALL)
    for line in (
        "GET https://docs.test/",
        "GET http://docs.test/",
        "tcp docs.test 22",
        "udp docs.test 53",
        "dns docs.test",
        "exec true",
        "socket /run/x.sock",
        "GET http://93.184.216.34/",
    ):
        assert decide(engine, line, PUBLIC).verdict is Verdict.DENY


def test_a_bare_name_is_that_host_only_and_a_star_is_any_depth_below() -> None:
    exact, below = "rules: [{allow: docs.test}]", 'rules: [{allow: "*.docs.test"}]'
    assert decide(exact, "GET https://docs.test/").verdict is Verdict.ALLOW
    assert decide(exact, "GET https://a.docs.test/").verdict is Verdict.DENY
    assert decide(below, "GET https://docs.test/").verdict is Verdict.DENY
    assert decide(below, "GET https://a.docs.test/").verdict is Verdict.ALLOW
    assert decide(below, "GET https://a.b.docs.test/").verdict is Verdict.ALLOW
    assert decide(below, "GET https://adocs.test/").verdict is Verdict.DENY


@pytest.mark.parametrize("order", [0, 1])
def test_deny_wins_over_allow_whatever_the_order_and_width(order: int) -> None:
    rules = ['{allow: "*.docs.test"}', "{deny: bad.docs.test}"]
    text = f"rules: [{', '.join(rules[::-1] if order else rules)}]"
    assert decide(text, "GET https://bad.docs.test/").reason is Reason.LISTED_DENY
    assert decide(text, "GET https://good.docs.test/").verdict is Verdict.ALLOW
    wide = 'rules: [{allow: good.docs.test}, {deny: "*.docs.test"}]'
    assert decide(wide, "GET https://good.docs.test/").reason is Reason.LISTED_DENY


def test_a_more_specific_allow_does_not_beat_a_proxy_level() -> None:
    text = 'rules: [{allow: api.docs.test}, {proxy: "*.docs.test", methods: [GET]}]'
    assert decide(text, "POST https://api.docs.test/").reason is Reason.METHOD_NOT_PERMITTED
    assert decide(text, "GET https://api.docs.test/").verdict is Verdict.PROXY


def test_a_denial_of_one_port_leaves_the_others() -> None:
    text = "rules: [{allow: docs.test}, {deny: docs.test, ports: [8443]}]"
    assert decide(text, "GET https://docs.test/").verdict is Verdict.ALLOW
    assert decide(text, "GET https://docs.test:8443/").reason is Reason.LISTED_DENY
    assert decide(text, "dns docs.test").verdict is Verdict.ALLOW


def test_a_denial_binds_the_grader_too() -> None:
    text = "rules: [{allow: docs.test, identities: [grader]}, {deny: docs.test}]"
    assert decide(engine_of(text, identity="grader"), "GET https://docs.test/").reason is Reason.LISTED_DENY


def test_right_host_wrong_port_or_protocol() -> None:
    text = "rules: [{allow: docs.test}]"
    assert words(decide(text, "GET https://docs.test:8443/")) == ("deny", "benign", "wrong-port")
    assert words(decide(text, "GET http://docs.test/")) == ("deny", "benign", "wrong-port")
    assert words(decide(text, "GET http://docs.test:443/")) == ("deny", "benign", "wrong-protocol")
    assert words(decide(text, "udp docs.test 443")) == ("deny", "benign", "wrong-protocol")
    assert words(decide(text, "tcp docs.test 443")) == ("deny", "benign", "wrong-protocol")


def test_a_tcp_rule_carries_whatever_is_spoken_over_it() -> None:
    text = "rules: [{allow: db.test, ports: [5432], protocol: tcp}]"
    assert decide(text, "tcp db.test 5432").verdict is Verdict.ALLOW
    assert decide(text, "GET https://db.test:5432/").verdict is Verdict.ALLOW
    assert decide(text, "udp db.test 5432").verdict is Verdict.DENY


# --- phases, identities, rubric -------------------------------------------------------------


def test_a_rule_of_another_phase_is_named_as_that() -> None:
    text = "rules: [{allow: mirror.test, phases: [setup]}]"
    assert decide(engine_of(text, "setup"), "GET https://mirror.test/").verdict is Verdict.ALLOW
    closed = decide(engine_of(text, "work"), "GET https://mirror.test/")
    assert (closed.reason, closed.control) == (Reason.WRONG_PHASE, Control.PHASE_POLICY)


def test_r016_each_switch_of_the_phase_changes_the_verdict_and_back() -> None:
    text = "rules: [{allow: rubric.test}]\nrubric: [rubric.test]"
    work = engine_of(text)
    scoring = work.for_phase(Phase.SCORING)
    again = scoring.for_phase(Phase.WORK)
    seen = [decide(engine, "GET https://rubric.test/").verdict for engine in (work, scoring, again)]
    assert seen == [Verdict.ALLOW, Verdict.DENY, Verdict.ALLOW]
    assert decide(scoring, "GET https://rubric.test/").reason is Reason.RUBRIC_IN_SCORING


def test_the_rubric_binds_the_agent_and_not_the_grader_who_needs_a_rule_of_its_own() -> None:
    text = "rules: [{allow: rubric.test, identities: [grader]}]\nrubric: [rubric.test, other.test]"
    grader = engine_of(text, "scoring", "grader")
    assert decide(grader, "GET https://rubric.test/").verdict is Verdict.ALLOW
    assert decide(grader, "GET https://other.test/").verdict is Verdict.DENY
    agent = engine_of(text, "work", "agent")
    assert decide(agent, "GET https://rubric.test/").reason is Reason.OTHER_IDENTITY


def test_a_rubric_path_closes_a_proxied_host_in_that_path_alone() -> None:
    text = "rules: [{proxy: hub.test, methods: [GET]}]\nrubric: [{host: hub.test, paths: [/a/**]}]"
    engine = engine_of(text, "scoring")
    assert decide(engine, "GET https://hub.test/a/x").reason is Reason.RUBRIC_IN_SCORING
    assert decide(engine, "GET https://hub.test/b").verdict is Verdict.PROXY
    assert decide(engine, "dns hub.test").verdict is Verdict.PROXY


@pytest.mark.parametrize("path", ["/A/x", "/b/../a/x", "/%61/x", "/a%2fx", "//a/x", "/a;v=1/x", "/a/./x"])
def test_no_spelling_of_a_path_gets_round_a_denial(path: str) -> None:
    text = "rules: [{proxy: hub.test}, {deny: hub.test, paths: [/a/**]}]"
    assert decide(text, f"GET https://hub.test{path}").verdict is Verdict.DENY
    assert decide(text, "GET https://hub.test/b/x").verdict is Verdict.PROXY


@pytest.mark.parametrize("path", ["/a/../b/x", "/a/%2e%2e/b", "/a%2f..%2fb", "/a/..\\b", "/a/%00"])
def test_no_spelling_of_a_path_stretches_a_permission(path: str) -> None:
    text = "rules: [{proxy: hub.test, paths: [/a/**]}]"
    assert decide(text, f"GET https://hub.test'{path}'").verdict is Verdict.DENY
    assert decide(text, "GET https://hub.test/a/x").verdict is Verdict.PROXY


def test_a_path_denial_on_plain_http_closes_the_path_and_the_gateway_can_see_it() -> None:
    text = "rules: [{allow: hub.test, ports: [80]}, {deny: hub.test, paths: [/a/**]}]"
    assert decide(text, "GET http://hub.test/a/x").reason is Reason.LISTED_DENY
    assert decide(text, "GET http://hub.test/b").verdict is Verdict.ALLOW
    head_not_read = replace(attempt_of("GET http://hub.test/b"), method=None, path=None)
    assert engine_of(text).decide(head_not_read).verdict is Verdict.ALLOW


def test_a_denied_host_is_denied_before_any_request_head_is_read() -> None:
    text = "rules: [{allow: docs.test, ports: [80]}, {deny: docs.test}]"
    head_not_read = replace(attempt_of("GET http://docs.test/"), method=None, path=None)
    assert engine_of(text).decide(head_not_read).reason is Reason.LISTED_DENY
    assert engine_of(text.replace("deny: docs", "deny: other")).decide(head_not_read).verdict is Verdict.ALLOW


# --- operations -----------------------------------------------------------------------------

PROXY = """
rules:
  - {proxy: api.test, ports: [80], methods: [GET], paths: [/read/*], max-query: 10B}
  - {proxy: api.test, ports: [80], methods: [POST], paths: [/write/**], max-body: 1KiB}
""".replace("10B", "10")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("GET http://api.test/read/a", "rule-proxies"),
        ("GET http://api.test/read/a?0123456789", "rule-proxies"),
        ("GET http://api.test/read/a?0123456789a", "query-too-long"),
        ("GET http://api.test/read/a/b", "path-not-permitted"),
        ("GET http://api.test/write/a/b", "method-not-permitted"),
        ("POST http://api.test/write/a/b", "rule-proxies"),
        ("POST http://api.test/read/a", "method-not-permitted"),
        ("GET ws://api.test/read/a", "upgrade-not-permitted"),
    ],
)
def test_several_proxy_rules_add_up_and_the_closest_names_the_fault(line: str, reason: str) -> None:
    assert decide(PROXY, line).reason == reason


def test_a_body_is_judged_by_its_length_at_the_edge() -> None:
    post = attempt_of("POST http://api.test/write/a")
    engine = engine_of(PROXY)
    assert engine.decide(replace(post, body_bytes=1024)).verdict is Verdict.PROXY
    too_large = engine.decide(replace(post, body_bytes=1025))
    assert (too_large.reason, too_large.control) == (Reason.BODY_TOO_LARGE, Control.SIZE_RATE_QUOTA)
    assert engine.decide(replace(post, body_bytes=None)).limit_bytes == 1024


def test_a_request_that_brings_its_own_key_is_refused() -> None:
    text = "rules: [{proxy: api.test, ports: [80], credential: {header: x-api-key, env: KEY}}]"
    engine, post = engine_of(text), attempt_of("POST http://api.test/")
    assert engine.decide(post).verdict is Verdict.PROXY
    foreign = engine.decide(replace(post, credential_headers=("x-api-key",)))
    assert words(foreign) == ("deny", "exfiltration", "foreign-credential")
    assert foreign.control is Control.CREDENTIAL_BROKER


def test_conditions_that_need_tls_opened_close_a_tunnel_that_is_not_opened() -> None:
    text = "rules: [{proxy: api.test, methods: [GET]}, {proxy: plain.test}]"
    hello = replace(attempt_of("GET https://api.test/"), method=None, path=None, has_body=None)
    assert engine_of(text).decide(hello).reason is Reason.INSPECTION_NOT_AVAILABLE
    assert engine_of(text, inspects_tls=True).decide(hello).verdict is Verdict.PROXY
    logged_only = replace(hello, host=Host("plain.test"))
    assert engine_of(text).decide(logged_only).verdict is Verdict.PROXY


# --- names that disagree ---------------------------------------------------------------------


def test_all_names_of_a_connection_must_agree() -> None:
    text = 'rules: [{allow: "*.corp.test"}, {allow: "*.corp.test", ports: [80]}]'
    assert decide(text, "GET https://a.corp.test/", sni="A.corp.test.").verdict is Verdict.ALLOW
    for more in ({"sni": "b.corp.test"}, {"host": "b.corp.test"}):
        mismatch = decide(text, "GET http://a.corp.test/", **more)
        assert (mismatch.reason, mismatch.control) == (Reason.NAME_MISMATCH, Control.NAME_CONSISTENCY)
    assert decide(text, "GET https://a.corp.test/", sni="a.corp.test\\x00").reason is Reason.MALFORMED_HOST


def test_a_mismatch_is_named_for_the_place_that_hides() -> None:
    text = (
        "rules: [{allow: docs.test}]\ncatalogue: [{class: paste, risk: exfiltration, hosts: [drop.example]}]"
    )
    hidden = decide(text, "GET https://docs.test/", sni="drop.example")
    assert (hidden.place, hidden.risk) == (PlaceClass.PASTE, Risk.EXFILTRATION)
    other_way = decide(text, "GET https://drop.example/", sni="docs.test")
    assert (other_way.place, other_way.risk) == (PlaceClass.PASTE, Risk.EXFILTRATION)
    metadata = decide(
        "rules: [{allow: docs.test, ports: [80]}]", "GET http://docs.test/", host="169.254.169.254"
    )
    assert metadata.risk is Risk.METADATA_CREDENTIALS


# --- answers ---------------------------------------------------------------------------------

LISTED = "rules: [{allow: docs.test}]"


def test_a_permit_holds_every_judged_address_and_only_then_exists() -> None:
    by_name = decide(LISTED, "GET https://docs.test/")
    assert (by_name.permit, by_name.address) == (None, None)
    judged = decide(LISTED, "GET https://docs.test/", PUBLIC, "2606:4700::1")
    assert judged.permit is not None
    assert judged.permit.addresses == (ip_address(PUBLIC), ip_address("2606:4700::1"))
    assert (judged.permit.name, judged.permit.port) == ("docs.test", 443)


def test_no_denial_carries_a_permit() -> None:
    for line in ("GET https://evil.test/", "GET https://93.184.216.34/", "GET https://docs.test:1/"):
        assert decide(LISTED, line, PUBLIC).permit is None


@pytest.mark.parametrize(
    "answer", ["100.63.255.255", "172.15.255.255", "169.253.255.255", "2001:200::1", "2003::1"]
)
def test_answers_just_outside_a_denied_range_are_permitted(answer: str) -> None:
    assert decide(LISTED, "GET https://docs.test/", answer).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "answer",
    [
        "100.64.0.0",
        "10.0.0.0",
        "172.31.255.255",
        "169.254.0.0",
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "::1",
        "::",
        "fc00::",
        "fe80::1",
        "ff02::1",
        "2001:1ff::1",
        "2002::1",
        "::ffff:93.184.216.34",
        "64:ff9b::5db8:d822",
    ],
)
def test_one_denied_answer_denies_in_any_position(answer: str) -> None:
    for answers in ([answer], [answer, PUBLIC], [PUBLIC, answer]):
        denied = decide(LISTED, "GET https://docs.test/", *answers)
        assert (denied.verdict, denied.control) == (Verdict.DENY, Control.CHECK_RESOLVED_ADDRESS)
        assert denied.address == ip_address(answer)


def test_the_most_telling_of_several_denied_answers_is_recorded() -> None:
    denied = decide(LISTED, "GET https://docs.test/", "10.0.0.1", "169.254.169.254", "127.0.0.1")
    assert denied.risk is Risk.METADATA_CREDENTIALS


def test_no_answer_at_all_is_a_denial() -> None:
    assert (
        engine_of(LISTED).decide(attempt_of("GET https://docs.test/"), ()).reason is Reason.RESOLUTION_FAILED
    )


INTERNAL = """
rules: [{allow: app.test}, {allow: web.test}, {allow: app.test, ports: [8443], protocol: tls}]
internal: [{host: app.test, networks: [10.20.0.0/24, "fd12::/64", 127.0.0.1/32], ports: [443]}]
"""


@pytest.mark.parametrize("answer", ["10.20.0.0", "10.20.0.255", "fd12::5", "127.0.0.1"])
def test_an_internal_entry_opens_its_name_network_and_port(answer: str) -> None:
    assert decide(INTERNAL, "GET https://app.test/", answer).verdict is Verdict.ALLOW
    assert decide(INTERNAL, "GET https://web.test/", answer).verdict is Verdict.DENY
    assert decide(INTERNAL, "GET https://app.test:8443/", answer).verdict is Verdict.DENY
    assert decide(INTERNAL, "GET https://other.test/", answer).verdict is Verdict.DENY


@pytest.mark.parametrize(
    "answer", ["10.20.1.0", "10.19.255.255", "127.0.0.2", "::ffff:10.20.0.5", "fd12:0:0:1::"]
)
def test_an_internal_entry_opens_nothing_beside_its_network(answer: str) -> None:
    assert decide(INTERNAL, "GET https://app.test/", answer).verdict is Verdict.DENY


def test_an_internal_entry_opens_nothing_without_a_rule() -> None:
    text = "internal: [{host: app.test, networks: [10.20.0.0/24], ports: [443]}]"
    assert decide(text, "GET https://app.test/", "10.20.0.5").reason is Reason.NOT_LISTED


def test_a_metadata_address_inside_an_opened_network_stays_closed() -> None:
    text = """
rules: [{allow: app.test}]
internal: [{host: app.test, networks: [100.64.0.0/10, "fd00::/8"], ports: [443]}]
"""
    assert decide(text, "GET https://app.test/", "100.100.100.201").verdict is Verdict.ALLOW
    assert decide(text, "GET https://app.test/", "100.100.100.200").reason is Reason.METADATA_ADDRESS
    assert decide(text, "GET https://app.test/", "fd00:ec2::254").reason is Reason.METADATA_ADDRESS


def test_own_addresses_are_closed_as_answer_and_as_literal_even_if_opened() -> None:
    text = """
rules: [{allow: app.test}]
internal: [{host: app.test, networks: [10.20.0.0/24], ports: [443]}]
"""
    engine = engine_of(
        text, own_addresses=[ip_address("10.20.0.9"), ip_address("fe80::1%eth0"), ip_address(PUBLIC)]
    )
    assert decide(engine, "GET https://app.test/", "10.20.0.8").verdict is Verdict.ALLOW
    assert decide(engine, "GET https://app.test/", "10.20.0.9").reason is Reason.OWN_ADDRESS
    assert decide(engine, "GET https://app.test/", PUBLIC).reason is Reason.OWN_ADDRESS
    literal = decide(engine, f"GET https://{PUBLIC}/")
    assert (literal.reason, literal.risk) == (Reason.OWN_ADDRESS, Risk.SSRF)


def test_a_denied_address_is_denied_as_an_answer_too() -> None:
    text = "rules: [{allow: docs.test}, {deny: 93.184.216.34}]"
    assert decide(text, "GET https://docs.test/", "93.184.216.35").verdict is Verdict.ALLOW
    assert decide(text, "GET https://docs.test/", PUBLIC).reason is Reason.LISTED_DENY
    assert decide(text, f"GET https://{PUBLIC}/").reason is Reason.LISTED_DENY


# --- name questions -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["A", "AAAA", "HTTPS", "SVCB"])
def test_a_question_has_the_verdict_of_its_name(kind: str) -> None:
    text = "rules: [{allow: docs.test}, {proxy: api.test, methods: [GET]}, {deny: bad.test}]"
    for name, verdict in (("docs", "allow"), ("api", "proxy"), ("bad", "deny"), ("none", "deny")):
        decision = decide(text, f"dns {name}.test {kind}")
        assert (decision.verdict.word, decision.control) == (verdict, Control.OWN_RESOLVER_ONLY)


def test_other_questions_are_refused_for_a_permitted_name() -> None:
    for kind in ("TXT", "MX", "ANY", "NULL", "CNAME", "SRV"):
        refused = decide(LISTED, f"dns docs.test {kind}")
        assert words(refused) == ("deny", "exfiltration", "query-type-refused")


def test_a_label_is_ordinary_up_to_30_characters() -> None:
    assert decide(LISTED, f"dns {'a' * 30}.t.example").risk is Risk.BENIGN
    assert decide(LISTED, f"dns {'a' * 31}.t.example").risk is Risk.EXFILTRATION
    assert decide(LISTED, "dns a.t.example TXT").risk is Risk.EXFILTRATION


# --- a person is asked ---------------------------------------------------------------------------


def test_ask_holds_what_nothing_lists_and_nothing_else() -> None:
    text = "unknown: ask\nrules: [{allow: docs.test}, {deny: bad.test}]"
    engine = engine_of(text)
    held = decide(engine, "GET https://new.test/")
    assert (held.verdict, held.reason) == (Verdict.DENY, Reason.HELD)
    for line, reason in (
        ("GET https://bad.test/", Reason.LISTED_DENY),
        ("GET https://docs.test:8443/", Reason.WRONG_PORT),
        ("GET http://169.254.169.254/", Reason.METADATA_ADDRESS),
        ("GET http://metadata.google.internal/", Reason.METADATA_NAME),
        ("GET https://93.184.216.34/", Reason.LITERAL_ADDRESS),
    ):
        assert decide(engine, line).reason is reason


def test_an_approval_opens_the_held_name_and_its_answers_are_still_judged() -> None:
    engine = engine_of("unknown: ask\nrules: [{deny: bad.test}]")
    new, bad = attempt_of("GET https://new.test/"), attempt_of("GET https://bad.test/")
    answer = (ip_address(PUBLIC),)
    assert engine.decide(new, answer, approved_by="ann").permit is not None
    assert engine.decide(new, (ip_address("10.0.0.1"),), approved_by="ann").verdict is Verdict.DENY
    assert engine.decide(bad, answer, approved_by="ann").verdict is Verdict.DENY


# --- what the gateway asks besides -----------------------------------------------------------------


def test_the_rules_say_what_is_spoken_at_a_port_and_else_the_port_does() -> None:
    engine = engine_of(
        "rules: [{allow: a.test, ports: [8080], protocol: http},"
        " {allow: b.test, ports: [443], protocol: tcp}]"
    )
    assert engine.protocol_for(Host("a.test"), 8080) is Protocol.HTTP
    assert engine.protocol_for(Host("b.test"), 443) is Protocol.TCP
    assert engine.protocol_for(Host("a.test"), 443) is Protocol.TLS
    assert engine.protocol_for(Host("c.test"), 80) is Protocol.HTTP
    assert engine.protocol_for(Host("c.test"), 8080) is None


def test_every_reason_can_be_refused_with_labels() -> None:
    engine = engine_of(LISTED)
    for reason in Reason:
        refused = engine.refuse(attempt_of("GET https://docs.test/"), reason)
        assert (refused.verdict, refused.reason, refused.permit) == (Verdict.DENY, reason, None)
        assert refused.place is PlaceClass.UNKNOWN


def test_a_refusal_of_a_stranger_keeps_what_it_is_called() -> None:
    refused = engine_of(LISTED).refuse(attempt_of("GET http://169.254.169.254/"), Reason.TOO_MANY_CONNECTIONS)
    assert (refused.risk, refused.place) == (Risk.METADATA_CREDENTIALS, PlaceClass.METADATA)


def test_an_engine_names_its_phase_and_identity_in_every_decision() -> None:
    engine = engine_of(LISTED, "setup", "grader")
    for line in (
        "GET https://docs.test/",
        "GET https://x.test/",
        "exec true",
        "socket /x",
        "GET http://[::1]/",
    ):
        decision = decide(engine, line)
        assert (decision.phase, decision.identity) == (Phase.SETUP, Identity.GRADER)
