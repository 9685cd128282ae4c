"""The place without containment, for the controls of the attacks through the browser.

It exists inside the range only: it looks for itself that no packet can leave (`sealed_proof`).
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

from stockade.browser.places import (
    Helper,
    end_noted,
    find_browser,
    note_pid,
    payload_command,
    write_program,
)
from stockade.prove.sealed import sealed_proof

NOBODY = 65534


class OpenPlace:
    """The processes of a worker with nothing around them.

    Raises:
        ContainmentError: This process is not sealed off the network.
    """

    def __init__(self, folder: Path) -> None:
        sealed_proof()
        self.browser_run = ""
        self._folder = folder
        self._own = Path(tempfile.mkdtemp(prefix="open-browser-"))
        self._own.chmod(0o755)

    def browser_launcher(self) -> str:
        """Root's browser is an unprivileged user's, as a contained one is; its profile is given to it."""
        lines = [
            "#!/bin/sh",
            f"cd {shlex.quote(str(self._folder))}",
            f"export HOME={self._own}/home XDG_CONFIG_HOME={self._own}/home XDG_CACHE_HOME={self._own}/home",
            'mkdir -p "$HOME"',
        ]
        if os.geteuid() == 0:
            profile = f'case $word in --user-data-dir=*) chown -R {NOBODY}:{NOBODY} "${{word#*=}}";; esac'
            lines += [f'chown {NOBODY} "$HOME"', f'for word in "$@"; do {profile}; done']
        command = shlex.join([*_unprivileged(), find_browser()])
        return str(
            write_program(self._own / "browser", (*lines, note_pid(self._own), f'exec {command} "$@"'))
        )

    def end_browser(self) -> None:
        end_noted(self._own, find_browser())

    def start_helper(self, payload: str) -> Helper:
        return Helper([*_unprivileged(), *payload_command(payload)], "", self._folder)

    def record(self, request: dict[str, Any]) -> int | None:
        """There is no run, so no record."""
        return None

    def close(self) -> None:
        shutil.rmtree(self._own, ignore_errors=True)


def _unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
