"""A warm worker: a contained run that was started beforehand and waits for the one order of its life."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stockade.errors import UserError
from stockade.lab.live.plan import Step
from stockade.lab.live.surroundings import PAYLOAD, WITNESS
from stockade.ledger.record import clean_text
from stockade.ledger.shelf import RunReader, list_runs
from stockade.prove.child import end_child
from stockade.prove.payload import LINE_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, parse_answer
from stockade.prove.stages import STOCKADE
from stockade.vocabulary import Identity, Phase

Record = dict[str, Any]
START_LIMIT_S = 20.0
TRY_LIMIT_S = 20.0
END_LIMIT_S = 5.0
IDLE_LIMIT_S = 1.0
LAST_WORDS_LIMIT = 600
PYTHON = ("/usr/bin/python3", "-S", "-B")
# More options of `stockade run`: for the tests alone, which have to see that a leak would be noticed.
MORE_OPTIONS: tuple[str, ...] = ()


class WorkerFailed(Exception):  # noqa: N818  # the bench turns it into a result
    """It did not start, or did not come to its end."""


class Worker:
    """One run. `start` returns at once; what it needs to be ready goes on meanwhile.

    Attributes:
        folder: Ours and its own: workspace, shelf, what it said on standard error.
    """

    def __init__(
        self,
        base: Path,
        template: Path,
        card: Path,
        phase: Phase,
        identity: Identity,
        environment: Mapping[str, str],
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="try-", dir=base))
        self.folder.chmod(0o755)
        self.workspace = self.folder / "work"
        shutil.copytree(template, self.workspace, symlinks=True)
        if os.getuid() == 0:
            self.workspace.chmod(0o777)
        self._shelf = self.folder / "ledger"
        self._errors = self.folder / "errors.txt"
        self._rest = b""
        self._records_before = 0
        command = [
            *(*STOCKADE, "run", "-q", "-p", str(card), "--ledger", str(self._shelf)),
            *MORE_OPTIONS,
            *("--phase", phase.value, "--identity", identity.value, *_git_settings(self.workspace)),
            *("--", *PYTHON, PAYLOAD),
        ]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=self.workspace,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**environment, "PWD": str(self.workspace)},
                start_new_session=True,
            )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until the payload waits for its order.

        Raises:
            WorkerFailed: It does not; with what it said.
        """
        if not self._records_before:
            self._read_until("ready", START_LIMIT_S)
            self._records_before = len(self._read_records())

    def do(self, steps: Sequence[Step]) -> list[Record]:
        """Have the steps done, and wait until the run has closed its ledger.

        Raises:
            WorkerFailed: It did not come to its end.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(list(steps)).encode() + b"\n")
            self._process.stdin.flush()
        said = self._read_until("done", TRY_LIMIT_S)
        try:
            self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired as problem:
            raise WorkerFailed("the run did not end after its attempt") from problem
        return said

    def records(self) -> tuple[str, list[Record], list[Record]]:
        """The run's name, all its records, and of these what came after the start."""
        records = self._read_records()
        return (records[0]["run"] if records else ""), records, records[self._records_before :]

    def has_witness(self) -> bool:
        """Whether a program of the workspace ran and said so."""
        return (self.workspace / WITNESS).is_file()

    def last_words(self) -> str:
        """What it said on standard error, as text that can be shown: a program inside may write there too."""
        text = self._errors.read_text(errors="replace").strip() if self._errors.exists() else ""
        return clean_text("; ".join(text.splitlines()[-3:]), LAST_WORDS_LIMIT)

    def close(self) -> None:
        """End it, if it runs, and remove what it left."""
        assert self._process.stdout is not None
        end_child(self._process, IDLE_LIMIT_S, END_LIMIT_S)
        self._process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read_records(self) -> list[Record]:
        try:
            runs = list_runs(self._shelf)
            return list(RunReader(self._shelf / runs[0]).read()) if runs else []
        except UserError:
            return []

    def _read_until(self, word: str, limit_s: float) -> list[Record]:
        """The answers up to the one that holds this word."""
        assert self._process.stdout is not None
        said: list[Record] = []
        deadline, size = time.monotonic() + limit_s, 0
        while True:
            *lines, self._rest = self._rest.split(b"\n")
            for number, line in enumerate(lines):
                answer = parse_answer(line)
                if answer.get(word):
                    self._rest = b"\n".join([*lines[number + 1 :], self._rest])
                    return said
                said.append(answer)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise WorkerFailed(f"the worker said nothing for {limit_s:g} s")
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                code = self._process.wait()
                raise WorkerFailed(f"the run ended with code {code}: {self.last_words()}".rstrip(": "))
            size += len(data)
            self._rest += data
            if size > OUTPUT_LIMIT_BYTES or len(self._rest) > LINE_LIMIT_BYTES:
                raise WorkerFailed("the worker printed without end")


def _git_settings(workspace: Path) -> list[str]:
    """By the environment: the folder's owner may be another uid inside, and the world signs by itself."""
    settings = {"safe.directory": "*", "http.sslCAInfo": str(workspace / "ca.pem"), "gc.auto": "0"}
    words = {"GIT_CONFIG_COUNT": str(len(settings)), "GIT_TERMINAL_PROMPT": "0"}
    for number, (key, value) in enumerate(settings.items()):
        words |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return [word for name, value in words.items() for word in ("--env", f"{name}={value}")]
