"""YAML text to a small tree with line numbers, and nothing that makes its meaning unclear.

The tree is built from PyYAML's *events*, not by its constructors: no value is guessed
("no" stays two letters, 0o10 stays a text, and the reader of the key decides), no tag runs
anything, and depth is ours to limit. Aliases, anchors, tags, merge keys and second
documents are refused: with them, two readers of one file can see two policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from stockade.policy.problems import PolicyError, refuse_at

MAX_DEPTH = 12  # the language itself nests 5 deep
# A reviewer sees one line, or letters in another order, where YAML reads something else (CVE-2021-42574):
# ends of line that editors do not show as such, and characters that turn the direction of text.
_DECEPTIVE = re.compile("\r(?!\n)|[\x85\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNQUOTED_WILDCARD = re.compile(r"(?:[\s:,\[{-])\*")


class Scalar(Struct, frozen=True):
    """A single value, as written. `is_plain` means without quotes and not in a block."""

    value: str
    is_plain: bool
    line: int


class Sequence(Struct, frozen=True):
    items: tuple[Node, ...]
    line: int


class Mapping(Struct, frozen=True):
    """Keys and values in the order of the file; duplicates are still there."""

    entries: tuple[tuple[Scalar, Node], ...]
    line: int


Node = Scalar | Sequence | Mapping


def parse_yaml(text: str, source: str) -> Node | None:
    """Parse one document; None if there is none.

    Raises:
        PolicyError: the text is not YAML, or uses what a policy may not use.
    """
    import yaml  # only a run with -p pays for it

    if hidden := _DECEPTIVE.search(text):
        line = text.count("\n", 0, hidden.start()) + 1
        message = f"U+{ord(hidden.group()):04X} hides where a line ends or how it reads"
        raise refuse_at(f"{source}:{line}", "yaml-syntax", message, "take the character out")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(yaml, source).build(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        raise _explain_syntax(error, text, source) from error
    except RecursionError as error:  # only the pure Python parser could get here
        raise refuse_at(source, "yaml-too-deep", "the nesting is too deep") from error


class _Open:
    """A collection whose end has not come yet."""

    def __init__(self, is_mapping: bool, line: int) -> None:
        self.is_mapping = is_mapping
        self.line = line
        self.children: list[Node] = []


class _Builder:
    def __init__(self, yaml: Any, source: str) -> None:
        self._yaml = yaml
        self._source = source
        self._stack: list[_Open] = []
        self._root: Node | None = None
        self._documents = 0

    def build(self, events: Iterator[Any]) -> Node | None:
        for event in events:
            self._take(event)
        return self._root

    def _take(self, event: Any) -> None:
        yaml = self._yaml
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._start_document(line)
        elif isinstance(event, yaml.AliasEvent):
            raise self._refuse(
                line,
                "yaml-alias",
                f"*{event.anchor} is an alias",
                f'write it out, or quote it: "*{event.anchor}"',
            )
        elif isinstance(event, yaml.NodeEvent):
            self._refuse_decoration(event, line)
            self._take_node(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()

    def _start_document(self, line: int) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._refuse(line, "yaml-many-documents", "a second document begins here", "split the file")

    def _refuse_decoration(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            raise self._refuse(
                line, "yaml-anchor", f"&{event.anchor} is an anchor", "write the value out where it is used"
            )
        if event.tag is not None:
            raise self._refuse(line, "yaml-tag", f"{event.tag} is a tag", "leave it out")

    def _take_node(self, event: Any, line: int) -> None:
        yaml = self._yaml
        if isinstance(event, yaml.ScalarEvent):
            self._add(Scalar(event.value, event.style in (None, ""), line))
            return
        if len(self._stack) >= MAX_DEPTH:
            raise self._refuse(line, "yaml-too-deep", f"more than {MAX_DEPTH} levels deep")
        self._stack.append(_Open(isinstance(event, yaml.MappingStartEvent), line))

    def _close(self) -> None:
        done = self._stack.pop()
        if not done.is_mapping:
            self._add(Sequence(tuple(done.children), done.line))
            return
        pairs = zip(done.children[::2], done.children[1::2], strict=True)
        self._add(Mapping(tuple((self._key(key), value) for key, value in pairs), done.line))

    def _key(self, node: Node) -> Scalar:
        if not isinstance(node, Scalar):
            raise self._refuse(
                node.line, "not-one-value", "a list or a mapping stands where a key is expected"
            )
        if node.is_plain and node.value == "<<":
            raise self._refuse(
                node.line, "yaml-merge-key", "<< merges keys from elsewhere", "write the keys out"
            )
        return node

    def _add(self, node: Node) -> None:
        if self._stack:
            self._stack[-1].children.append(node)
        else:
            self._root = node

    def _refuse(self, line: int, code: str, message: str, better: str | None = None) -> PolicyError:
        return refuse_at(f"{self._source}:{line}", code, message, better)


def _explain_syntax(error: Any, text: str, source: str) -> PolicyError:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else 1
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    found = _UNQUOTED_WILDCARD.search(" " + written)
    if found and "alias" in str(error):
        word = (
            (" " + written)[found.end() - 1 :]
            .split(",")[0]
            .split("]")[0]
            .split("}")[0]
            .split(" #")[0]
            .strip()
        )
        better = f'write "{word}" in quotes: without them YAML reads * as an alias'
        return refuse_at(
            f"{source}:{line}", "yaml-wildcard-unquoted", f"{word} stands without quotes", better
        )
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not readable"
    context = getattr(error, "context", None)
    message = f"{problem} ({context})" if context else str(problem)
    remedy = "indent with spaces, not tabs" if "\t" in written else None
    return refuse_at(f"{source}:{line}", "yaml-syntax", message, remedy)
