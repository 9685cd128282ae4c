"""A signed value in a DSSE envelope (Dead Simple Signing Envelope 1.0), Ed25519.

What is signed is the payload's bytes with their type in front (PAE), so a signature over one kind
of thing is none over another. The envelope is read strictly: one signature, base64 as we write it,
no other key or space. So there is one file for one signed value, and each changed byte of it shows.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from stockade.errors import IntegrityError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

IN_TOTO = "application/vnd.in-toto+json"


class Envelope(Struct, frozen=True):
    """A payload and its signature, not yet verified.

    Attributes:
        key_id: A hint that is not signed; only the key itself decides.
    """

    payload: bytes
    payload_type: str
    key_id: str
    signature: bytes


def encode_for_signing(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: PAE of the DSSE protocol, section "Signature Definition"."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """An envelope as bytes of a file, signed; the same payload and key give the same bytes."""
    from stockade.evidence.keys import fingerprint

    signature = key.sign(encode_for_signing(IN_TOTO, payload))
    return _encode(Envelope(payload, IN_TOTO, fingerprint(key.public_key()), signature))


def parse_envelope(data: bytes) -> Envelope:
    """Read an envelope; nothing in it is believed yet.

    Raises:
        IntegrityError: It is not one, or not written as `sign` writes it.
    """
    try:
        value: Any = json.loads(data)
        (signature,) = value["signatures"]
        envelope = Envelope(
            base64.b64decode(value["payload"], validate=True),
            str(value["payloadType"]),
            str(signature["keyid"]),
            base64.b64decode(signature["sig"], validate=True),
        )
        is_ours = _encode(envelope) == data
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise IntegrityError("bad-envelope", f"this is no signed envelope: {error}") from error
    if not is_ours:
        raise IntegrityError("bad-envelope", "this envelope is not written as it was signed")
    return envelope


def verify_signature(envelope: Envelope, key: Ed25519PublicKey) -> bytes:
    """The payload, if this key signed it.

    Raises:
        IntegrityError: It did not, or the envelope is for something else.
    """
    from cryptography.exceptions import InvalidSignature

    from stockade.evidence.keys import fingerprint

    if envelope.payload_type != IN_TOTO:
        raise IntegrityError("bad-envelope", f"the payload is of type {envelope.payload_type!r}")
    if envelope.key_id != fingerprint(key):
        raise IntegrityError("wrong-key", "the envelope names another key than the one that is beside it")
    try:
        key.verify(envelope.signature, encode_for_signing(envelope.payload_type, envelope.payload))
    except InvalidSignature as error:
        raise IntegrityError("bad-signature", "the signature is not this key's over this payload") from error
    return envelope.payload


def verify_by_named_key(envelope: Envelope, public_key: str, pinned: str | None) -> str:
    """The fingerprint of the key that a payload names as its own, if that key signed it.

    Args:
        public_key: The key in PEM, as the payload says it.
        pinned: Fingerprint of the key that must have signed; None takes any.

    Raises:
        IntegrityError: It did not sign, or it is not the one that must have.
    """
    from stockade.evidence.keys import fingerprint, parse_public_key

    key = parse_public_key(public_key.encode())
    verify_signature(envelope, key)
    signed_by = fingerprint(key)
    if pinned is not None and pinned != signed_by:
        raise IntegrityError("wrong-key", f"signed by {signed_by}, not by the key that was asked for")
    return signed_by


def _encode(envelope: Envelope) -> bytes:
    value = {
        "payload": base64.b64encode(envelope.payload).decode(),
        "payloadType": envelope.payload_type,
        "signatures": [{"keyid": envelope.key_id, "sig": base64.b64encode(envelope.signature).decode()}],
    }
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
