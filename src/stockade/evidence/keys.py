"""Signing keys: made at first use in the user's data folder, never in the evidence.

A key is Ed25519, as PKCS #8 in PEM, readable by its owner alone. Its fingerprint is the SHA-256 of
the 32 bytes of the public key, in hex; that is what a reader pins with `--key`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.errors import HostError, IntegrityError, UserError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PUBLIC_KEY_NAME = "signer.pub"


def default_key_file() -> Path:
    """Where this user's key lies (XDG base directory specification)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return base / "stockade" / "keys" / "evidence.key"


def load_or_make_key(path: Path | None = None) -> Ed25519PrivateKey:
    """The key in a named file, which must exist, or this user's own, which is made if it does not.

    Raises:
        UserError: The file is missing, holds no Ed25519 key, or others may read it.
        HostError: A new key cannot be kept.
    """
    if path is not None:
        return load_key(path)
    own = default_key_file()
    if not own.exists():
        try:
            _make_key(own)
        except OSError as error:
            raise HostError(
                "no-place-for-key", f"cannot keep a signing key in {own}: {error.strerror}", "--sign-key FILE"
            ) from error
    return load_key(own)


def load_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key.

    Raises:
        UserError: It is missing, holds no Ed25519 key, or others may read it.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read()
    except OSError as error:
        raise UserError("no-key", f"{path}: {error.strerror}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise UserError("key-open-to-others", f"{path} can be read or changed by others", f"chmod 600 {path}")
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UserError(
            "bad-key", f"{path} holds no private key in PEM without a passphrase", _HOW_TO_MAKE
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError("bad-key", f"{path} holds a key of another kind than Ed25519", _HOW_TO_MAKE)
    return key


_HOW_TO_MAKE = "openssl genpkey -algorithm ed25519 -out FILE && chmod 600 FILE"


def _make_key(path: Path) -> None:
    """Make a key; of two that do so at once one wins, and no half-written file has its name ever."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    handle, name = tempfile.mkstemp(dir=path.parent)  # 0600 from the beginning
    try:
        with open(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of the public key's 32 bytes, in hex."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def write_public_key(key: Ed25519PublicKey) -> bytes:
    """The key as PEM, which other tools read."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def parse_public_key(data: bytes) -> Ed25519PublicKey:
    """Read a public key that came with evidence.

    Raises:
        IntegrityError: It is none.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise IntegrityError("bad-public-key", "this is no public key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise IntegrityError("bad-public-key", "this is no Ed25519 key")
    return key
