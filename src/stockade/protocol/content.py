"""What a request's body asks for, where a rule wants that known: provider-side tools, GraphQL operations.

A body that two readers could read differently is refused like a host of that kind: doubled
keys, anything but UTF-8, a coding that hides it. The whole body is looked at before the
request is recorded, so that the record says what was decided about it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stockade.policy.model import BodyRule

if TYPE_CHECKING:
    from stockade.protocol.http1 import RequestHead

# A prompt with a few pictures fits; what is larger cannot be held back until it is read.
CONTENT_LIMIT_BYTES = 16 * 1024 * 1024

# What a GraphQL document holds besides names and punctuation: comments and both kinds of strings
# (specification of October 2021, 2.1.2 and 2.9.4).
_GRAPHQL_NOISE = r'"""(?:[^"\\]|\\"""|\\|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|#[^\n\r]*'
_GRAPHQL_TOKEN = r"[A-Za-z_]\w*|[{}()\[\]]"
_GRAPHQL_DEFINITIONS = frozenset(("query", "mutation", "subscription", "fragment"))


# All connections of a room together may hold back so much.
HELD_BYTES = 64 * 1024 * 1024


class Holding:
    """How much of the room's bodies is being held back to be read; shared by its connections."""

    def __init__(self, limit_bytes: int = HELD_BYTES) -> None:
        self._left_bytes = limit_bytes

    def take(self, count: int) -> bool:
        """Reserve room for a body; False if there is none now."""
        if count > self._left_bytes:
            return False
        self._left_bytes -= count
        return True

    def give_back(self, count: int) -> None:
        self._left_bytes += count


class _UnclearError(ValueError):
    """The body cannot be read in one way only."""


def object_to_framing(head: RequestHead) -> str | None:
    """What stands against reading this request's body before it goes on, None if nothing does."""
    if head.framing.length is None:
        return "a body without a declared length goes out before it can be read; send Content-Length"
    if head.framing.length > CONTENT_LIMIT_BYTES:
        return f"a body of more than {CONTENT_LIMIT_BYTES >> 20} MiB is not read before it goes out"
    codings = [value.strip().lower() for name, value in head.fields if name == b"content-encoding"]
    if any(coding not in (b"", b"identity") for coding in codings):
        return "the body is compressed, so that it cannot be read; send it as it is"
    return None


def object_to_content(rule: BodyRule, body: bytes) -> str | None:
    """What the rule holds against a body, as a phrase; None if nothing."""
    import json  # here, and no pattern compiled above: few runs have such a rule

    if not body:
        return "there is no body that says which operation is meant" if rule.graphql else None
    try:
        document = json.loads(body.decode("utf-8"), object_pairs_hook=_without_doubles)
    except (UnicodeDecodeError, ValueError, RecursionError) as problem:
        reason = problem if isinstance(problem, _UnclearError) else "it is not JSON in UTF-8"
        return f"the body cannot be read: {reason}"
    return _object_to_tools(rule, document) or _object_to_operations(rule, document)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _UnclearError("a key stands twice in one object")
    return found


# --- tools that run at the provider -------------------------------------------------------


def _object_to_tools(rule: BodyRule, document: Any) -> str | None:
    if not rule.forbid_tools:
        return None
    if not isinstance(document, dict):
        return "the body is no object, so its tools cannot be seen"
    tools = document.get("tools") or []
    if not isinstance(tools, list):
        return "`tools` is no list"
    for name in rule.forbid_tools:
        if any(_is_tool(tool, name) for tool in tools) or any(_is_called(key, name) for key in document):
            return f"it offers the provider's tool {name}"
    return None


def _is_tool(tool: Any, name: str) -> bool:
    """True for a tool of the provider; one of type function or custom runs in the room, whatever its name."""
    kind = tool.get("type") if isinstance(tool, dict) else tool
    return isinstance(kind, str) and _is_called(kind, name)


def _is_called(text: str, name: str) -> bool:
    """``web_search`` and its dated and configured forms, such as ``web_search_20250305``."""
    text = text.strip().lower()
    return text == name.lower() or text.startswith(name.lower() + "_")


# --- GraphQL ------------------------------------------------------------------------------


def _object_to_operations(rule: BodyRule, document: Any) -> str | None:
    if not rule.graphql:
        return None
    requests = document if isinstance(document, list) else [document]
    if not requests:
        return "it holds no operation"
    for request in requests:
        text = request.get("query") if isinstance(request, dict) else None
        if not isinstance(text, str):
            return "it holds no `query` text, so the operation cannot be seen"
        kinds = find_operations(text)
        if not kinds:
            return "it holds no operation that can be read"
        for kind in kinds:
            if kind not in rule.graphql:
                return f"it holds a {kind}; the rule permits {', '.join(rule.graphql)}"
    return None


def find_operations(text: str) -> list[str]:
    """The kinds of all operations in a GraphQL document, whichever the request selects.

    Empty if the document cannot be read: braces that do not match, or words at its top
    level that begin no definition.
    """
    kinds: list[str] = []
    depth = 0
    is_open = False  # a definition has begun and its braces have not come yet
    for token in re.findall(_GRAPHQL_TOKEN, re.sub(_GRAPHQL_NOISE, " ", text, flags=re.DOTALL)):
        if token in "{([":
            if depth == 0 and token == "{" and not is_open:
                kinds.append("query")  # the short form: a selection without a word before it
            is_open = is_open and not (depth == 0 and token == "{")
            depth += 1
        elif token in "})]":
            depth -= 1
        elif depth == 0 and not is_open:
            if token not in _GRAPHQL_DEFINITIONS:
                return []
            is_open = True
            if token != "fragment":
                kinds.append(token)
        if depth < 0:
            return []
    return kinds if depth == 0 and not is_open else []
