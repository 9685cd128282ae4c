"""Signing keys: whose they are, where they lie, and who may read them."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from stockade.errors import IntegrityError, UserError
from stockade.evidence.keys import (
    default_key_file,
    fingerprint,
    load_or_make_key,
    parse_public_key,
    write_public_key,
)


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = load_or_make_key()
    path = tmp_path / "data" / "stockade" / "keys" / "evidence.key"
    assert default_key_file() == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load_or_make_key().private_bytes_raw() == first.private_bytes_raw()
    assert os.listdir(path.parent) == ["evidence.key"]


def test_of_many_that_need_a_first_key_at_once_all_get_the_same() -> None:
    found: set[bytes] = set()
    threads = [
        threading.Thread(target=lambda: found.add(load_or_make_key().private_bytes_raw())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1


def test_a_data_folder_that_is_not_absolute_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG base directory specification: paths must be absolute, others are ignored."""
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_key_file() == Path.home() / ".local/share/stockade/keys/evidence.key"


def test_a_key_of_openssl_is_taken_and_its_fingerprint_is_of_the_raw_public_key(tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(path)], check=True)
    path.chmod(0o600)
    der = subprocess.run(
        ["openssl", "pkey", "-in", str(path), "-pubout", "-outform", "DER"], check=True, capture_output=True
    ).stdout
    # The last 32 bytes of an Ed25519 SubjectPublicKeyInfo are the key (RFC 8410, section 4).
    assert fingerprint(load_or_make_key(path).public_key()) == hashlib.sha256(der[-32:]).hexdigest()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    load_or_make_key()
    path = default_key_file()
    path.chmod(mode)
    with pytest.raises(UserError, match="others"):
        load_or_make_key(path)
    path.chmod(0o600)
    load_or_make_key(path)


def test_a_named_key_that_is_missing_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        load_or_make_key(tmp_path / "missing.key")
    assert not (tmp_path / "missing.key").exists()


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rsa.key"
    command = ["openssl", "genpkey", "-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:2048", "-quiet"]
    subprocess.run([*command, "-out", str(path)], check=True)
    path.chmod(0o600)
    with pytest.raises(UserError, match="another kind"):
        load_or_make_key(path)


@pytest.mark.parametrize(
    "text", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_key_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "some.key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(UserError):
        load_or_make_key(path)
    with pytest.raises(IntegrityError):
        parse_public_key(text)


def test_a_public_key_comes_back_from_its_file() -> None:
    public = load_or_make_key().public_key()
    assert fingerprint(parse_public_key(write_public_key(public))) == fingerprint(public)
