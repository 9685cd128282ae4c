"""One evidence folder for all tests of this folder, sealed once; each test gets a copy to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from doubles.made_up_proof import seal_proof
from stockade.evidence.keys import default_key_file


@pytest.fixture(scope="session")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        folder = tmp_path_factory.mktemp("sealed") / "evidence"
        seal_proof(folder)
        shutil.copy(default_key_file(), folder.parent / "evidence.key")
    return folder


@pytest.fixture
def sealed(sealed_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return Path(shutil.copytree(sealed_once, tmp_path / "evidence"))


@pytest.fixture
def key_file(sealed_once: Path) -> Path:
    """The key that signed it."""
    return sealed_once.parent / "evidence.key"
