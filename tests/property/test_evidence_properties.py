"""Whatever stands in an evidence folder, reading it gives a value or `IntegrityError`, and nothing else."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import IntegrityError
from stockade.evidence.envelope import parse_envelope, sign, verify_signature
from stockade.evidence.keys import parse_public_key
from stockade.evidence.manifest import find_path_fault
from stockade.evidence.review import verify_review

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
base64_texts = st.binary(max_size=16).map(lambda data: base64.b64encode(data).decode())
envelopes = st.fixed_dictionaries(
    {
        "payload": base64_texts | json_values,
        "payloadType": st.just("application/vnd.in-toto+json") | json_values,
        "signatures": st.lists(
            st.fixed_dictionaries({"keyid": json_values, "sig": base64_texts | json_values}), max_size=2
        )
        | json_values,
    }
)


def as_file(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


@given(st.binary() | (envelopes | json_values).map(as_file))
def test_any_bytes_are_an_envelope_or_an_integrity_error(data: bytes) -> None:
    with suppress(IntegrityError):
        verify_signature(parse_envelope(data), KEY.public_key())
        raise AssertionError("nobody signed this")
    with suppress(IntegrityError):
        verify_review(data, b"payload")
        raise AssertionError("nobody signed this")


@given(json_values.map(lambda value: json.dumps(value).encode()))
def test_any_signed_value_is_a_review_or_an_integrity_error(payload: bytes) -> None:
    with suppress(IntegrityError):
        verify_review(sign(payload, KEY), b"payload")
        raise AssertionError("this is no review")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_public_key_or_an_integrity_error(data: bytes) -> None:
    with suppress(IntegrityError):
        parse_public_key(data)


@given(st.binary(), st.integers(min_value=0), st.integers(min_value=0, max_value=7))
def test_no_single_bit_of_an_envelope_is_free(payload: bytes, place: int, bit: int) -> None:
    data = bytearray(sign(payload, KEY))
    assert verify_signature(parse_envelope(bytes(data)), KEY.public_key()) == payload
    data[place % len(data)] ^= 1 << bit
    with suppress(IntegrityError):
        verify_signature(parse_envelope(bytes(data)), KEY.public_key())
        raise AssertionError("a changed envelope was taken")


@given(st.lists(st.sampled_from(["a", "..", ".", "", "evidence.json", "review.json", "b.txt"]), max_size=4))
def test_a_path_that_is_not_refused_stays_in_the_folder(parts: list[str]) -> None:
    path = "/".join(parts)
    if not find_path_fault(path):
        folder = Path("/evidence")
        assert (folder / path).resolve().is_relative_to(folder)
        assert path not in ("", "evidence.json", "review.json")
