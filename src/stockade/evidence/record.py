"""Write an evidence folder: the expectation before the proof, everything else after it, the signature last.

Until the last step there is no `evidence.json`, so whatever interrupts a proof leaves a folder that
verifies as open, never as evidence.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from stockade.errors import HostError, InternalError, UserError
from stockade.evidence.expectation import EXPECTATION_NAME, write_expectation
from stockade.evidence.junit import JUNIT_NAME, write_junit
from stockade.evidence.keys import PUBLIC_KEY_NAME, fingerprint, load_or_make_key, write_public_key
from stockade.evidence.manifest import ENVELOPE_NAME, list_files
from stockade.evidence.page import PAGE_NAME, render_page
from stockade.evidence.statement import (
    MATRIX_NAME,
    TRIALS_NAME,
    Circumstances,
    Found,
    build_statement,
    encode_statement,
)
from stockade.evidence.subject import POLICY_NAME, probe_subject
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Sealed(Struct, frozen=True):
    """A finished record: its folder and page, who signed it, how many files are listed."""

    folder: Path
    page: Path
    signer: str
    files: int


class OpenRecord:
    """A folder in which the expectation is written and the proof has yet to happen.

    Attributes:
        expectation_sha256: Goes into the first record of each run.
    """

    def __init__(
        self,
        folder: Path,
        techniques: Sequence[Technique],
        *,
        policy: str,
        layers_off: Sequence[str] = (),
        key_file: Path | None = None,
    ) -> None:
        """Take a new or empty folder; find the key now, so that it cannot be missing after the proof.

        Args:
            policy: Text of the policy that all techniques start from.

        Raises:
            UserError: Something is in the folder, it cannot be made, or the key cannot be used.
            HostError: A new key cannot be kept.
        """
        import hashlib

        self.folder = folder
        self._techniques = tuple(techniques)
        self._policy = policy.encode()
        self._layers_off = tuple(layers_off)
        self._key: Ed25519PrivateKey = load_or_make_key(key_file)
        _take_folder(folder)
        self.expected_at = now()
        expectation = write_expectation(techniques, layers_off, self.expected_at)
        self.expectation_sha256 = hashlib.sha256(expectation).hexdigest()
        try:
            self._write(EXPECTATION_NAME, expectation)
            self._write(POLICY_NAME, self._policy)
        except HostError as error:
            if isinstance(error.__cause__, FileExistsError):  # another proof was faster: it is theirs
                raise _in_use(folder) from error
            self.discard()
            raise

    def seal(
        self, judged: Sequence[Judged], circumstances: Circumstances, matrix: Mapping[str, Any] | None = None
    ) -> Sealed:
        """Write the page, JUnit and the trials, list all files, and sign the statement about them.

        Raises:
            InternalError: The expectation is not as it was, or something lies here that no record can hold.
        """
        from stockade.evidence.environment import add_workers, probe_environment
        from stockade.evidence.ledgers import read_ledgers

        signer = fingerprint(self._key.public_key())
        subject = probe_subject(self._policy, len(self._techniques))
        ledgers = tuple(read_ledgers(self.folder))
        environment = add_workers(probe_environment(any(one.is_browser for one in self._techniques)), ledgers)
        self._write(TRIALS_NAME, msgspec.json.encode(list(judged), order="sorted") + b"\n")
        if matrix:
            self._write(MATRIX_NAME, msgspec.json.encode(matrix, order="sorted") + b"\n")
        self._write(JUNIT_NAME, write_junit(self._techniques, judged, circumstances, socket.gethostname()))
        page = render_page(
            self.folder, self._techniques, judged, circumstances, subject, environment,
            signer=signer, matrix=matrix,
        )  # fmt: skip
        self._write(PAGE_NAME, page.encode(errors="replace"))
        self._write(PUBLIC_KEY_NAME, write_public_key(self._key.public_key()))
        files = list_files(self.folder)
        if not any(one.sha256 == self.expectation_sha256 for one in files if one.path == EXPECTATION_NAME):
            raise InternalError(
                "expectation-changed", f"{self.folder / EXPECTATION_NAME} was changed meanwhile"
            )
        statement = build_statement(
            Found(
                techniques=self._techniques,
                judged=tuple(judged),
                circumstances=circumstances,
                subject=subject,
                environment=environment,
                ledgers=ledgers,
                files=files,
                expectation_file=EXPECTATION_NAME,
                signer=signer,
            )
        )
        write_sealed(self.folder / ENVELOPE_NAME, encode_statement(statement), self._key)
        return Sealed(self.folder, self.folder / PAGE_NAME, signer, len(files))

    def discard(self) -> None:
        """Take everything away that was written since the folder was empty."""
        import shutil

        for entry in os.scandir(self.folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)

    def _write(self, name: str, data: bytes) -> None:
        with _told(self.folder / name), open(self.folder / name, "xb") as file:
            file.write(data)


def write_sealed(path: Path, payload: bytes, key: Ed25519PrivateKey) -> None:
    """Sign, and give the file its name only when it is whole."""
    from stockade.evidence.envelope import sign

    put_in_place(path, sign(payload, key))


def put_in_place(path: Path, data: bytes) -> None:
    """Write a file beside its name, make it durable, then rename it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with _told(path):
        try:
            with open(draft, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(draft, path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """A full disk, say, is the operator's matter."""
    try:
        yield
    except OSError as error:
        raise HostError(
            "evidence-not-written", f"cannot write {path}: {error.strerror}", "name a folder with more room"
        ) from error


def now() -> str:
    """The time in RFC 3339, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _take_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = next(os.scandir(folder), None) is None
    except OSError as error:
        raise UserError("no-evidence-folder", f"cannot write to {folder}: {error.strerror}") from error
    if not is_empty:
        raise _in_use(folder)


def _in_use(folder: Path) -> UserError:
    return UserError(
        "evidence-folder-in-use",
        f"{folder} is not empty, and evidence of two proofs must not mix",
        "name a new folder",
    )
