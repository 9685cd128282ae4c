"""What the host does while an attack runs, because the attack asks for it (`kit.wait_for`).

A stage is a function that takes what the lane knows of the run, and gives a word if it has seen
something that the judge should know. In the open there is no run, so only those of `OPEN_TOO` are
played there, which do what any operator does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
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


def operator_commits(scene: Scene) -> None:
    """The operator works with git in the workspace, as he would while an agent works there."""
    git = ("git", "-C", str(scene.workspace), "-c", "user.name=operator", "-c", "user.email=op@range.test")
    for words in (("status",), ("commit", "-q", "--allow-empty", "-m", "work")):
        subprocess.run([*git, *words], capture_output=True, timeout=10, stdin=subprocess.DEVNULL)


def write_report(scene: Scene) -> None:
    """In the open: a tool writes its report to a path in the workspace, as most tools do."""
    if scene.is_open:
        Path(scene.facts["report"]).write_text("report\n")


def run_again(scene: Scene) -> str:
    """The operator starts the next run in the same workspace; in the open a Python program of his own."""
    if scene.is_open:
        command = ["python3", "-c", "import ctypes, signal"]
    else:
        launcher = str(Path(sys.executable).parent / "stockade")
        shelf = str(scene.folder / "next")
        command = [launcher, "run", "-q", "-p", str(scene.policy), "--ledger", shelf, "--", "/usr/bin/true"]
    done = subprocess.run(command, cwd=scene.workspace, capture_output=True, timeout=10)
    return "started-clean" if done.returncode == 0 else f"code-{done.returncode}"


def read_cache(scene: Scene) -> str:
    """The operator's next run may read `cache` of the workspace, and reads it; what it read is the word."""
    command = ["cat", "cache/secret.txt"]
    if not scene.is_open:
        policy = scene.folder / "next.yaml"
        policy.write_text("version: 1\nfiles: {read: [cache]}\n")
        shelf = str(scene.folder / "next")
        command = [*STOCKADE, "run", "-q", "-p", str(policy), "--ledger", shelf, "--", *command]
    done = subprocess.run(command, cwd=scene.workspace, capture_output=True, timeout=10)
    return done.stdout.decode().strip() or f"code-{done.returncode}"


# At which parts of a whole start the next ones are killed: most around the time when the worker is let go.
KILLED_AT = (0.5, 0.8, 0.95, 1.05, 1.6)
START_LIMIT_S = 5.0


def killed_starts(scene: Scene) -> str:
    """A supervisor is killed while it starts, again and again; what it started must not go on.

    The first one is killed the moment its first record is there, the others at parts of the time which
    that took. In the open: a starter that would forbid everything a moment later, and does not live to do it.
    """
    program = [*PYTHON, scene.facts["left_alone"], scene.facts["token"]]
    shelf = scene.folder / "killed"
    command = [
        *STOCKADE, "run", "-q", "-p", str(scene.policy), "--ledger", str(shelf),
        "--write", ".", *(f"--without-layer={name}" for name in scene.layers_off), "--", *program,
    ]  # fmt: skip
    if scene.is_open:
        late = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(5)"
        _start_and_kill(
            [*PYTHON, "-c", late, *program], scene, lambda: _processes_with(scene.facts["token"])[1:]
        )
        time.sleep(0.2)  # the worker that is left alone now does what nobody forbids
    else:
        whole_s = _start_and_kill(command, scene, lambda: shelf.is_dir() and _is_opened(shelf))
        for part in KILLED_AT:
            _start_and_kill(command, scene, _has_come(time.monotonic() + part * whole_s))
    deadline = time.monotonic() + (0 if scene.is_open else 1)
    while (left := _processes_with(scene.facts["token"])) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return f"left-{len(left)}" if left else "nothing-left"


def _start_and_kill(command: Sequence[str], scene: Scene, is_due: Callable[[], object]) -> float:
    """Seconds from the start until it was due, and was killed."""
    started = time.monotonic()
    starter = subprocess.Popen(command, cwd=scene.workspace, **NO_STREAMS)
    while not is_due() and starter.poll() is None and time.monotonic() < started + START_LIMIT_S:
        time.sleep(0.002)
    starter.kill()
    starter.wait()
    return time.monotonic() - started


def _has_come(moment: float) -> Callable[[], bool]:
    return lambda: time.monotonic() > moment


def _is_opened(shelf: Path) -> bool:
    return any(b"run.opened" in path.read_bytes() for path in shelf.glob("*/*") if path.is_file())


PYTHON = ("/usr/bin/python3",)
NO_STREAMS: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


def _processes_with(token: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if token.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


STAGES: dict[str, Callable[[Scene], str | None]] = {
    "scoring": scoring,
    "looser-policy": looser_policy,
    "late-fifo": late_fifo,
    "operator-commits": operator_commits,
    "write-report": write_report,
    "run-again": run_again,
    "read-cache": read_cache,
    "killed-starts": killed_starts,
}
OPEN_TOO = frozenset(STAGES) - {"scoring", "looser-policy"}


def _command(*words: str) -> None:
    subprocess.run([*STOCKADE, *words], check=True, capture_output=True, timeout=10)
