"""The JSON Schema of a policy file, for editors and other tools (draft 2020-12).

It is made from `policy.keys`, so it knows every key that the loader knows. It is the looser
of the two: what needs judgement (a metadata name, a public suffix, a network that is
always denied) only the loader refuses.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from stockade.policy.keys import LEVELS, SECTIONS, Key, Section
from stockade.policy.values import OPERATIONS, RULE_PROTOCOLS
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Risk

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _words(words: type[Enum] | tuple[Enum, ...]) -> dict[str, Any]:
    return {"enum": [word.value for word in words]}


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


_NAME = r"[^\s/:@*?\\.]+(\.[^\s/:@*?\\.]+)*\.?"
_SIZE = {"anyOf": [_text(r"^(0|[1-9][0-9]*)(B|KiB|MiB|GiB|TiB)?$"), {"type": "integer", "minimum": 0}]}
_FOLDER = {"type": "string", "minLength": 1, "maxLength": 4096}

FRAGMENTS: dict[str, dict[str, Any]] = {
    "version": {"const": 1},
    "include": {"type": "string", "minLength": 1, "maxLength": 255},
    "unknown": {"enum": ["deny", "ask"]},
    "duration": _text(r"^[1-9][0-9]*[smh]$"),
    "host-pattern": _text(rf"^(\*\.)?{_NAME}$"),
    "closing-pattern": _text(rf"^(\*|(\*\.)?{_NAME}|\[?[0-9A-Fa-f:.]+\]?)$"),
    "rubric-host": _text(rf"^(\*|(\*\.)?{_NAME})$"),
    "exact-host": _text(rf"^{_NAME}$"),
    "class": _words(PlaceClass),
    "text": {"type": "string", "maxLength": 500},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "protocol": _words(RULE_PROTOCOLS),
    "method": _text(r"^[A-Z][A-Z-]*$"),
    "path": _text(r"^/[^\s?#\\]*$"),
    "phase": _words(Phase),
    "identity": _words(Identity),
    "size": _SIZE,
    "rate": _text(r"^[1-9][0-9]*/[sm]$"),
    "count": {"type": "integer", "minimum": 1},
    "risk": _words(Risk),
    "control": _words(Control),
    "header": {"type": "string", "minLength": 1, "maxLength": 64},
    "variable": _text(r"^[A-Za-z_][A-Za-z0-9_]*$"),
    "tool": {"type": "string", "minLength": 1, "maxLength": 128},
    "operation": {"enum": list(OPERATIONS)},
    "network": _text(r"^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$"),
    "exec-mode": {"enum": ["listed", "any"]},
    "exec-code": {"enum": ["closed", "jit"]},
    "boolean": {"type": "boolean"},
    "program": {"type": "string", "minLength": 1, "maxLength": 4096},
    "folder": _FOLDER,
}


def build_schema() -> dict[str, Any]:
    """The whole schema as JSON-like values."""
    return {
        "$schema": DIALECT,
        "title": "Stockade policy",
        "description": "What an executor may reach and run. Everything that no rule names is denied.",
        **_object(SECTIONS["policy"], SECTIONS["policy"].keys),
        "$defs": {name: _definition(section) for name, section in SECTIONS.items() if name != "policy"},
    }


def _definition(section: Section) -> dict[str, Any]:
    if section.name == "rule":
        return {"oneOf": [_rule(section, level) for level in LEVELS]}
    described = _object(section, section.keys)
    if section.name == "rubric":
        return {"anyOf": [FRAGMENTS["rubric-host"], described]}
    if section.name == "body":
        described["minProperties"] = 1
    return described


def _rule(section: Section, level: str) -> dict[str, Any]:
    """A rule of one level: its own keys, and the host under the level's name."""
    keys = tuple(key for key in section.keys if level in key.levels)
    return {**_object(section, keys), "title": f"{level} rule", "required": [level]}


def _object(section: Section, keys: tuple[Key, ...]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "type": "object",
        "description": section.doc,
        "additionalProperties": False,
        "properties": {key.name: {"description": key.doc, **_value(key)} for key in keys},
    }
    required = [key.name for key in keys if key.is_required]
    return {**described, "required": required} if required else described


def _value(key: Key) -> dict[str, Any]:
    kind = key.kind.removesuffix("[]")
    one = {"$ref": f"#/$defs/{kind}"} if kind in SECTIONS else FRAGMENTS[kind]
    if kind == key.kind:
        return one
    return {"type": "array", "items": one, **({} if key.may_be_empty else {"minItems": 1})}
