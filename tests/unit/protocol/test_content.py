"""Bodies that a rule wants to see: what is refused, and what must pass."""

import json
from typing import Any

import pytest

from stockade.policy.model import BodyRule
from stockade.protocol.content import Holding, find_operations, object_to_content

NO_WEB = BodyRule(forbid_tools=("web_search", "web_fetch"))
READ_ONLY = BodyRule(graphql=("query",))


def tools(*listed: Any, **more: Any) -> bytes:
    return json.dumps({"model": "m", "tools": list(listed), **more}).encode()


@pytest.mark.parametrize(
    "body",
    [
        tools({"type": "web_search_20250305", "name": "web_search"}),
        tools({"type": "web_search"}),
        tools({"type": "WEB_FETCH"}),
        tools({"type": "function", "name": "x"}, {"type": "web_search_preview"}),
        tools(web_search_options={}),
        tools("web_search"),
    ],
)
def test_a_tool_that_runs_at_the_provider_is_found(body: bytes) -> None:
    found = object_to_content(NO_WEB, body)
    assert found is not None
    assert "provider's tool web_" in found


@pytest.mark.parametrize(
    "body",
    [
        b"",
        tools(),
        b'{"messages": [{"role": "user", "content": "use web_search please"}]}',
        tools({"name": "web_search", "input_schema": {}}),  # runs in the room, whatever its name
        tools({"type": "custom", "name": "web_search"}),
        tools({"type": "function", "function": {"name": "web_search"}}),
        tools({"type": "websearching"}),
        b'{"tools": null}',
    ],
)
def test_tools_of_the_room_and_mere_words_pass(body: bytes) -> None:
    assert object_to_content(NO_WEB, body) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"tools": [], "tools": [{"type": "web_search"}]}',
        b'{"tools": [{"type": "custom", "type": "web_search"}]}',
        '{"tools": []}'.encode("utf-16"),
        b'{"tools": [' + b"[" * 100_000,
        b"tools=web_search",
        b"\xff{}",
        b"[]",
        b'{"tools": {"type": "web_search"}}',
    ],
)
def test_a_body_that_two_readers_could_read_differently_is_refused(body: bytes) -> None:
    assert object_to_content(NO_WEB, body) is not None


def graphql(text: Any, **more: Any) -> bytes:
    return json.dumps({"query": text, **more}).encode()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("{ a }", ["query"]),
        ("query { a }", ["query"]),
        ("query Q($x: Int = 1) @d(a: {b: 1}) { a(x: $x) { b } }", ["query"]),
        ("mutation M { set(x: 1) { ok } }", ["mutation"]),
        ("subscription { s }", ["subscription"]),
        ("fragment F on T { a } query { ...F }", ["query"]),
        ("query A { a } mutation B { b }", ["query", "mutation"]),
        ("{ a } { b }", ["query", "query"]),
        ("# mutation { x }\n{ a }", ["query"]),
        ('{ a(s: "} mutation { x }") }', ["query"]),
        ('{ a(s: """ } mutation { x } \\""" " """) } mutation { b }', ["query", "mutation"]),
        ("{ mutation }", ["query"]),  # a field of that name is no operation
        ("query { a", []),
        ("a }", []),
        ("schema { query: Q }", []),
        ("query", []),
        ("", []),
    ],
)
def test_operations_of_a_document(text: str, kinds: list[str]) -> None:
    """After the grammar of the GraphQL specification (October 2021, 2.2 and 2.3)."""
    assert find_operations(text) == kinds


@pytest.mark.parametrize(
    "body",
    [
        graphql("mutation { x }"),
        graphql("query A { a } mutation B { b }", operationName="A"),
        json.dumps([{"query": "{ a }"}, {"query": "mutation { b }"}]).encode(),
        b'{"extensions": {"persistedQuery": {"sha256Hash": "00"}}}',
        b'{"query": "{ a }", "query": "mutation { b }"}',
        graphql(["{ a }"]),
        b"[]",
        b"",
        b"{ a }",
    ],
)
def test_what_is_no_query_is_refused(body: bytes) -> None:
    assert object_to_content(READ_ONLY, body) is not None


@pytest.mark.parametrize("body", [graphql("{ a }"), json.dumps([{"query": "query { a }"}]).encode()])
def test_queries_pass(body: bytes) -> None:
    assert object_to_content(READ_ONLY, body) is None


def test_what_is_held_back_is_bounded_for_all_together() -> None:
    holding = Holding(100)
    assert holding.take(60)
    assert not holding.take(60)
    holding.give_back(60)
    assert holding.take(60)
