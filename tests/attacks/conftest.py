"""Each attack twice: in the open, where it must arrive, and contained, where it must not."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_steps import Step, Tried

from stockade.prove.technique import ATTACKS_FOLDER
from stockade.prove.world_client import World

PROBE = ATTACKS_FOLDER / "probe.py"
PAYLOADS = Path(__file__).parent / "payload"
PYTHON = "/usr/bin/python3"


@pytest.fixture
def probe_file(workspace: Path) -> Path:
    return Path(shutil.copy(PROBE, workspace / "probe.py"))


@pytest.fixture
def in_the_open(probe_file: Path, world: World) -> Callable[..., Tried]:
    """Do steps in *host* with nothing of ours in the way: the control."""

    def run(*steps: Step) -> Tried:
        done = subprocess.run(
            [PYTHON, "probe.py", json.dumps(steps)], capture_output=True, cwd=probe_file.parent, timeout=18
        )
        return Tried(_answers(done.stdout.decode()))

    return run


@pytest.fixture
def contained(probe_file: Path, stockade: Callable[..., Any]) -> Callable[..., Tried]:
    """Do steps inside `stockade run`; the payload must have run to its end."""

    def run(*steps: Step, policy: str | None = None, **options: Any) -> Tried:
        done = stockade([PYTHON, "probe.py", json.dumps(steps)], policy, **options)
        assert done.code == 0, f"the payload did not run: {done.code} {done.out} {done.err}"
        return Tried(_answers(done.out), done)

    return run


Payload = Callable[..., tuple[Any, Any]]


@pytest.fixture
def payload(stockade: Callable[..., Any], workspace: Path) -> Payload:
    """Run a program of `payload/` as a worker that may write its workspace: what it answered, and the run.

    `payload("code.py", "exec: …", "mounts", "notify")` gives the named layers up. The payload gets the
    workspace's path, then `arguments`; it has to end well and prints one JSON value.
    """

    def run(name: str, policy: str, *layers_off: str, arguments: tuple[str, ...] = (), **more: Any) -> Any:
        shutil.copytree(PAYLOADS, workspace, dirs_exist_ok=True)
        extra = ["--write", str(workspace), *(f"--without-layer={layer}" for layer in layers_off)]
        done = stockade([PYTHON, name, str(workspace), *arguments], policy, extra=extra, **more)
        assert done.code == 0, f"the payload did not run to its end: {done.code} {done.out} {done.err}"
        return json.loads(done.out), done

    return run


@pytest.fixture
def plainly(workspace: Path) -> Callable[..., Any]:
    """The same payload with nothing of ours in the way, behind `prefix`: the control."""

    def run(name: str, *arguments: str, prefix: tuple[str, ...] = ()) -> Any:
        shutil.copytree(PAYLOADS, workspace, dirs_exist_ok=True)
        command = [*prefix, PYTHON, name, str(workspace), *arguments]
        done = subprocess.run(command, capture_output=True, cwd=workspace, timeout=18)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return run


def _answers(output: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in output.splitlines()]
    assert lines, "the payload said nothing"
    assert lines[-1] == {"done": True}, f"the payload did not reach its end: {lines}"
    return lines[:-1]
