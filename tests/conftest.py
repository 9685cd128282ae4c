"""What every test stands on: the seal, the clock, declared needs, and Stockade as a command.

The suite runs inside the range or in any namespace without a way out, and nowhere else:
it asks before the first test is collected, by looking at links and routes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from stockade.errors import StockadeError
from stockade.prove.sealed import SEALED_VARIABLE, SealedProof, sealed_proof
from stockade.prove.world_client import World

try:
    PROOF: SealedProof = sealed_proof()
except StockadeError as problem:
    pytest.exit(
        f"\n{problem}\n{problem.hint}\nThe suite attacks; it does not run where a packet could leave.", 3
    )

# The same examples each time, so that CI is a fact; a slow machine is no fault; nothing is written to the
# checkout. STOCKADE_FUZZ=1 looks for new ones.
settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", max_examples=20_000, deadline=None, database=None)
settings.load_profile("fuzz" if os.environ.get("STOCKADE_FUZZ") else "suite")

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")


# --- declared needs ----------------------------------------------------------------------


def _can_make_room() -> bool:
    script = "ip link set lo up && ip route add local default dev lo && nft list ruleset"
    return subprocess.run(["unshare", "-Urn", "sh", "-c", script], capture_output=True).returncode == 0


def _can_bubblewrap() -> bool:
    command = ["bwrap", "--unshare-user", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(command, capture_output=True).returncode == 0


def _can_make_group() -> bool:
    """A control group that limits memory and processes can be made below ours (version 1 or 2)."""
    from stockade.sandbox.cgroup import open_group

    name = f"stockade-need-{os.urandom(4).hex()}"
    group, refused = open_group(name, {"memory": 1 << 26, "pids": 9}, may_move=False)
    group.close()
    return not refused


def _has_version_2() -> bool:
    """Version 2 of control groups, with a controller that a group with processes cannot hand on."""
    from stockade.sandbox.cgroup_place import probe_place, read_words

    try:
        place = probe_place("hugetlb")
    except OSError:
        return False
    return place.is_unified and "hugetlb" in read_words(place.folder, "cgroup.controllers")


NEEDS: dict[str, Callable[[], bool]] = {
    "world": lambda: SEALED_VARIABLE in os.environ and PROOF.device is not None,
    "userns": lambda: subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode == 0,
    "room": _can_make_room,
    "bwrap": _can_bubblewrap,
    "cgroup": _can_make_group,
    "cgroup2": _has_version_2,
    "root": lambda: os.geteuid() == 0,
    "ordinary-user": lambda: os.geteuid() != 0,
    "chromium": lambda: shutil.which("chromium") is not None,
    "node": lambda: shutil.which("node") is not None,
    "git": lambda: shutil.which("git") is not None,
    "gcc": lambda: shutil.which("gcc") is not None,
    "ssh": lambda: shutil.which("ssh") is not None,
    "wget": lambda: shutil.which("wget") is not None,
    "openssl": lambda: shutil.which("openssl") is not None,
}
_tried: dict[str, bool] = {}


def has(need: str) -> bool:
    """Whether this machine can do it, found out by trying, once."""
    if need not in _tried:
        _tried[need] = NEEDS[need]()
    return _tried[need]


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "needs(*names): what the machine must be able to do; if STOCKADE_EXPECT declares it, it must",
        "kernel: makes real namespaces, mounts or filters",
        "clients: runs a real client program",
        "slow: takes more than a second",
    ):
        config.addinivalue_line("markers", line)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A missing need skips, unless `STOCKADE_EXPECT` declares it: then its absence is the failure."""
    declared = os.environ.get("STOCKADE_EXPECT", "").replace(",", " ").split()
    for mark in item.iter_markers("needs"):
        for need in mark.args:
            if has(need):
                continue
            if need in declared or "all" in declared:
                pytest.fail(
                    f"STOCKADE_EXPECT declares {need!r}, and this machine cannot do it", pytrace=False
                )
            pytest.skip(f"this machine cannot do {need!r}")


# --- the world -----------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    """The range's world, freshly reset. Fails where the suite was started without the range."""
    if not has("world"):
        pytest.fail("this test needs the range: tools/sealed .venv/bin/python -m pytest …", pytrace=False)
    client = World()
    client.reset()
    return client


