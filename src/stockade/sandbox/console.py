"""The operator's own terminal while a command runs in ours: raw, sized alike, put back in any case."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import select
import struct
import termios
import time
from collections.abc import Callable

from stockade.sandbox.streams import is_in_foreground
from stockade.sandbox.terminal import AnswerBackFilter

# The operator's way out of a command that ignores Ctrl-C: this many presses in this time kill the
# run. Not fewer, since the command may have its own use for two (R121); counted only while the
# command's terminal turns Ctrl-C into a signal, so an editor that reads the key is left alone.
PRESSES_THAT_KILL = 5
PRESSES_WITHIN_S = 2.0
# A terminal across the world answers within the first; the second bounds a flood of answers.
ANSWER_TIMEOUT_S = 0.5
ANSWERS_TIMEOUT_S = 2.0
# The worker asked the same question: only a silence says that the last answer was ours.
SILENCE_S = 0.1
_STATUS_QUESTION = b"\x1b[5n"
_STATUS_ANSWER = re.compile(rb"(?:\x1b\[|\x9b|\xc2\x9b)[03]n")  # ECMA-48 DSR, 7-bit, 8-bit, UTF-8
_CTRL_C = 0x03
_LFLAG, _CC = 3, 6


class Console:
    """The outer terminal (where the caller's descriptors 0 and 1 lead) and the master of the inner one."""

    def __init__(self, outer: int, screen: int, master: int, on_insistence: Callable[[], None]) -> None:
        self._outer = outer
        self._screen = screen
        self._master = master
        self._on_insistence = on_insistence
        self._presses: list[float] = []
        self._saved: list[object] | None = None
        self.filter = AnswerBackFilter()
        self._copy_settings()
        self.copy_size()
        atexit.register(self.restore)

    def _copy_settings(self) -> None:
        """The inner terminal begins as the outer one is: its erase key, its echo."""
        with contextlib.suppress(termios.error):  # it keeps the kernel's defaults
            termios.tcsetattr(self._master, termios.TCSANOW, termios.tcgetattr(self._outer))

    def copy_size(self) -> None:
        """Give the inner terminal the outer one's size; the kernel tells the command (SIGWINCH)."""
        try:
            size = fcntl.ioctl(self._outer, termios.TIOCGWINSZ, b"\0" * 8)
            if struct.unpack("4H", size)[:2] != (0, 0):
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
        except OSError:
            pass  # a terminal without a size

    def make_raw(self) -> None:
        """Every key goes to the command. Only in the foreground: else this would stop us (SIGTTOU)."""
        if self._saved is not None or not is_in_foreground(self._outer):
            return
        mode = termios.tcgetattr(self._outer)
        self._saved = list(mode)
        mode[0] &= ~(
            termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON | termios.INLCR
            | termios.IGNCR
        )  # fmt: skip
        mode[1] &= ~termios.OPOST
        mode[2] = (mode[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        mode[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._outer, termios.TCSADRAIN, mode)

    def restore(self) -> None:
        """Put the terminal back as it was found; called again it does nothing."""
        if self._saved is None:
            return
        saved, self._saved = self._saved, None
        when = termios.TCSADRAIN
        with contextlib.suppress(OSError, termios.error):  # it has hung up
            if left_on := self.filter.restore():
                os.write(self._screen, left_on)
            if self.filter.has_asked and is_in_foreground(self._outer):
                self._discard_answers()
                when = termios.TCSAFLUSH
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._outer, when, saved)  # type: ignore[arg-type]

    def _discard_answers(self) -> None:
        """Take what the terminal answers to the command, which is not there to read it any more.

        Left alone it would arrive in the operator's shell as if typed. A terminal answers in
        order, so we ask one thing more and read until the answer to that. What the operator
        typed meanwhile goes as well: it cannot be told apart.
        """
        self.filter.has_asked = False
        os.write(self._screen, _STATUS_QUESTION)
        poll = select.poll()
        poll.register(self._outer, select.POLLIN)
        seen, patience = b"", ANSWER_TIMEOUT_S
        end = time.monotonic() + ANSWERS_TIMEOUT_S
        while time.monotonic() < end and poll.poll(patience * 1000):
            data = os.read(self._outer, 4096)
            seen = seen[-8:] + data
            if _STATUS_ANSWER.search(seen):
                if not self.filter.has_asked_status:
                    return
                patience = SILENCE_S
            if not data:
                return

    def close(self) -> None:
        self.restore()
        atexit.unregister(self.restore)

    def note_keys(self, data: bytes) -> None:
        """Count Ctrl-C; what was typed has gone to the command all the same."""
        presses = data.count(_CTRL_C)
        if not presses or not self._keys_are_signals():
            return
        now = time.monotonic()
        self._presses = [at for at in self._presses if now - at < PRESSES_WITHIN_S] + [now] * presses
        if len(self._presses) >= PRESSES_THAT_KILL:
            self._on_insistence()

    def _keys_are_signals(self) -> bool:
        try:
            return bool(termios.tcgetattr(self._master)[_LFLAG] & termios.ISIG)
        except termios.error:
            return False
