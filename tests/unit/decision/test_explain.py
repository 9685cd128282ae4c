"""Each decision says why in one sentence, and each offered line is a policy that lets the attempt through."""

from __future__ import annotations

import re

import pytest
from decision_texts import decide, engine_of

from stockade.decision.explain import allow_line, internal_line, quote
from stockade.policy.load import load_policy_text
from stockade.vocabulary import Identity, Protocol, Verdict

PUBLIC = "93.184.216.34"
OFFER = re.compile(r"`(- .*?)` under `(rules|internal):`")


@pytest.mark.parametrize(
    "line",
    [
        "GET https://new.test/",
        "GET http://new.test/",
        "GET http://new.test:8080/",
        "GET https://new.test:8443/",
        "POST http://new.test:443/",
        "tcp new.test 5432",
        "dns new.test",
        "GET https://localhost/",
        "GET https://null/",
        "GET https://a_b.test/",
        "GET https://1e5.test/",
        "GET https://xn--bcher-kva.example/",
    ],
)
def test_the_offered_rule_lets_the_attempt_through(line: str) -> None:
    refused = decide("rules: []", line)
    assert refused.verdict is Verdict.DENY
    offer = OFFER.search(refused.why)
    assert offer, refused.why
    opened = f"rules:\n  {offer[1]}\n"
    assert decide(opened, line, PUBLIC).verdict is Verdict.ALLOW


@pytest.mark.parametrize("answer", ["10.20.0.5", "127.0.0.1", "fd12::5"])
def test_the_offered_internal_entry_lets_the_answer_through(answer: str) -> None:
    text = "rules: [{allow: app.test}]"
    refused = decide(text, "GET https://app.test/", answer)
    offer = OFFER.search(refused.why)
    assert offer, refused.why
    assert offer[2] == "internal"
    opened = f"{text}\ninternal:\n  {offer[1]}\n"
    assert decide(opened, "GET https://app.test/", answer).verdict is Verdict.ALLOW


def test_the_grader_is_offered_a_rule_of_its_own() -> None:
    engine = engine_of("rules: []", identity="grader")
    offer = OFFER.search(decide(engine, "GET https://new.test/").why)
    assert offer
    opened = engine_of(f"rules:\n  {offer[1]}\n", identity="grader")
    assert decide(opened, "GET https://new.test/").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "program", ["git", "/opt/my-tool/bin/run", "g++", "null", "./run", "tools/run", "[", "yes"]
)
def test_the_offered_program_runs(program: str) -> None:
    refused = decide("rules: []", f"exec {program} --x")
    offer = re.search(r"`(exec: .*?)`", refused.why)
    assert offer
    assert decide(offer[1], f"exec {program} --x").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "program", ["../x", "./a/../x", "/proc/self/fd/7", "'/opt/my tool'", "''", "/opt/../x"]
)
def test_what_no_entry_can_list_is_not_offered(program: str) -> None:
    assert "add `exec" not in decide("rules: []", f"exec {program}").why


@pytest.mark.parametrize(
    "line",
    [
        "GET http://169.254.169.254/",
        "GET http://metadata.google.internal/",
        "GET http://[fe80::1]/",
        "socket /run/docker.sock",
        "udp new.test 443",
    ],
)
def test_what_no_rule_can_open_says_so(line: str) -> None:
    why = decide("rules: []", line).why
    assert "no rule can" in why
    assert "add `" not in why


RULES = """
rules:
  - {allow: docs.test, class: docs, why: language reference}
  - {proxy: api.test, methods: [GET], paths: [/a], max-query: 1KiB, phases: [setup]}
  - {proxy: api.test, methods: [GET], paths: [/a], max-query: 1KiB}
  - {allow: late.test, phases: [scoring]}
  - {allow: theirs.test, identities: [grader]}
  - {deny: bad.test, why: gone over}
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("GET https://docs.test/", ["policy.yaml:4 ", "docs.test on port 443", "language reference"]),
        ("GET https://docs.test:8443/", ["policy.yaml:4 ", "port 443 (tls) only", "ports: [8443]"]),
        ("POST https://api.test/a", ["policy.yaml:6 ", "only with GET", "add it to `methods:`"]),
        ("GET https://api.test/b", ["policy.yaml:6 ", "add it to `paths:`"]),
        ("GET https://late.test/", ["policy.yaml:7 ", "in scoring only", "add `work` to its `phases:`"]),
        ("GET https://theirs.test/", ["policy.yaml:8 ", "the grader only", "`identities: [agent]`"]),
        ("GET https://bad.test/", ["policy.yaml:9 ", "gone over", "removing or narrowing"]),
    ],
)
def test_a_listed_place_says_which_rule_and_what_to_change(line: str, said: list[str]) -> None:
    why = decide(RULES, line).why
    for part in said:
        assert part in why


def test_r042_a_private_answer_says_the_address_and_the_network() -> None:
    why = decide("rules: [{allow: intranet.test}]", "GET https://intranet.test/", "10.0.0.5").why
    assert "10.0.0.5" in why
    assert "10.0.0.0/8" in why
    assert "internal:" in why


def test_every_sentence_is_one_line_of_printable_text_that_ends() -> None:
    engine = engine_of(RULES)
    for line in (
        "GET https://x\x1b[31m.test/",
        "exec $'\x1b[2J'",
        "socket '/x\ny'",
        "dns docs.test T\x07XT",
        "GET https://docs.test/ ",
    ):
        why = decide(engine, line).why
        assert why.isprintable()
        assert why.endswith(".")


def test_names_that_yaml_would_read_otherwise_are_quoted() -> None:
    assert quote("docs.test") == "docs.test"
    assert quote("null") == '"null"'
    assert quote("1._") == '"1._"'
    for name in ("null", "on", "1._", "a", "2024-01-01", "docs.test"):
        for line in (
            allow_line(name, 443, Protocol.TLS),
            allow_line(name, 5432, Protocol.TCP, Identity.GRADER),
        ):
            policy = load_policy_text(f"version: 1\nrules:\n  {line}\n")
            assert policy.rules[0].host.name == name


def test_an_ipv6_network_is_quoted() -> None:
    from ipaddress import ip_address

    assert '"fd12::5/128"' in internal_line("app.test", ip_address("fd12::5"), 443)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "GET http://169.254.169.254/",
            "169.254.169.254 is special (metadata service); no rule can open it.",
        ),
        ("GET http://[::ffff:169.254.169.254]/", "carries 169.254.169.254 (metadata service)"),
        ("GET http://10.20.0.5/", "10.20.0.5 lies in 10.0.0.0/8 (private)"),
    ],
)
def test_an_address_is_not_said_to_lie_in_itself(line: str, said: str) -> None:
    assert said in decide("rules: []", line).why
