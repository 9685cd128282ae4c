"""`proxy` on plain HTTP, in full: what the gateway puts in, what a body may ask for, what is recorded."""

import json
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "bwrap")]

SECRET = "k-5ecret-value"
KEYED = (
    "rules:\n  - proxy: provider.test\n    ports: [8080]\n    protocol: http\n    methods: [GET, POST]\n"
    "    credential: {header: x-api-key, env: RANGE_KEY}\n"
)
NO_WEB = (
    "rules:\n  - proxy: provider.test\n    ports: [8080]\n    protocol: http\n    methods: [POST]\n"
    "    body: {forbid-tools: [web_search]}\n"
)
URL = "http://provider.test:8080"


def curl(*words: str) -> list[str]:
    return ["curl", "-sS", "-m8", *words]


def with_key(value: str = SECRET) -> list[str]:
    return ["env", f"RANGE_KEY={value}"]


@pytest.mark.parametrize("way", [[], ["-x", "http://198.18.0.1:3128"]], ids=["transparent", "proxy"])
def test_the_gateway_puts_the_credential_in_and_the_worker_never_holds_it(
    stockade: Any, world: World, way: list[str]
) -> None:
    seen = stockade(curl(*way, f"{URL}/echo"), KEYED, prefix=with_key())
    assert f"x-api-key: {SECRET}\r\n" in seen.out.replace("\n", "\r\n") or f"x-api-key: {SECRET}" in seen.out
    assert seen.out.lower().count("x-api-key") == 1
    inside = stockade(["env"], KEYED, prefix=with_key())
    assert SECRET not in inside.out
    assert SECRET not in str(seen.records) + str(seen.report) + seen.err


def test_a_credential_of_the_worker_s_own_is_refused(stockade: Any, world: World) -> None:
    run = stockade(curl("-H", "x-api-key: stolen", f"{URL}/echo"), KEYED, prefix=with_key())
    assert json.loads(run.out)["reason"] == "foreign-credential"
    assert world.requests() == []
    (denial,) = run.denials()
    assert (denial["control"], denial["risk"]) == ("credential-broker", "exfiltration")


def test_a_variable_that_is_not_set_stops_the_run(stockade: Any, world: World) -> None:
    run = stockade(["true"], KEYED)
    assert run.code == 102
    assert "credential-missing" in run.err
    assert "RANGE_KEY" in run.err


def test_a_value_that_would_make_a_second_field_stops_the_run(stockade: Any, world: World) -> None:
    run = stockade(["true"], KEYED, prefix=with_key("a\r\nx: y"))
    assert run.code == 102
    assert "credential-malformed" in run.err


@pytest.mark.parametrize("extra", [[], ["-H", "Expect: 100-continue"]], ids=["plain", "expect"])
def test_a_body_with_a_provider_s_tool_is_refused_and_one_without_arrives(
    stockade: Any, world: World, extra: list[str]
) -> None:
    bad = json.dumps({"tools": [{"type": "web_search_1"}], "pad": "x" * 200_000})
    good = json.dumps({"tools": [{"type": "function"}], "pad": "x" * 200_000})
    head = ["-H", "Content-Type: application/json", *extra, "--data-binary", "@-", f"{URL}/upload"]
    refused = stockade(curl(*head), NO_WEB, stdin=bad.encode())
    assert json.loads(refused.out)["reason"] == "forbidden-content"
    assert world.requests() == []
    passed = stockade(curl(*head), NO_WEB, stdin=good.encode())
    assert str(len(good)) in passed.out
    assert [a["verdict"] for a in passed.attempts()] == ["proxy"]


def test_a_body_that_cannot_be_read_first_is_refused(stockade: Any, world: World) -> None:
    head = ["-H", "Transfer-Encoding: chunked", "--data-binary", "{}", f"{URL}/upload"]
    run = stockade(curl(*head), NO_WEB)
    assert json.loads(run.out)["reason"] == "forbidden-content"
    assert "Content-Length" in run.denials()[0]["why"]
    packed = stockade(curl("-H", "Content-Encoding: gzip", "--data-binary", "{}", f"{URL}/upload"), NO_WEB)
    assert json.loads(packed.out)["reason"] == "forbidden-content"


def test_a_graphql_mutation_is_refused_and_a_query_arrives(stockade: Any, world: World) -> None:
    policy = NO_WEB.replace("{forbid-tools: [web_search]}", "{graphql: [query]}")
    for text, code in (("mutation { x }", "403"), ("{ x }", "200")):
        body = json.dumps({"query": text})
        run = stockade(curl("-o", "/dev/null", "-w", "%{http_code}", "--data", body, f"{URL}/upload"), policy)
        assert run.out == code


def test_a_proxied_tls_place_is_recorded_as_not_inspected(stockade: Any, world: World, range_ca: Any) -> None:
    run = stockade(curl("--cacert", "ca.pem", "https://docs.test/"), "rules: [{proxy: docs.test}]\n")
    assert run.code == 0, run.err
    (attempt,) = run.attempts()
    assert (attempt["verdict"], attempt["inspection"]) == ("proxy", "none")
