"""The README's first command does what it says, and says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stockade.prove.world_client import World

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.clients,
    pytest.mark.needs("world", "userns", "bwrap", "room", "chromium"),
]


@pytest.mark.timeout(60)  # three programs and two browsers: 8 s alone, twice that on a busy machine
def test_the_demo_comes_out_as_it_must(world: World, tmp_path: Path) -> None:
    """Every step says "as it must be": curl, pip and a browser get what is listed, and nothing else."""
    done = subprocess.run(
        [ROOT / "tools" / "demo"],
        env={**os.environ, "STOCKADE_DEMO_LEDGER": str(tmp_path / "ledger")},
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert "NOT as it must be" not in done.stderr
    assert (done.returncode, done.stderr.count("   as it must be: ")) == (0, 6)
    assert "metadata-address" in done.stdout
