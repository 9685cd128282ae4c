"""Verification: what is whole verifies; each changed byte, added or missing file is named."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import IN_TOTO, Envelope, parse_envelope, sign
from stockade.evidence.keys import fingerprint, load_key, load_or_make_key, write_public_key
from stockade.evidence.manifest import FileEntry
from stockade.evidence.verify import verify_evidence

# SHA-256 of nothing (FIPS 180-4).
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
LEDGER = "ledger/20261130T101500-abcdef/records.jsonl"
KINDS = [
    "evidence.json", "signer.pub", "expectation.json", "policy.yaml", "trials.json", "junit.xml",
    "index.html", LEDGER, "browser/one-browser/before.png", "browser/one-browser/after.png",
    "browser/one-browser/transcript.jsonl",
]  # fmt: skip


def faulty_files(folder: Path) -> list[str]:
    report = verify_evidence(folder)
    assert report.exit_code == (5 if report.faults else 0)
    return [fault.file for fault in report.faults]


def test_an_untouched_folder_verifies(sealed: Path, key_file: Path) -> None:
    report = verify_evidence(sealed)
    assert (report.exit_code, report.faults, report.is_pinned) == (0, (), False)
    assert report.signed_by == fingerprint(load_key(key_file).public_key())


def test_the_tests_below_touch_every_file_of_the_folder(sealed: Path) -> None:
    assert sorted(KINDS) == sorted(
        str(path.relative_to(sealed)) for path in sealed.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_one_changed_byte_is_found_and_the_file_is_named(sealed: Path, name: str, where: str) -> None:
    path = sealed / name
    data = bytearray(path.read_bytes())
    place = {"first": 0, "middle": len(data) // 2, "last": len(data) - 1}[where]
    data[place] ^= 1
    path.write_bytes(data)
    assert faulty_files(sealed) == [name]
    data[place] ^= 1
    path.write_bytes(data)
    assert faulty_files(sealed) == []


def test_every_byte_of_the_envelope_counts(sealed: Path) -> None:
    """Not only the payload: the key's name, spaces and base64's unused bits as well."""
    path = sealed / "evidence.json"
    data = path.read_bytes()
    tail = data.index(b'"payloadType"') - 4
    for place in [*range(16), *range(tail, len(data))]:
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(changed)
        assert verify_evidence(sealed).exit_code == 5, place
    path.write_bytes(data)
    assert verify_evidence(sealed).exit_code == 0


@pytest.mark.parametrize("name", KINDS[1:])
def test_a_missing_file_is_found(sealed: Path, name: str) -> None:
    (sealed / name).unlink()
    assert faulty_files(sealed) == [name]


@pytest.mark.parametrize("name", ["more.txt", ".hidden", "ledger/more", "browser/one-browser/more.png"])
def test_an_added_file_is_found(sealed: Path, name: str) -> None:
    (sealed / name).write_bytes(b"")
    assert faulty_files(sealed) == [name]


def test_a_longer_and_a_shorter_file_are_found(sealed: Path) -> None:
    for change in (lambda data: data + b"\n", lambda data: data[:-1]):
        data = (sealed / "junit.xml").read_bytes()
        (sealed / "junit.xml").write_bytes(change(data))
        assert faulty_files(sealed) == ["junit.xml"]
        (sealed / "junit.xml").write_bytes(data)


def test_two_files_that_changed_places_are_both_named(sealed: Path) -> None:
    first, second = sealed / KINDS[8], sealed / KINDS[9]
    old, new = first.read_bytes(), second.read_bytes()
    first.write_bytes(new)
    second.write_bytes(old)
    assert faulty_files(sealed) == sorted((KINDS[8], KINDS[9]))


def test_a_link_to_the_same_content_is_no_file_of_the_record(sealed: Path, tmp_path: Path) -> None:
    shutil.move(sealed / "junit.xml", tmp_path / "junit.xml")
    (sealed / "junit.xml").symlink_to(tmp_path / "junit.xml")
    (fault,) = verify_evidence(sealed).faults
    assert (fault.file, fault.problem) == ("junit.xml", "it is a link or a special file")


def test_a_linked_folder_is_not_entered(sealed: Path, tmp_path: Path) -> None:
    shutil.move(sealed / "browser", tmp_path / "browser")
    (sealed / "browser").symlink_to(tmp_path / "browser")
    assert faulty_files(sealed) == ["browser", *sorted(name for name in KINDS if name.startswith("browser/"))]


@pytest.mark.parametrize("name", ["junit.xml", "signer.pub", "evidence.json", "more"])
def test_a_pipe_is_named_and_not_waited_for(sealed: Path, name: str) -> None:
    (sealed / name).unlink(missing_ok=True)
    os.mkfifo(sealed / name)
    assert faulty_files(sealed) == [name]


@pytest.mark.parametrize("name", ["junit.xml", "signer.pub", "evidence.json"])
def test_a_folder_in_the_place_of_a_file_is_named(sealed: Path, name: str) -> None:
    (sealed / name).unlink()
    (sealed / name).mkdir()
    assert faulty_files(sealed) == [name]


def test_a_folder_in_the_place_of_a_review_is_named(sealed: Path) -> None:
    (sealed / "review.json").mkdir()
    assert faulty_files(sealed) == ["review.json"]


def test_a_file_of_another_size_is_named_without_reading_it(sealed: Path) -> None:
    """A sparse file of 4 TiB takes no room, and an hour to read."""
    os.truncate(sealed / "junit.xml", 1 << 42)
    (fault,) = verify_evidence(sealed).faults
    assert fault.file == "junit.xml"
    assert fault.problem.startswith("it has 4398046511104 bytes instead of ")


def test_folders_without_end_are_named_and_not_followed(sealed: Path) -> None:
    """Deeper than Python may recurse, and than a path may be long (PATH_MAX, 4,096 bytes)."""
    here = os.open(sealed, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (name,) = faulty_files(sealed)
    assert name.startswith("deeper/deeper/")
    subprocess.run(["rm", "-rf", sealed / "deeper"], check=True)


@pytest.mark.parametrize("name", ["evidence.json", "signer.pub"])
def test_a_linked_envelope_or_key_is_not_followed(sealed: Path, tmp_path: Path, name: str) -> None:
    shutil.move(sealed / name, tmp_path / name)
    (sealed / name).symlink_to(tmp_path / name)
    assert faulty_files(sealed) == [name]


def test_without_an_envelope_the_evidence_is_open(sealed: Path) -> None:
    (sealed / "evidence.json").unlink()
    report = verify_evidence(sealed)
    assert (report.exit_code, report.verifies) == (6, False)


def test_a_folder_that_is_not_there_is_the_caller_s_fault(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        verify_evidence(tmp_path / "missing")


# --- whose key ----------------------------------------------------------------------------------


def test_a_pinned_key_is_demanded(sealed: Path, key_file: Path) -> None:
    own = fingerprint(load_key(key_file).public_key())
    assert verify_evidence(sealed, own).is_pinned
    assert verify_evidence(sealed, "SHA256:" + own.upper()).exit_code == 0
    other = verify_evidence(sealed, "0" * 64)
    assert (other.exit_code, [fault.file for fault in other.faults]) == (5, ["evidence.json"])


@pytest.mark.parametrize("text", ["", "0" * 63, "0" * 65, "g" * 64, "sha512:" + "0" * 64])
def test_what_is_no_fingerprint_is_refused(sealed: Path, text: str) -> None:
    with pytest.raises(UserError, match="fingerprint"):
        verify_evidence(sealed, text)


def test_a_record_that_somebody_else_signed_anew_passes_only_without_a_pin(
    sealed: Path, key_file: Path, tmp_path: Path
) -> None:
    """What the warning `key not pinned` is about: the key beside the record proves nothing by itself."""
    other = load_or_make_key()
    payload = parse_envelope((sealed / "evidence.json").read_bytes()).payload
    resign(sealed, payload.replace(b"WARNED", b"PASSED"), other)
    report = verify_evidence(sealed)
    assert (report.exit_code, report.is_pinned) == (0, False)
    assert verify_evidence(sealed, fingerprint(load_key(key_file).public_key())).exit_code == 5


def test_a_key_file_that_is_exchanged_alone_is_named(sealed: Path) -> None:
    (sealed / "signer.pub").write_bytes(write_public_key(load_or_make_key().public_key()))
    assert faulty_files(sealed) == ["signer.pub"]


# --- what a list may say ------------------------------------------------------------------------


def resign(folder: Path, payload: bytes, key: Any) -> None:
    """Sign other words, and put the key and its digest in order, as a hostile author of evidence would."""
    import hashlib
    import json

    data = write_public_key(key.public_key())
    statement = json.loads(payload)
    files = statement["predicate"]["urn:stockade:evidence:v1"]["integrity"]["files"]
    for entry in files:
        if entry["path"] == "signer.pub":
            entry.update(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    (folder / "signer.pub").write_bytes(data)
    (folder / "evidence.json").write_bytes(sign(msgspec.json.encode(statement), key))


def with_entry(folder: Path, key_file: Path, entry: FileEntry) -> None:
    import json

    payload = parse_envelope((folder / "evidence.json").read_bytes()).payload
    statement = json.loads(payload)
    statement["predicate"]["urn:stockade:evidence:v1"]["integrity"]["files"].append(
        msgspec.to_builtins(entry)
    )
    resign(folder, json.dumps(statement).encode(), load_key(key_file))


@pytest.mark.parametrize(
    "path",
    [
        "../outside", "/etc/hostname", "ledger/../../outside", "./junit.xml", "ledger//x", "", ".", "..",
        "a\0b", "evidence.json", "review.json", "ledger/",
    ],
)  # fmt: skip
def test_a_signed_path_that_leads_elsewhere_is_refused(sealed: Path, key_file: Path, path: str) -> None:
    (sealed.parent / "outside").write_bytes(b"")
    with_entry(sealed, key_file, FileEntry(path, 0, EMPTY))
    (fault,) = verify_evidence(sealed).faults
    assert "its path is refused" in fault.problem


def test_an_honest_addition_that_is_signed_verifies(sealed: Path, key_file: Path) -> None:
    """The counterpart of the one above: it is the path that is refused there, not the additional entry."""
    (sealed / "more").write_bytes(b"")
    with_entry(
        sealed,
        key_file,
        FileEntry("more", 0, EMPTY),
    )
    assert verify_evidence(sealed).exit_code == 0


def test_a_file_that_is_listed_twice_is_refused(sealed: Path, key_file: Path) -> None:
    with_entry(sealed, key_file, FileEntry("junit.xml", 0, "0" * 64))
    (fault,) = verify_evidence(sealed).faults
    assert (fault.file, fault.problem) == ("junit.xml", "it is listed twice")


def test_a_signed_statement_with_a_key_or_a_date_of_its_own_is_refused_in_plain_text(
    sealed: Path, key_file: Path
) -> None:
    payload = parse_envelope((sealed / "evidence.json").read_bytes()).payload
    for old, new in (
        (b'"claim":', b'"\\u001b[31m":0,"claim":'),
        (b'"validUntil":"', b'"validUntil":"\\u001b[31m'),
    ):
        assert payload.count(old) == 1
        resign(sealed, payload.replace(old, new), load_key(key_file))
        (fault,) = verify_evidence(sealed).faults
        assert fault.file == "evidence.json"
        assert fault.problem.isprintable()


@pytest.mark.parametrize("key", ["_type", "predicateType"])
def test_a_signed_statement_of_another_type_is_no_evidence(sealed: Path, key_file: Path, key: str) -> None:
    import json

    statement = json.loads(parse_envelope((sealed / "evidence.json").read_bytes()).payload)
    statement[key] = "https://example.com/other"
    resign(sealed, json.dumps(statement).encode(), load_key(key_file))
    assert faulty_files(sealed) == ["evidence.json"]


def test_a_signed_payload_that_is_no_statement_is_no_evidence(sealed: Path, key_file: Path) -> None:
    (sealed / "evidence.json").write_bytes(sign(b"{}", load_key(key_file)))
    assert faulty_files(sealed) == ["evidence.json"]


def test_an_unprintable_name_is_written_out(sealed: Path) -> None:
    (sealed / "a\x1b[31m").write_bytes(b"")
    assert faulty_files(sealed) == ["a\\x1b[31m"]


def test_an_envelope_is_a_value_that_other_code_can_compare() -> None:
    key = load_or_make_key()
    envelope = parse_envelope(sign(b"x", key))
    assert envelope == Envelope(b"x", IN_TOTO, fingerprint(key.public_key()), envelope.signature)
    with pytest.raises(IntegrityError):
        parse_envelope(b"x")
