"""Real namespaces, mounts and filters, seen from a worker that is contained and from one that is not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel_steps import Contained


@pytest.fixture
def work() -> Iterator[Path]:
    """A workspace in a folder of its own below /tmp, owned by whoever runs the tests."""
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        path = Path(folder).resolve() / "work"
        path.mkdir()
        yield path


@pytest.fixture
def contained(work: Path) -> Contained:
    return Contained(work)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kernel)
            item.add_marker(pytest.mark.needs("userns", "bwrap"))
