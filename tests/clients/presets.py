"""What ordinary work under a preset must have been."""

from __future__ import annotations

from typing import Any


def work_is_done(run: Any, *lines: str) -> None:
    """It printed these lines and ended well, and no command of it was refused."""
    assert run.out.splitlines() == list(lines), run.err
    assert run.code == 0, run.err
    assert [(record["program"], record["why"]) for record in run.denials(entry="exec")] == []
