"""The pack in docs/guides/packs.md is one: it loads, and every key in it is what the engine says.

That a real try agrees too is tested where tries are made (tests/kernel/test_lab_live.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stockade.cli.main import main
from stockade.lab.pack.keys import ORIGIN_KEYS, PACK_KEYS, SCENARIO_KEYS

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "packs.md").read_text()


def test_the_example_passes_its_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card, pack, *_ = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "card.yaml").write_text(card)
    (tmp_path / "pack.yaml").write_text(pack)
    assert main(["lab", "check", "--no-live", str(tmp_path / "pack.yaml")]) == 0
    assert "Five events: 5 of 5 scenarios" in capsys.readouterr().out


def test_every_key_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "pack-keys.md").read_text()
    for key in (*PACK_KEYS, *SCENARIO_KEYS, *ORIGIN_KEYS):
        assert f"| `{key.name}` |" in page
