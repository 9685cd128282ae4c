"""A preset of `exec:` as a person would use it: `under("exec/coding", command)`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Under = Callable[..., Any]


@pytest.fixture
def under(stockade: Callable[..., Any]) -> Under:
    """Run a command under a preset, in a folder that it may write; `more` is further policy."""

    def run(preset: str, command: list[str], more: str = "", **kept: Any) -> Any:
        return stockade(command, f"include: [{preset}]\nfiles: {{write: [.]}}\n{more}", **kept)

    return run


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The folder a worker is started in; with the parameter "/tmp" below /tmp, which is private inside."""
    if getattr(request, "param", "") == "/tmp":
        with tempfile.TemporaryDirectory(prefix="work-", dir="/tmp") as folder:
            yield Path(folder)
    else:
        folder = tmp_path / "work"
        folder.mkdir()
        yield folder
