"""One lane as a child process: start it, give it orders, end it, and hear why it died.

It has a session of its own, so that a Ctrl-C at the terminal reaches this process alone, which
then ends the lanes in order: a contained run that is asked to end closes its ledger and removes
its control groups, one that is killed cannot.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from stockade.errors import ContainmentError, HostError, UserError
from stockade.prove.child import end_child
from stockade.prove.trial import Order, Trial

START_LIMIT_S = 60.0
# Two executions at their own limits (execution.py), each with the time that ending it may take.
TRIAL_LIMIT_S = 150.0
END_LIMIT_S = 8.0
IDLE_LIMIT_S = 0.5
# -P: nothing is imported from the working folder, in which a worker may have planted something.
OWN_PYTHON = (sys.executable, "-P", "-m")
COMMAND = (*OWN_PYTHON, "stockade.prove.range", "--", *OWN_PYTHON, "stockade.prove.lane")
_LINE_LIMIT_BYTES = 64 * 1024 * 1024


class LaneEnded(Exception):  # noqa: N818  # no fault by itself: the caller starts another one
    """The lane died, or did not answer, while it tried a technique."""


class LaneProcess:
    """`start` and `perform` block; `close` may come from another thread and ends both.

    Attributes:
        is_closed: `close` was called: what fails from then on is no news.
    """

    def __init__(
        self, command: Sequence[str] = COMMAND, called: str = "lane", cwd: Path | None = None
    ) -> None:
        self.is_closed = False
        self._called = called
        self._buffer = b""
        self._errors: deque[bytes] = deque(maxlen=20)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=cwd,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def start(self) -> None:
        """Wait until it is sealed and ready.

        Raises:
            ContainmentError: Its network has a way out; nothing was tried.
            HostError: This host cannot make the range.
            UserError: It cannot use what its command names.
        """
        try:
            self._read_line(START_LIMIT_S)
        except LaneEnded as end:
            code = self._process.poll()
            if code == UserError.exit_code:
                raise UserError("not-as-given", self._last_words()) from end
            if code == ContainmentError.exit_code:
                raise ContainmentError("not-sealed", f"nothing was tried: {self._last_words()}") from end
            raise HostError(
                "no-range", f"the range could not be made: {self._last_words() or end}", "stockade doctor"
            ) from end

    def perform(self, order: Order) -> Trial:
        """Have one order done.

        Raises:
            LaneEnded: It did not come back.
        """
        line = self.exchange(msgspec.json.encode(order), TRIAL_LIMIT_S)
        try:
            return msgspec.json.decode(line, type=Trial)
        except msgspec.DecodeError as problem:
            raise LaneEnded(f"the lane answered what is no trial: {problem}") from problem

    def exchange(self, line: bytes, limit_s: float) -> bytes:
        """One line in, one line out.

        Raises:
            LaneEnded: It did not come back.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        return self._read_line(limit_s)

    def close(self) -> None:
        """End it, and with it the range and all that runs there."""
        self.is_closed = True
        end_child(self._process, IDLE_LIMIT_S, END_LIMIT_S)
        self._listener.join(1)

    def _read_line(self, limit_s: float) -> bytes:
        """One line of its output; reads the descriptor itself, since a deadline needs `select`."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise LaneEnded(f"the {self._called} did not answer within {limit_s:g} s")
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                code = self._process.wait()
                raise LaneEnded(
                    f"the {self._called} ended with code {code}: {self._last_words()}".rstrip(": ")
                )
            self._buffer += data
            if len(self._buffer) > _LINE_LIMIT_BYTES:
                raise LaneEnded(f"the {self._called} answered without end")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with suppress(OSError, ValueError):
            while data := os.read(self._process.stderr.fileno(), 65536):
                self._errors.extend(data.splitlines())

    def _last_words(self) -> str:
        """The last lines on its standard error, as one."""
        self._listener.join(0.2)
        return "; ".join(line.decode(errors="replace").strip()[:300] for line in list(self._errors)[-4:])
