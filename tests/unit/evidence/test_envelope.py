"""The signed envelope: as the DSSE protocol says, readable by another tool, and strict about its own form."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope as ForeignEnvelope
from securesystemslib.signer import SSlibKey

from stockade.errors import IntegrityError
from stockade.evidence.envelope import encode_for_signing, parse_envelope, sign, verify_signature
from stockade.evidence.keys import fingerprint

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))


def test_what_is_signed_is_the_encoding_of_the_protocol() -> None:
    """The example of DSSE 1.0, protocol.md, section "Test Vectors"."""
    assert encode_for_signing("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_lengths_are_of_bytes_and_not_of_characters() -> None:
    assert encode_for_signing("é", "ü".encode()) == "DSSEv1 2 é 2 ü".encode()


def test_another_library_accepts_the_envelope_and_refuses_it_when_changed() -> None:
    public = KEY.public_key()
    foreign_key = SSlibKey(
        fingerprint(public), "ed25519", "ed25519", {"public": public.public_bytes_raw().hex()}
    )
    value = json.loads(sign(b'{"a":1}', KEY))
    envelope = ForeignEnvelope.from_dict(json.loads(json.dumps(value)))
    assert list(envelope.verify([foreign_key], 1)) == [fingerprint(public)]
    envelope.payload = b'{"a":2}'
    with pytest.raises(Exception, match="threshold"):
        envelope.verify([foreign_key], 1)


def test_the_same_payload_and_key_give_the_same_bytes() -> None:
    assert sign(b"x", KEY) == sign(b"x", KEY)
    assert sign(b"x", KEY) != sign(b"x", OTHER)


def test_the_payload_comes_back_only_with_the_key_that_signed() -> None:
    envelope = parse_envelope(sign(b"payload", KEY))
    assert verify_signature(envelope, KEY.public_key()) == b"payload"
    with pytest.raises(IntegrityError, match="another key"):
        verify_signature(envelope, OTHER.public_key())


def _changed(**changes: object) -> bytes:
    value = json.loads(sign(b"payload", KEY))
    signature = value["signatures"][0]
    value.update({key: new for key, new in changes.items() if key in value})
    signature.update({key: new for key, new in changes.items() if key in signature})
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def test_a_signature_by_another_key_under_this_key_s_name_is_refused() -> None:
    foreign = json.loads(sign(b"payload", OTHER))["signatures"][0]["sig"]
    assert verify_signature(parse_envelope(_changed()), KEY.public_key()) == b"payload"
    with pytest.raises(IntegrityError, match="not this key's"):
        verify_signature(parse_envelope(_changed(sig=foreign)), KEY.public_key())


def test_another_payload_is_refused() -> None:
    changed = _changed(payload=base64.b64encode(b"Payload").decode())
    with pytest.raises(IntegrityError, match="not this key's"):
        verify_signature(parse_envelope(changed), KEY.public_key())


def test_a_payload_of_another_type_is_refused() -> None:
    with pytest.raises(IntegrityError, match="of type"):
        verify_signature(parse_envelope(_changed(payloadType="text/plain")), KEY.public_key())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"payload":"","payloadType":"x","signatures":[]}',
        b"\xff\xfe",
        b"[" * 100_000,
        _changed() + b" ",
        b" " + _changed(),
        _changed().replace(b'","payloadType', b'=","payloadType'),
        _changed().replace(b'{"payload"', b'{"payload":"","payload"'),
        _changed().replace(b'"signatures":[', b'"signatures":[{"keyid":"a","sig":"AA=="},'),
        _changed().replace(b'}]}', b'}],"more":1}'),
        _changed(sig=None),
    ],
)  # fmt: skip
def test_an_envelope_that_is_not_as_it_was_written_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        parse_envelope(data)


def test_bits_that_base64_ignores_are_not_ignored() -> None:
    """`cGF5bG9hZA==` and `cGF5bG9hZB==` decode to the same bytes (RFC 4648, section 3.5)."""
    assert base64.b64decode("cGF5bG9hZA==") == base64.b64decode("cGF5bG9hZB==") == b"payload"
    assert parse_envelope(_changed(payload="cGF5bG9hZA==")).payload == b"payload"
    with pytest.raises(IntegrityError):
        parse_envelope(_changed(payload="cGF5bG9hZB=="))
