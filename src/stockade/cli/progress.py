"""How far something long is: a line that is written over on a terminal, ten plain ones elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

BAR_WIDTH = 24
PLAIN_LINES = 10


class Progress:
    """How far it is and how long it will take. Lines that shall stay are printed with `say`."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._done = 0
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._started = time.monotonic()

    def step(self, what: str) -> None:
        """One more is done."""
        self._done += 1
        if self._is_terminal:
            filled = BAR_WIDTH * self._done // max(self._total, 1)
            bar = "█" * filled + "·" * (BAR_WIDTH - filled)
            left = describe_left(self._done, self._total, time.monotonic() - self._started)
            self._write(f"\r\033[K{bar} {self._done}/{self._total} {left}  {what:.40}")
        elif self._total >= PLAIN_LINES and self._done * PLAIN_LINES % self._total < PLAIN_LINES:
            self._write(f"stockade: {self._done} of {self._total}\n")

    def say(self, line: str) -> None:
        """A line above the bar."""
        self._write(("\r\033[K" if self._is_terminal else "") + line + "\n")

    def close(self) -> None:
        if self._is_terminal:
            self._write("\r\033[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def describe_left(done: int, total: int, seconds: float) -> str:
    """The time that is left, if the rest takes as long as what is done."""
    if not done:
        return ""
    left = round(seconds / done * (total - done))
    return f"{left // 60}:{left % 60:02} left"
