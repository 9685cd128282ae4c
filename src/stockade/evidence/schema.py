"""The JSON Schema of the predicate, made from the classes in `points.py`."""

from __future__ import annotations

from typing import Any

import msgspec

from stockade.evidence.points import TEST_RESULT, TestResult


def make_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of the statement's predicate; other keys beside the nine points are permitted."""
    schema = msgspec.json.schema(TestResult)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stockade evidence: predicate of an in-toto statement",
        "description": f"A test result ({TEST_RESULT}) with the nine points of an evidence record.",
        **schema,
    }


def write_schema() -> str:
    """The schema as text of a file."""
    return msgspec.json.format(msgspec.json.encode(make_schema()), indent=2).decode() + "\n"