@pytest.fixture
def range_ca(workspace: Path) -> Path:
    """The range's CA certificate, copied to where a worker sees it."""
    return Path(shutil.copy(World().ca_path, workspace / "ca.pem"))


# --- Stockade as a command -------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What one `stockade run` left: the command's code and output, the ledger's records, the report."""

    code: int
    out: str
    err: str
    records: list[dict[str, Any]] = field(repr=False)
    report: dict[str, Any] = field(repr=False)

    def attempts(self, **wanted: Any) -> list[dict[str, Any]]:
        """Attempt records with these keys; questions, commands and calls only if `entry` asks for them."""
        found = [record for record in self.records if record["kind"] == "attempt"]
        if "entry" not in wanted:
            found = [record for record in found if record["entry"] not in ("dns", "exec", "socket")]
        return [record for record in found if all(record.get(key) == value for key, value in wanted.items())]

    def denials(self, **wanted: Any) -> list[dict[str, Any]]:
        return self.attempts(verdict="deny", **wanted)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The folder a worker is started in; the only part of `tmp_path` that it sees."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def policy_file(tmp_path: Path) -> Callable[[str], Path]:
    """Write a policy outside the view; `version` is put in front, and an open `exec` if it has none."""

    def write(text: str) -> Path:
        says_who_may_run = "exec:" in text or "exec/" in text
        path = tmp_path / "policy.yaml"
        path.write_text("version: 1\n" + ("" if says_who_may_run else "exec: {mode: any}\n") + text)
        return path

    return write


class Stockade:
    """Runs commands contained: ``stockade(["curl", …], "rules: …", extra=["--phase", "work"])``."""

    command = COMMAND

    def __init__(self, folder: Path, workspace: Path, write_policy: Callable[[str], Path]) -> None:
        self._folder = folder
        self._workspace = workspace
        self._write_policy = write_policy
        self._count = 0

    def __call__(
        self,
        command: list[str],
        policy: str | None = None,
        *,
        extra: list[str] | None = None,
        prefix: list[str] | None = None,
        stdin: bytes = b"",
        timeout_s: float = 18,
    ) -> Run:
        worker = self.start(command, policy, extra=extra, prefix=prefix)
        try:
            out, err = worker.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            worker.kill()
            out, err = worker.communicate()
            pytest.fail(f"still running after {timeout_s} s\n{out!r}\n{err!r}", pytrace=False)
        return self.finish(worker, out, err)

    def start(
        self,
        command: list[str],
        policy: str | None = None,
        *,
        extra: list[str] | None = None,
        prefix: list[str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start and do not wait; `finish` reads what it left. `prefix` goes before `stockade` itself."""
        self._count += 1
        chosen = [] if policy is None else ["-p", str(self._write_policy(policy))]
        kept = ["--ledger", str(self.ledger), "--report", str(self._report)]
        return subprocess.Popen(
            [*(prefix or []), COMMAND, "run", *chosen, *kept, *(extra or []), "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._workspace,
        )

    def finish(self, worker: subprocess.Popen[bytes], out: bytes, err: bytes) -> Run:
        report = self._report.read_text() if self._report.exists() else ""
        return Run(
            code=worker.returncode,
            out=out.decode(errors="replace"),
            err=err.decode(errors="replace"),
            records=self.read_ledger(self.ledger),
            report=json.loads(report or "{}"),
        )

    @staticmethod
    def read_ledger(shelf: Path) -> list[dict[str, Any]]:
        """All records of a shelf, the way a user gets them."""
        if not shelf.exists():
            return []
        done = subprocess.run(
            [COMMAND, "log", "--ledger", str(shelf), "--json"], capture_output=True, timeout=15
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    @property
    def ledger(self) -> Path:
        """The shelf of the run that was started last."""
        return self._folder / f"ledger{self._count}"

    @property
    def _report(self) -> Path:
        return self._folder / f"report{self._count}.json"


@pytest.fixture
def stockade(tmp_path: Path, workspace: Path, policy_file: Callable[[str], Path]) -> Stockade:
    """`stockade run` as a person would call it, with its ledger and report read back."""
    return Stockade(tmp_path, workspace, policy_file)
