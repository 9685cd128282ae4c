"""Steps of the kernel tests: run a command in a sandbox, or the same without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTAINED = Path(__file__).with_name("contained.py")
# The Python of the system: the worker sees it in /usr, whoever it is and whatever runs the tests.
PYTHON = "/usr/bin/python3"
IS_ROOT = os.geteuid() == 0
# A prefix that makes an ordinary user of whoever runs the tests.
ORDINARY = ("setpriv", "--reuid", "65000", "--regid", "65000", "--clear-groups") if IS_ROOT else ()


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def words(result: subprocess.CompletedProcess[bytes]) -> Result:
    return Result(
        result.returncode, result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
    )


class Contained:
    """Runs a command in a sandbox; `plainly` runs the same without one, as its control."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.run = ""
        self.home = work.parent / "home"  # the operator's: what he uses decides what is held for him
        self._facts = work.parent / "facts.json"

    def command(self, *argv: str, options: tuple[str, ...] = ()) -> list[str]:
        # Of its own, since it names a control group, and with what tells this range's from another's.
        self.run = f"test-{os.stat('/proc/self/ns/net').st_ino}-{os.urandom(4).hex()}"
        kept = ["--facts", str(self._facts), "--run-id", self.run]
        return [sys.executable, str(CONTAINED), *kept, *options, "--", *argv]

    def __call__(
        self,
        *argv: str,
        options: tuple[str, ...] = (),
        stdin: bytes | None = b"",
        prefix: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        cwd: Path | None = None,
        **kept: Any,
    ) -> Result:
        folder = cwd or self.work
        return words(
            subprocess.run(
                [*prefix, *self.command(*argv, options=options)],
                input=stdin,
                capture_output=True,
                timeout=18,
                cwd=folder,
                env={**os.environ, "PWD": str(folder), "HOME": str(self.home), **(environment or {})},
                **kept,
            )
        )

    def python(self, program: str, *arguments: str, **kept: Any) -> Result:
        return self(PYTHON, "-I", "-c", program, *arguments, **kept)

    def plainly(self, program: str, *arguments: str) -> Result:
        """The same Python program outside, as whoever runs the tests."""
        command = [PYTHON, "-I", "-c", program, *arguments]
        return words(subprocess.run(command, input=b"", capture_output=True, timeout=18, cwd=self.work))

    def start(self, *argv: str, options: tuple[str, ...] = (), **kept: Any) -> subprocess.Popen[bytes]:
        given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kept}
        environment = {**os.environ, "PWD": str(self.work), "HOME": str(self.home)}
        return subprocess.Popen(self.command(*argv, options=options), cwd=self.work, env=environment, **given)

    def planted(self, folder: Path | None = None) -> list[str]:
        """What the last run named at its end, below the workspace; a run's own name is left out of theirs."""
        paths = [Path(path).relative_to(folder or self.work).as_posix() for path in self.facts["planted"]]
        return [path.replace(self.run, "test") for path in paths]

    @property
    def facts(self) -> dict[str, Any]:
        """What the last finished run left: facts, counters, step times."""
        found: dict[str, Any] = json.loads(self._facts.read_text())
        return found
