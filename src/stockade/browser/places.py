"""Where the browser and what belongs to it are started: contained, by `stockade run`.

The proof has a second place, without containment, for the controls of its attacks
(`prove/open_browser.py`); it exists inside the range only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from stockade.errors import HostError
from stockade.ledger.record import new_run_id

BROWSERS = (
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
)
PYTHON = "/usr/bin/python3"
ANSWER_LIMIT_BYTES = 4 << 20
HELPER_LIMIT_S = 130.0  # more than the payloads' own
END_LIMIT_S = 5.0


def find_browser() -> str:
    """The browser's own program; its launcher in /usr/bin is a shell script, which the preset does not list.

    Raises:
        HostError: There is none.
    """
    for path in BROWSERS:
        if os.access(path, os.X_OK):
            return path
    raise HostError(
        "no-browser", "Chromium is not installed", "apt install chromium (Fedora: dnf install chromium)"
    )


class Helper:
    """A contained process that answers JSON lines (a terminal, a way to a model).

    What it says is foreign: it may be late, endless or no JSON at all.

    Args:
        limit_s: How long one answer may take before the process is ended.
    """

    def __init__(self, command: list[str], run: str, folder: Path, limit_s: float = HELPER_LIMIT_S) -> None:
        self.run = run
        self._limit_s = limit_s
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """One question, one answer; an `error` in it if the process is gone, or does not answer in time.

        What it runs may have taken it over, so an answer is foreign: only that it is an object is sure.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(self._limit_s, self._process.kill)  # what runs in the room ends with it
        timer.start()
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline(ANSWER_LIMIT_BYTES))
        except (OSError, ValueError, RecursionError) as error:
            return {"error": type(error).__name__, "detail": "the contained process is gone"}
        finally:
            timer.cancel()
        return answer if isinstance(answer, dict) else {"error": "ValueError", "detail": "no JSON object"}

    def close(self) -> None:
        """End of input ends it."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()


class Place(Protocol):
    """Where a worker's processes run.

    Attributes:
        browser_run: The browser's run in the ledger; empty where nothing is recorded.
    """

    browser_run: str

    def browser_launcher(self) -> str:
        """A program that stands for the browser: it hands on its arguments and descriptors 3 and 4."""

    def end_browser(self) -> None:
        """Ask the browser to end, whatever it is doing; nothing if it has not started."""

    def start_helper(self, payload: str) -> Helper:
        """Start one of the payloads beside this file."""

    def record(self, request: dict[str, Any]) -> int | None:
        """Have the browser's run append a record; its number when it is durable, None if there is no run."""

    def close(self) -> None:
        """Remove what was made for it."""


class Contained:
    """Everything under `stockade run` with one policy; each process is a run of its own in the ledger.

    Args:
        policy: The policy file, absolute.
        shelf: The shelf of ledgers; None for the user's own.
        folder: What the contained processes have as their working folder.
        options: More options of `stockade run`.
    """

    def __init__(self, policy: Path, shelf: Path | None, folder: Path, options: tuple[str, ...] = ()) -> None:
        self._policy, self._shelf, self._folder, self._options = policy, shelf, folder, options
        self._own = Path(tempfile.mkdtemp(prefix="stockade-browse-"))
        self.browser_run = ""

    def browser_launcher(self) -> str:
        self.browser_run = _new_name()
        command = shlex.join([*self._run(self.browser_run, "--debugging-pipe"), "--", find_browser()])
        lines = (
            "#!/bin/sh",
            f"cd {shlex.quote(str(self._folder))}",
            note_pid(self._own),
            f'exec {command} "$@" <&3 >&4 3<&- 4>&-',
        )
        return str(write_program(self._own / "browser", lines))

    def end_browser(self) -> None:
        end_noted(self._own, self.browser_run)

    def start_helper(self, payload: str) -> Helper:
        name = _new_name()
        command = [*self._run(name), "--", *payload_command(payload)]
        return Helper(command, name, self._folder)

    def record(self, request: dict[str, Any]) -> int | None:
        from stockade.run.control import ask_run

        return int(ask_run(self.browser_run, request)["seq"])

    def close(self) -> None:
        shutil.rmtree(self._own, ignore_errors=True)

    def _run(self, name: str, *more: str) -> list[str]:
        shelf = [] if self._shelf is None else ["--ledger", str(self._shelf)]
        return [
            # -P: its working folder is the worker's, and a package there must not be taken for ours.
            *(sys.executable, "-P", "-m", "stockade", "run", "-q", "--run-id", name, "-p", str(self._policy)),
            *shelf, *more, *self._options,
        ]  # fmt: skip


def payload_command(payload: str) -> list[str]:
    source = files("stockade.browser").joinpath(f"{payload}.py").read_text()
    return [PYTHON, "-I", "-S", "-c", source]


def write_program(path: Path, lines: tuple[str, ...]) -> Path:
    path.write_text("\n".join((*lines, "")))
    path.chmod(0o755)
    return path


_PID_NAME = "browser.pid"


def note_pid(folder: Path) -> str:
    """A line of a launcher that writes down its process, which `exec` hands on to the browser's run."""
    return f'echo "$$" > {shlex.quote(str(folder / _PID_NAME))}'


def end_noted(folder: Path, word: str) -> None:
    """Ask the process that `note_pid` wrote down to end, if it still has this word in its command."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((folder / _PID_NAME).read_text())
        if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            os.kill(pid, signal.SIGTERM)


def _new_name() -> str:
    return new_run_id(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.urandom(4))
