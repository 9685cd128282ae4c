"""`stockade lab verify`: what is printed, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from doubles.lab_game import bank, begin_round, perfect, play
from stockade.cli.main import main
from stockade.evidence.keys import fingerprint
from stockade.lab.progress.result import sign_result

Captured = pytest.CaptureFixture[str]
KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
SIGNER = fingerprint(KEY.public_key())


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    path.write_bytes(
        sign_result(bank(), play(bank(), begin_round(bank(), "cli", 2), perfect), "\x1b[31mAda", KEY)
    )
    return path


def test_a_result_is_told_in_five_lines(result: Path, capsys: Captured) -> None:
    assert main(["lab", "verify", str(result)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{result}: verifies: the round and its points follow from the seed and the answers"
    assert lines[1] == f"signed by {SIGNER}, key not pinned"
    assert "played seed cli at tier 2 (clock on)" in lines[2]
    assert lines[3].startswith("grade S: 100.0 %, ")
    assert lines[4].endswith(bank().pack.digest)
    assert "\x1b" not in "".join(lines)


def test_a_pinned_key(result: Path, capsys: Captured) -> None:
    assert main(["lab", "verify", str(result), "--key", SIGNER.upper()]) == 0
    assert "the key that you asked for" in capsys.readouterr().out
    assert main(["lab", "verify", str(result), "--key", f"sha256:{SIGNER}"]) == 0
    assert main(["lab", "verify", str(result), "--key", bytes.fromhex(SIGNER).hex(":")]) == 0
    assert main(["lab", "verify", str(result), "--key", SIGNER[:-1]]) == 2
    assert "bad-fingerprint" in capsys.readouterr().err
    assert main(["lab", "verify", str(result), "--key", "0" * 64]) == 5
    assert "wrong-key" in capsys.readouterr().err


def test_as_json(result: Path, capsys: Captured) -> None:
    assert main(["lab", "verify", str(result), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verifies"], told["grade"], told["seed"], told["signed_by"]) == (True, "S", "cli", SIGNER)
    result.write_bytes(result.read_bytes().replace(b"payload", b"payloud", 1))
    assert main(["lab", "verify", str(result), "--json"]) == 5
    told = json.loads(capsys.readouterr().out)
    assert (told["verifies"], told["code"]) == (False, "bad-envelope")


def test_a_changed_result_is_refused_with_5_and_a_missing_one_with_2(
    result: Path, tmp_path: Path, capsys: Captured
) -> None:
    result.write_bytes(result.read_bytes()[:-40])
    assert main(["lab", "verify", str(result)]) == 5
    assert "bad-envelope" in capsys.readouterr().err
    assert main(["lab", "verify", str(tmp_path / "none.json")]) == 2
    assert main(["lab", "verify", str(tmp_path)]) == 2
    (tmp_path / "large").write_bytes(b" " * ((4 << 20) + 1))
    assert main(["lab", "verify", str(tmp_path / "large")]) == 2
