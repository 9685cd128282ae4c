"""What the host does while an attack runs, because the attack asks for it (`kit.wait_for`).

A stage is a function that takes what the lane knows of the run; in the open there is no run,
and nothing is done.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

STOCKADE = (sys.executable, "-m", "stockade")


class Scene(Struct, frozen=True):
    """One contained run while it runs.

    Attributes:
        folder: The lane's folder for this execution; the worker does not see it.
        shelf: Its ledger shelf.
        run: The run's name.
        policy: The policy file in force.
    """

    folder: Path
    shelf: Path
    run: str
    policy: Path


def scoring(scene: Scene) -> None:
    """The operator moves the run on to its scoring phase."""
    _command("phase", "scoring", "--ledger", str(scene.shelf))


def looser_policy(scene: Scene) -> None:
    """The operator replaces the policy by one that lets everything through that a rule can."""
    path = scene.folder / "looser.yaml"
    names = ("rubric.test", "mirror.test", "hub.test", "evil.test", "paste.test")
    rules = "".join(f"  - allow: {name}\n    ports: [80, 443]\n" for name in (*names, "allowed.test"))
    kept = [part for part in scene.policy.read_text().split("\n") if part.startswith(("rubric:", "exec:"))]
    path.write_text("version: 1\nrules:\n" + rules + "\n".join(kept) + "\n")
    _command("policy", "replace", str(path), "--ledger", str(scene.shelf))


STAGES: dict[str, Callable[[Scene], None]] = {"scoring": scoring, "looser-policy": looser_policy}


def _command(*words: str) -> None:
    subprocess.run([*STOCKADE, *words], check=True, capture_output=True, timeout=10)
