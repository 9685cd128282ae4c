"""Verify an evidence folder: offline, without the range, in the order in which things are believed.

The key beside the record makes the signature checkable; only a fingerprint from elsewhere (`--key`)
says whose it is. The signature covers the statement, the statement lists the files, and the folder
has to be exactly that list. Nothing outside the folder is opened.
"""

from __future__ import annotations

import os
import re
import stat
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import Envelope, parse_envelope, verify_signature
from stockade.evidence.keys import PUBLIC_KEY_NAME, fingerprint, parse_public_key
from stockade.evidence.manifest import ENVELOPE_NAME, REVIEW_NAME, Fault, compare_files, show
from stockade.evidence.points import STATEMENT_TYPE, TEST_RESULT, Statement
from stockade.evidence.review import Review, verify_review

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_ENVELOPE_LIMIT_BYTES = 256 << 20
_PROBLEM_LIMIT = 300
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class Report(Struct, frozen=True, kw_only=True):
    """What verification came to.

    Attributes:
        is_sealed: There is a signed record; without one the evidence is open.
        faults: What is not as it was signed; it verifies only without any.
        signed_by: Fingerprint of the key beside the record.
        is_pinned: That key is the one that was asked for.
        statement: What is signed, if the signature holds.
        payload: Its bytes.
        review: The review, if there is one.
    """

    is_sealed: bool
    faults: tuple[Fault, ...] = ()
    signed_by: str = ""
    is_pinned: bool = False
    statement: Statement | None = None
    payload: bytes = b""
    review: Review | None = None

    @property
    def verifies(self) -> bool:
        return self.is_sealed and not self.faults and self.statement is not None

    @property
    def exit_code(self) -> int:
        """0, 5 if something is not as it was signed, 6 if the record is not sealed."""
        if not self.is_sealed:
            return 6
        return 0 if self.verifies else IntegrityError.exit_code


class _Stop(Exception):  # noqa: N818  # the way from a fault that ends the reading to the report
    def __init__(self, file: str, problem: str) -> None:
        super().__init__(problem)
        self.fault = Fault(file, show(problem)[:_PROBLEM_LIMIT])  # it may quote what is foreign


def verify_evidence(folder: Path, pinned: str | None = None) -> Report:
    """Verify a folder.

    Args:
        pinned: Fingerprint of the key that must have signed.

    Raises:
        UserError: There is no such folder, it may not be read, or the fingerprint is none.
    """
    wanted = None if pinned is None else parse_fingerprint(pinned)
    if not _is_folder(folder):
        raise UserError("no-evidence", f"{folder} is no folder, or may not be looked at")
    if not os.path.lexists(folder / ENVELOPE_NAME):
        return Report(is_sealed=False)
    signed_by = ""
    try:
        envelope = _parse(folder)
        key_data = _read(folder, PUBLIC_KEY_NAME)
        try:
            key = parse_public_key(key_data)
            signed_by = fingerprint(key)
        except IntegrityError as error:
            raise _Stop(PUBLIC_KEY_NAME, error.message) from error
        if envelope.key_id != signed_by:
            raise _Stop(PUBLIC_KEY_NAME, f"it is not the key that {ENVELOPE_NAME} names")
        if wanted is not None and wanted != signed_by:
            raise _Stop(ENVELOPE_NAME, f"it is signed by {signed_by}, and not by the key that was asked for")
        payload = _verified(envelope, key)
        statement = _read_statement(payload)
    except _Stop as stop:
        return Report(is_sealed=True, faults=(stop.fault,), signed_by=signed_by)
    faults = compare_files(folder, statement.predicate.points.integrity.files)
    review = None
    if os.path.lexists(folder / REVIEW_NAME):
        try:
            review = _verify_review(folder, payload)
        except _Stop as stop:
            faults.append(stop.fault)
    return Report(
        is_sealed=True,
        faults=tuple(faults),
        signed_by=signed_by,
        is_pinned=wanted is not None,
        statement=statement,
        payload=payload,
        review=review,
    )


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):  # a path that is too long, or holds a NUL, is none either
        return False


def parse_fingerprint(text: str) -> str:
    """A fingerprint as people write it: any case, with colons or `sha256:` in front.

    Raises:
        UserError: It is not 64 hexadecimal digits then.
    """
    digits = text.lower().removeprefix("sha256:").replace(":", "")
    if not _FINGERPRINT.fullmatch(digits):
        raise UserError(
            "bad-fingerprint",
            f"{text!r} is no fingerprint",
            "64 hexadecimal digits: the SHA-256 of the public key; `stockade prove --out` prints it",
        )
    return digits


def _parse(folder: Path) -> Envelope:
    data = _read(folder, ENVELOPE_NAME)
    try:
        return parse_envelope(data)
    except IntegrityError as error:
        raise _Stop(ENVELOPE_NAME, error.message) from error


def _verified(envelope: Envelope, key: Ed25519PublicKey) -> bytes:
    try:
        return verify_signature(envelope, key)
    except IntegrityError as error:
        raise _Stop(ENVELOPE_NAME, error.message) from error


def _read_statement(payload: bytes) -> Statement:
    try:
        statement = msgspec.json.decode(payload, type=Statement)
    except msgspec.DecodeError as error:
        raise _Stop(ENVELOPE_NAME, f"the statement is not one of these: {error}") from error
    if (statement.type, statement.predicate_type) != (STATEMENT_TYPE, TEST_RESULT):
        raise _Stop(ENVELOPE_NAME, f"the statement is of type {statement.predicate_type!r}")
    until = statement.predicate.points.verdict.valid_until
    try:
        date.fromisoformat(until)
    except ValueError as error:
        raise _Stop(ENVELOPE_NAME, f"it holds until {until!r}, which is no date") from error
    return statement


def _verify_review(folder: Path, payload: bytes) -> Review:
    data = _read(folder, REVIEW_NAME)
    try:
        return verify_review(data, payload)
    except IntegrityError as error:
        raise _Stop(REVIEW_NAME, error.message) from error


def _read(folder: Path, name: str) -> bytes:
    """A small file of the folder, if it is a plain one: a link could lead anywhere, a pipe never end."""
    try:
        handle = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise _Stop(name, "it is missing") from error
    except OSError as error:
        raise _Stop(name, f"it is a link, or cannot be read: {error.strerror}") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):  # a folder has a descriptor as well
        os.close(handle)
        raise _Stop(name, "it is no plain file")
    with open(handle, "rb") as file:
        if status.st_size > _ENVELOPE_LIMIT_BYTES:
            raise _Stop(name, f"it is larger than {_ENVELOPE_LIMIT_BYTES >> 20} MiB")
        return file.read()
