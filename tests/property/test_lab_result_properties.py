"""Whatever is given to it, the verification of a result verifies or refuses."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.lab_game import bank, begin_round, perfect, play
from stockade.errors import IntegrityError
from stockade.evidence.envelope import sign
from stockade.lab.progress.result import sign_result, verify_result

KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
RESULT = sign_result(bank(), play(bank(), begin_round(bank(), "any", 2), perfect), "you", KEY)
STATEMENT: dict[str, Any] = json.loads(base64.b64decode(json.loads(RESULT)["payload"]))

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def signed(payload: bytes) -> bytes:
    return sign(payload, KEY)


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_as_a_file_and_as_a_signed_payload(data: bytes) -> None:
    for file in (data, signed(data)):
        with pytest.raises(IntegrityError):
            verify_result(file, bank().pack)


def test_a_payload_that_is_nested_without_end_is_refused() -> None:
    for payload in (b"[" * 200_000, b'{"a":' * 200_000, b'{"subject":' + b"[" * 200_000):
        with pytest.raises(IntegrityError):
            verify_result(signed(payload), bank().pack)


@settings(max_examples=300)
@given(st.sampled_from(sorted(STATEMENT["predicate"])), JSON)
def test_any_other_value_in_the_predicate_is_refused_or_is_not_counted(name: str, value: object) -> None:
    """The learner's name and the times are told, not counted; everything else has one right value."""
    statement = json.loads(json.dumps(STATEMENT))
    statement["predicate"][name] = value
    file = signed(json.dumps(statement, sort_keys=True).encode())
    if name == "learner" and isinstance(value, str):
        try:
            assert verify_result(file, bank().pack).result.learner == value
        except IntegrityError:
            assert not value.isprintable()
        return
    if value == STATEMENT["predicate"][name]:
        return
    with pytest.raises(IntegrityError):
        verify_result(file, bank().pack)


@settings(max_examples=200)
@given(st.integers(0, 8), st.sampled_from(sorted(STATEMENT["predicate"]["events"][0])), JSON)
def test_any_other_value_in_an_event_is_refused_unless_it_brings_as_many_points(
    index: int, name: str, value: object
) -> None:
    statement = json.loads(json.dumps(STATEMENT))
    statement["predicate"]["events"][index][name] = value
    file = signed(json.dumps(statement, sort_keys=True).encode())
    try:
        found = verify_result(file, bank().pack)
    except IntegrityError:
        return
    assert name in ("ms", "hints")  # another time within the same point, or the free hint
    assert found.result.points == STATEMENT["predicate"]["points"]
