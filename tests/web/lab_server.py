"""`stockade lab` as a real process, and a browser or a script that is signed in to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")


class LabServer:
    """One start of the server, on a data folder that outlives it."""

    def __init__(self, data: Path, port: int = 0, pack: Path | None = None) -> None:
        command = [COMMAND, "lab", "--no-open", "--data", str(data), "--port", str(port)]
        command += [] if pack is None else ["--pack", str(pack)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_DATA_HOME": str(data / "own")},
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.communicate()[1]
        self.origin = self.address.partition("/?")[0]
        self.port = int(self.origin.rpartition(":")[2])

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it by a signal; returns its exit code and what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        said = self.process.communicate(timeout=15)[1]
        return self.process.returncode, said


@contextmanager
def lab_server(data: Path, port: int = 0, pack: Path | None = None) -> Iterator[LabServer]:
    server = LabServer(data, port, pack)
    try:
        yield server
    finally:
        server.end()


class Caller:
    """A script that signs in as a browser does, and says what a page of ours would say."""

    def __init__(self, server: LabServer) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self.origin = server.origin
        self.session.get(server.address, allow_redirects=False, timeout=10).raise_for_status()

    def ask(self, method: str, path: str, body: Any = None, **changes: Any) -> requests.Response:
        """One request; `changes` are headers to say otherwise, `None` leaves one out."""
        headers = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
        headers |= {name.replace("_", "-"): value for name, value in changes.items()}
        url = self.origin + path
        return self.session.request(
            method, url, json=body, headers=headers, timeout=15, allow_redirects=False
        )

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        return self._change("POST", path, body, status)

    def put(self, path: str, body: Any = None, status: int = 200) -> Any:
        return self._change("PUT", path, body, status)

    def _change(self, method: str, path: str, body: Any, status: int) -> Any:
        answer = self.ask(method, path, {} if body is None else body)
        assert answer.status_code == status, answer.text
        return answer.json()
