"""The JSON Schema of a pack file, for editors and other tools (draft 2020-12).

It is made from `keys`, so it knows every key that the loader knows. It is the looser of the two: what
needs judgement (a line that is no attempt, a near-pair that is not there) only the loader refuses.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from stockade.lab.pack.keys import ORIGIN_KEYS, PACK_KEYS, SCENARIO_KEYS, Key
from stockade.lab.pack.load import SCENARIOS_LIMIT
from stockade.lab.pack.read import ANSWERS_LIMIT, ATTEMPT_LIMIT, TEXT_LIMIT
from stockade.lab.pack.scenario import Live
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}"
_ADDRESS = {"type": "string", "pattern": r"^[0-9A-Fa-f:.]+$"}


def _words(words: type[Enum]) -> dict[str, Any]:
    return {"enum": [word.value for word in words]}


FRAGMENTS: dict[str, dict[str, Any]] = {
    "version": {"const": 1},
    "text": {"type": "string", "maxLength": TEXT_LIMIT},
    "file": {"type": "string", "minLength": 1},
    "scenarios": {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "array",
                "items": {"$ref": "#/$defs/scenario"},
                "minItems": 1,
                "maxItems": SCENARIOS_LIMIT,
            },
        ]
    },
    "origins": {
        "type": "object",
        "propertyNames": {"pattern": f"^{_ID}$"},
        "additionalProperties": {"$ref": "#/$defs/origin"},
    },
    "id": {"type": "string", "pattern": f"^{_ID}$"},
    "near": {"type": "string", "pattern": f"^({_ID})?$"},
    "tier": {"type": "integer", "minimum": 1, "maximum": 4},
    "phase": _words(Phase),
    "identity": _words(Identity),
    "entry": _words(Entry),
    "attempt": {"type": "string", "minLength": 1, "maxLength": ATTEMPT_LIMIT},
    "addresses": {"anyOf": [_ADDRESS, {"type": "array", "items": _ADDRESS, "maxItems": ANSWERS_LIMIT}]},
    # YAML 1.1 readers take a bare yes or no for a truth value; ours takes both for the word.
    "live": {"anyOf": [_words(Live), {"type": "boolean"}]},
    "verdict": {"enum": [verdict.word for verdict in Verdict]},
    "risk": _words(Risk),
    "control": _words(Control),
    "class": _words(PlaceClass),
    "word": {"type": "string", "pattern": r"^[a-z0-9][a-z0-9-]{0,63}$"},
    "url": {"type": "string", "pattern": r"^[A-Za-z]+://\S+$"},
    "host": {"type": "string", "minLength": 1, "maxLength": 253},
}


def build_schema() -> dict[str, Any]:
    """The whole schema as JSON-like values."""
    return {
        "$schema": DIALECT,
        "title": "Stockade scenario pack",
        "description": "Judged events, and the policy that they are judged under (`stockade lab check`).",
        **_object(PACK_KEYS),
        "$defs": {
            "scenario": _object((*SCENARIO_KEYS, *ORIGIN_KEYS)),
            "origin": {**_object(ORIGIN_KEYS), "minProperties": 1},
        },
    }


def _object(keys: tuple[Key, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: {"description": key.doc, **FRAGMENTS[key.kind]} for key in keys},
        "required": [key.name for key in keys if key.is_required],
    }
