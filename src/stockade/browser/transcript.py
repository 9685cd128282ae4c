"""What an agent did in one session, as a value and as files. The files are the operator's evidence."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct


class TakenStep(Struct, frozen=True, kw_only=True):
    """One action and what came of it.

    Attributes:
        number: From 1.
        action: Its fields, with `action` as its name.
        address: Of the page that the agent acted on.
        screenshot: SHA-256 of the picture that it acted on; None before the first page.
        came: What came of it, in words.
        error: Chromium's error name (`ERR_…`), or what else went wrong; empty if nothing did.
        status: The HTTP status of the page that an `open` led to.
        address_after: Where it then was.
        screenshot_after: SHA-256 of the picture then.
        record: The step's number in the run's ledger; None where nothing contains the browser.
    """

    number: int
    action: dict[str, Any]
    address: str
    screenshot: str | None
    came: str
    error: str = ""
    status: int | None = None
    address_after: str = ""
    screenshot_after: str | None = None
    record: int | None = None


class Transcript(Struct, frozen=True, kw_only=True):
    """A whole session.

    Attributes:
        prompt: What the agent was told.
        agent: Which one it was.
        run: The browser's run in the ledger; empty where nothing contains it.
        terminal_run: The run of the agent's terminal, if it opened one.
        steps: In order.
        pictures: File names by SHA-256, relative to the transcript.
        ended: Why it ended: `done`, `step-limit`, `time-limit`, or `error`.
        notes: What a reader has to know besides.
    """

    prompt: str
    agent: str
    run: str = ""
    terminal_run: str = ""
    steps: tuple[TakenStep, ...] = ()
    pictures: dict[str, str] = {}
    ended: str = "done"
    notes: tuple[str, ...] = ()


class Album:
    """Pictures of a session, each kept once, by its digest."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.names: dict[str, str] = {}

    def add(self, picture: bytes) -> str:
        """Keep a picture (PNG); gives its SHA-256."""
        digest = hashlib.sha256(picture).hexdigest()
        if digest not in self.names:
            self.names[digest] = f"screen-{len(self.names) + 1:02}.png"
            if self._folder is not None:
                (self._folder / self.names[digest]).write_bytes(picture)
        return digest


def write_transcript(transcript: Transcript, folder: Path) -> Path:
    """Write `transcript.json` beside the pictures; gives its path."""
    path = folder / "transcript.json"
    text = msgspec.json.format(msgspec.json.encode(transcript, order="deterministic"), indent=2)
    path.write_bytes(text + b"\n")
    return path
