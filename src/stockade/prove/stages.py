"""What the host does while an attack runs, because the attack asks for it (`kit.wait_for`).

A stage is a function that takes what the lane knows of the run, and gives a word if it has seen
something that the judge should know. In the open there is no run, so only those of `OPEN_TOO` are
played there, which do what any operator does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

STOCKADE = (sys.executable, "-P", "-m", "stockade")  # -P: not from the working folder, which is the worker's


class Scene(Struct, frozen=True):
    """One run while it runs.

    Attributes:
        folder: The lane's folder for this execution; the worker does not see it.
        workspace: The worker's.
        shelf: Its ledger shelf.
        run: The run's name; empty in the open.
        policy: The policy file in force.
        facts: What the attack was told.
        is_open: Nothing of Stockade is in the way.
        layers_off: What the run was started without.
    """

    folder: Path
    workspace: Path
    shelf: Path
    run: str
    policy: Path
    facts: dict[str, Any]
    is_open: bool
    layers_off: tuple[str, ...]


def scoring(scene: Scene) -> None:
    """The operator moves the run on to its scoring phase."""
    _command("phase", "scoring", "--run", scene.run, "--ledger", str(scene.shelf))


def looser_policy(scene: Scene) -> None:
    """The operator replaces the policy by one that lets everything through that a rule can."""
    path = scene.folder / "looser.yaml"
    names = ("rubric.test", "mirror.test", "hub.test", "evil.test", "paste.test", "allowed.test")
    rules = "".join(f"  - allow: {name}\n    ports: [80, 443]\n" for name in names)
    path.write_text("version: 1\nrules:\n" + rules + "rubric: [rubric.test]\n")
    _command("policy", "replace", str(path), "--run", scene.run, "--ledger", str(scene.shelf))


def late_fifo(scene: Scene) -> None:
    """A program of the host opens a FIFO in a folder that the worker may read, and waits at it."""
    path = Path(scene.facts["shared"]) / "fifo"
    os.mkfifo(path)
    path.chmod(0o666)
    line = f'read line < {path}; echo "$line" > {scene.folder}/fifo.txt'
    subprocess.Popen(["timeout", "3", "sh", "-c", line])


STAGES: dict[str, Callable[[Scene], str | None]] = {
    "scoring": scoring,
    "looser-policy": looser_policy,
    "late-fifo": late_fifo,
}
OPEN_TOO = frozenset({"late-fifo"})


def _command(*words: str) -> None:
    subprocess.run([*STOCKADE, *words], check=True, capture_output=True, timeout=10)
