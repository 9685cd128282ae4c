"""An operator's terminal, and a person in front of it: types, waits for what is shown, sees the end."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable


class Screen:
    """An operator's terminal with a command in it.

    Args:
        start: Starts the command; it takes the arguments of `subprocess.Popen`.
        stderr: Where its standard error goes, if not to the terminal.
    """

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]], stderr: int | None = None) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("4H", 30, 90, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        slave = self.slave

        def take_terminal() -> None:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = start(
            stdin=slave,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            preexec_fn=take_terminal,
        )

    def expect(self, text: bytes, within_s: float = 10.0) -> bytes:
        """Read until this appears; gives all that was shown so far."""
        deadline = time.monotonic() + within_s
        while text not in self.seen:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.master], [], [], max(0, left))
            assert ready, f"{text!r} did not appear in {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        return self.seen

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def end(self) -> int:
        """Wait for the end, reading on, so that a last drain of the terminal does not wait for us."""
        deadline = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.02)[0]:
                self.seen += os.read(self.master, 65536)
        code = self.process.wait(timeout=1)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
