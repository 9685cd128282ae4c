"""The evidence of a real proof: it verifies, and its ledgers say that the expectation was there before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.needs("world")

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")


def stockade(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=18)


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "evidence"
    monkeypatch.chdir(tmp_path)
    done = stockade("prove", "--only", "metadata-decimal", "--out", folder.name)  # as the README says it
    assert done.returncode == 0, done.stderr
    return folder


def points_of(folder: Path) -> Any:
    statement = json.loads(stockade("evidence", "show", str(folder)).stdout)
    return statement["predicate"]["urn:stockade:evidence:v1"]


def test_evidence_of_a_real_proof_verifies_until_a_byte_changes(evidence: Path) -> None:
    done = stockade("evidence", "verify", str(evidence), "--json")
    assert (done.returncode, json.loads(done.stdout)["counts"]["blocked"]) == (0, 1)
    points = points_of(evidence)
    assert (points["expectation"]["runs"], points["expectation"]["runsThatNameIt"]) == (1, 1)
    [case] = points["observation"]["cases"]
    assert (case["control"]["arrived"], case["attempt"]["arrived"], case["attempt"]["kernelAgrees"]) == (
        1,
        0,
        True,
    )
    [worker] = points["environment"]["worker"]
    assert (worker["runs"], worker["network"]) == (1, "room")
    [ledger] = (evidence / "ledger").iterdir()
    opened = json.loads((ledger / "records.jsonl").read_bytes().splitlines()[0])
    assert points["subject"]["codeSha256"] == opened["software"]["digest"]
    path = ledger / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"malformed-host", b"malformed-hosT", 1))
    done = stockade("evidence", "verify", str(evidence))
    assert (done.returncode, f"FAULT ledger/{ledger.name}/records.jsonl" in done.stdout) == (5, True)


def test_r175_a_third_person_verifies_from_the_files_alone_which_rubric_hosts_were_refused(
    evidence: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another place, another home, no network at all: the folder is all that there is."""
    assert stockade("prove", "--only", "evaluation-rubric-by-name", "--out", "scored").returncode == 0
    moved = tmp_path / "received"
    (tmp_path / "scored").rename(moved)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    alone = ["unshare", "--user", "--map-current-user", "--net", COMMAND, "evidence", "verify", str(moved)]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=18)
    assert (done.returncode, "1 blocked, 0 leaked" in done.stdout) == (0, True)
    [ledger] = (moved / "ledger").iterdir()
    records = [json.loads(line) for line in (ledger / "records.jsonl").read_bytes().splitlines()]
    assert len(records[0]["policy"]) >= 64  # which policy it was, by digest
    refused = {
        (one["name"], one["reason"]) for one in records if one.get("verdict") == "deny" and one.get("name")
    }
    assert refused == {("rubric.test", "rubric-in-scoring")}
    (ledger / "records.jsonl").write_bytes(b"")
    assert subprocess.run(alone, capture_output=True, timeout=18).returncode == 5
