"""One table of keys: the loader, the schema, the reference page and the canonical form agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_texts import load

from stockade.policy.canonical import canonical_document, digest_policy
from stockade.policy.codes import CODES, LINT_CODES, LOAD_ERRORS, RUN_REFUSALS
from stockade.policy.keys import LEVELS, SECTIONS
from stockade.policy.load import PRESETS, list_presets, load_policy, load_policy_text, read_preset
from stockade.policy.model import Policy
from stockade.policy.problems import PolicyError
from stockade.policy.reference import write_reference
from stockade.policy.runnable import run_refusals
from stockade.policy.schema import build_schema

ROOT = Path(__file__).parents[3]
BANK = next(ROOT.glob("src/**/bank-policy.yaml"), None) or next((ROOT / "tests").glob("**/bank-policy.yaml"))


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(build_schema())


# the schema


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(build_schema())


def test_the_bank_policy_and_every_preset_fit_the_schema() -> None:
    validator().validate(yaml.safe_load(BANK.read_text()))
    for name in list_presets():
        validator().validate(yaml.safe_load(read_preset(name)))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"version": 2},
        {"version": 1, "rulse": []},
        {"version": 1, "rules": ["a.example"]},
        {"version": 1, "rules": [{"class": "docs"}]},
        {"version": 1, "rules": [{"allow": "a.example", "deny": "b.example"}]},
        {"version": 1, "rules": [{"allow": "a.example", "methods": ["GET"]}]},
        {"version": 1, "rules": [{"deny": "a.example", "max-body": "1KiB"}]},
        {"version": 1, "rules": [{"allow": "https://a.example"}]},
        {"version": 1, "rules": [{"allow": "a.example:443"}]},
        {"version": 1, "rules": [{"allow": "a.*.example"}]},
        {"version": 1, "rules": [{"allow": "*"}]},
        {"version": 1, "rules": [{"allow": "a.example", "ports": []}]},
        {"version": 1, "rules": [{"allow": "a.example", "ports": [0]}]},
        {"version": 1, "rules": [{"proxy": "a.example", "max-body": "1MB"}]},
        {"version": 1, "internal": [{"host": "a.example", "ports": [1]}]},
        {"version": 1, "exec": {"mode": "all"}},
        {"version": 1, "exec": {"code": "open"}},
        {"version": 1, "exec": {"unix-sockets": "yes"}},
    ],
)
def test_what_the_schema_refuses_the_loader_refuses_too(document: dict[str, Any]) -> None:
    assert not validator().is_valid(document)
    with pytest.raises(PolicyError):
        load(json.dumps(document))


def test_every_key_of_the_loader_stands_in_the_schema_and_on_the_page() -> None:
    schema = json.dumps(build_schema())
    page = (ROOT / "docs/reference/policy-keys.md").read_text()
    for section in SECTIONS.values():
        for key in section.keys:
            assert f'"{key.name}"' in schema, key.name
            assert f"| `{key.name}` |" in page, key.name


def test_the_reference_page_is_the_generated_one() -> None:
    """If this fails: python -m stockade.policy.reference > docs/reference/policy-keys.md."""
    assert (ROOT / "docs/reference/policy-keys.md").read_text() == write_reference()


def test_codes_are_kebab_words_with_a_sentence_and_each_is_used() -> None:
    assert len(CODES) == len(LOAD_ERRORS) + len(LINT_CODES) + len(RUN_REFUSALS)
    source = "".join(path.read_text() for path in PRESETS.parent.glob("*.py") if path.name != "codes.py")
    for code, sentence in CODES.items():
        assert code.replace("-", "").isalnum()
        assert code == code.lower()
        assert sentence
        assert f'"{code}"' in source, code


# presets


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_says_what_it_opens_and_where_that_comes_from(name: str) -> None:
    head = read_preset(name).split("version:")[0]
    assert head.startswith(("# Opens: ", "# Permits: ", "# Closes: "))
    assert "# Source: " in head


# the canonical form


def test_the_bank_policy_loads_and_its_canonical_form_has_the_same_digest() -> None:
    policy = load_policy(BANK)
    # counted by hand in the file
    assert (len(policy.rules), len(policy.rubric), len(policy.internal)) == (29, 5, 12)
    assert len(policy.catalogue) == 17
    again = load(json.dumps(canonical_document(policy)))
    assert again.digest == policy.digest
    assert canonical_document(again) == canonical_document(policy)


_HOSTS = st.sampled_from(["a.example", "b.example", "*.c.example", "xn--bcher-kva.example", "d_e.example"])
_COMMON = {
    "class": st.sampled_from(["docs", "mirror", "internal"]),
    "why": st.text("abc ü:#-'\"{}[]*&!|>%@`", max_size=20).filter(str.strip),
    "phases": st.lists(st.sampled_from(["setup", "work", "scoring"]), min_size=1),
    "identities": st.lists(st.sampled_from(["agent", "grader"]), min_size=1),
    "risk": st.sampled_from(["benign", "ssrf"]),
    "control": st.sampled_from(["logging-proxy", "default-deny"]),
}
_PORTS = st.one_of(
    st.just({}),
    st.just({"ports": [80, 443]}),
    st.just({"protocol": "http"}),
    st.fixed_dictionaries(
        {
            "ports": st.lists(st.integers(1, 65535), min_size=1, max_size=4),
            "protocol": st.sampled_from(["tls", "http"]),
        }
    ),
)
_SEEN = {
    "methods": st.lists(st.sampled_from(["GET", "POST", "M-SEARCH"]), min_size=1),
    "paths": st.lists(st.sampled_from(["/", "/a/**", "/%7Eb/*", "/c/**/d"]), min_size=1),
}
_LIMITED = {
    "max-body": st.one_of(st.integers(0, 1 << 40), st.sampled_from(["1KiB", "1024KiB", "3MiB", "4GiB"])),
    "max-query": st.integers(0, 5000),
    "rate": st.builds("{}/{}".format, st.integers(1, 9_999_999), st.sampled_from(["s", "m"])),
    "credential": st.just({"header": "X-Key", "env": "KEY"}),
    "body": st.just({"graphql": ["query"]}),
}


def _rule(level: str, optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    keys = st.fixed_dictionaries({level: _HOSTS}, optional=optional)
    return st.builds(lambda rule, ports: {**rule, **ports}, keys, _PORTS)


_RULES = st.one_of(
    _rule("allow", _COMMON), _rule("proxy", _COMMON | _SEEN | _LIMITED), _rule("deny", _COMMON | _SEEN)
)
_MORE_LIMITS = {"open-files": 64, "file-size": "1TiB", "time": "90m", "memory": 0}
_POLICIES = st.fixed_dictionaries(
    {"version": st.just(1)},
    optional={
        "rules": st.lists(_RULES, max_size=5),
        "rubric": st.lists(
            st.sampled_from(["a.example", {"host": "*.b.example", "paths": ["/x"]}]), max_size=2
        ),
        "internal": st.lists(
            st.fixed_dictionaries(
                {
                    "host": st.just("a.example"),
                    "networks": st.just(["10.0.0.0/8", "fd00::/16"]),
                    "ports": st.just([1, 2]),
                }
            ),
            max_size=2,
        ),
        "unknown": st.sampled_from(["deny", "ask"]),
        "hold": st.builds("{}{}".format, st.integers(1, 999), st.sampled_from("smh")),
        "exec": st.sampled_from(
            [
                {},
                {"mode": "any"},
                {"mode": "any", "code": "jit", "unix-sockets": True},
                {"allow": ["git", "yes", "[", "./a/b", "/usr/lib/*/x"], "libraries": [".venv"]},
                {"code": "jit", "unix-sockets": False},
            ]
        ),
        "files": st.sampled_from([{}, {"read": ["~"]}, {"write": ["."], "hide": ["a b"]}]),
        "limits": st.sampled_from([{}, {"memory": "2GiB"}, {"upload": 5, "processes": 1}, _MORE_LIMITS]),
    },
)


@given(_POLICIES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_parse_canonical_parse_gives_the_same_digest(document: dict[str, Any]) -> None:
    policy = load(json.dumps(document))
    canonical = canonical_document(policy)
    validator().validate(canonical)
    again = load(json.dumps(canonical))
    assert again.digest == policy.digest == digest_policy(policy)
    as_yaml = load(yaml.safe_dump(canonical, allow_unicode=True))
    assert as_yaml.digest == policy.digest


# any bytes

# `_` stands for a space
_WORDS = (
    "version:_1 rules: __-_ allow:_ a.example '*.b.example' *.c &a_ *a !!set_ <<:_ { } [ ] :_ ,_ # --- ~ | > "
    "\\ ? ports 0x1 include:_ python-docs internal: networks 10.0.0.0/8 é %YAML_1.1"
)
_CHARACTERS = ["'", "\n", "\t", "\0", "\ufeff", "\u2028", '"', " "]
_PIECES = st.sampled_from([*(word.replace("_", " ") for word in _WORDS.split()), *_CHARACTERS])


@given(st.one_of(st.binary(max_size=200), st.lists(_PIECES, max_size=30).map("".join).map(str.encode)))
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_give_a_policy_or_a_policy_error(data: bytes) -> None:
    try:
        outcome: Policy | PolicyError = load_policy_text(data)
    except PolicyError as error:
        outcome = error
    assert isinstance(outcome, Policy) or (outcome.code in LOAD_ERRORS and outcome.problems)


def test_nesting_without_end_is_refused_and_does_not_exhaust_the_stack() -> None:
    for text in ("[" * 500_000, "a: " + "{a: " * 100_000, "- " * 200_000, "? " * 200_000):
        with pytest.raises(PolicyError):
            load_policy_text(text)


# what a run cannot hold yet


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("rules: [{proxy: a.example, methods: [GET]}]", "inspection-not-available"),
        ("rules: [{proxy: a.example, max-query: 1KiB}]", "inspection-not-available"),
        ("rules: [{proxy: a.example, rate: 1/s}]", "inspection-not-available"),
        ("rules: [{proxy: a.example, max-body: 0}]", "inspection-not-available"),
        ("rules: [{proxy: a.example, credential: {header: a, env: B}}]", "inspection-not-available"),
        ("rules: [{proxy: a.example, body: {graphql: [query]}}]", "inspection-not-available"),
    ],
)
def test_what_a_run_could_not_hold_is_refused_before_it_starts(text: str, code: str) -> None:
    (refusal,) = run_refusals(load(f"version: 1\n{text}"))
    assert refusal.code == code
    assert refusal.message.startswith("policy.yaml:2: ")


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{allow: a.example}]",
        "rules: [{proxy: a.example}]",
        "rules: [{proxy: a.example, protocol: http, methods: [GET], paths: [/a], max-body: 1KiB, rate: 1/s}]",
        "rules: [{proxy: a.example, protocol: http, credential: {header: a, env: B}}]",
        "rules: [{proxy: a.example, protocol: http, body: {graphql: [query]}}]",
        "rules: [{deny: a.example, paths: [/a]}]",
        "exec: {mode: any}",
        "exec: {allow: [git], code: jit, unix-sockets: true}",
        "exec: {}",
        "unknown: deny",
        "limits: {memory: 1GiB, processes: 64, open-files: 9, file-size: 1KiB, time: 5m, connections: 8}",
        "limits: {upload: 1MiB}",
    ],
)
def test_what_a_run_can_hold_is_not_refused(text: str) -> None:
    assert run_refusals(load(f"version: 1\n{text}")) == []


def test_levels_of_the_language_are_the_verdicts() -> None:
    assert set(LEVELS) == {"allow", "proxy", "deny"}
