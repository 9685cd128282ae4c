"""The worker's three standard streams as one thing: pipes of ours, or a terminal of ours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from stockade.reactor import Reactor
from stockade.sandbox.streams import InputPump, MessageLimit, OutputPump, Turn

if TYPE_CHECKING:
    from stockade.sandbox.console import Console
    from stockade.sandbox.terminal import AnswerBackFilter


class Stdio:
    """Copies between the caller's streams and the worker's.

    Attributes:
        places: For the order: where each stream of the worker is (`lifeline.compose_order`).
        theirs: The worker's ends, to be sent with the order and then closed.
    """

    def __init__(self, reactor: Reactor, on_output_done: Callable[[], None]) -> None:
        self._reactor = reactor
        self._on_output_done = on_output_done
        self._outputs: list[OutputPump] = []
        self._input: InputPump | None = None
        self._console: Console | None = None
        self._screens: list[tuple[int, AnswerBackFilter]] = []
        self._turns: dict[int, Turn] = {}
        self.places = ""
        self.theirs: list[int] = []

    def open_pipes(self) -> None:
        in_read, in_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(in_write, False)
        self.theirs = [in_read, self._open_output(1), self._open_output(2)]
        self.places = "012"
        self._input = InputPump(self._reactor, 0, in_write)

    def open_debugging_pipe(self) -> None:
        """The caller's input and output become the worker's descriptors 3 and 4, as of a driven browser.

        Nothing of the caller's is handed over: 3 and 4 are pipes of ours that are copied, as the three are.
        The worker's own standard input is at its end, its output goes to the caller's standard error.
        """
        in_read, in_write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(in_write, False)
        nothing, end = os.pipe2(os.O_CLOEXEC)
        os.close(end)
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(ours, False)
        self._outputs.append(OutputPump(self._reactor, ours, 1, self._on_output_done, MessageLimit().feed))
        self.theirs = [nothing, self._open_output(2), in_read, theirs]
        self.places = "01123"
        self._input = InputPump(self._reactor, 0, in_write)

    def open_terminal(self, master: int, on_insistence: Callable[[], None], *, with_stderr: bool) -> None:
        """Use a terminal whose master side this is; standard error may stay apart in a pipe."""
        from stockade.sandbox.console import Console

        os.set_blocking(master, False)
        self._console = Console(0, 1, master, on_insistence)
        self._console.make_raw()
        shown = self._console.filter.feed
        self._outputs.append(OutputPump(self._reactor, master, 1, self._on_output_done, shown))
        self._input = InputPump(self._reactor, 0, os.dup(master), seen=self._console.note_keys)
        self.places, self.theirs = ("ttt", []) if with_stderr else ("tt0", [self._open_output(2)])

    def _open_output(self, sink: int) -> int:
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(ours, False)
        if is_terminal(sink):
            self._outputs.append(self._open_screen(ours, sink))
        else:
            self._outputs.append(OutputPump(self._reactor, ours, sink, self._on_output_done))
        return theirs

    def _open_screen(self, source: int, sink: int) -> OutputPump:
        """A pipe whose far end is the caller's terminal: filtered like a terminal of ours, nothing asked."""
        from stockade.sandbox.terminal import AnswerBackFilter

        screen = AnswerBackFilter(may_ask=False)
        self._screens.append((sink, screen))
        turn = self._turns.setdefault(os.fstat(sink).st_rdev, Turn())
        return OutputPump(self._reactor, source, sink, self._on_output_done, screen.feed, turn=turn)

    @property
    def is_drained(self) -> bool:
        """Everything that the worker wrote is out, or nobody takes it any more."""
        return all(pump.is_done for pump in self._outputs)

    def copy_size(self) -> bool:
        """Give the worker's terminal the outer size; False if it has none of ours."""
        if self._console is not None:
            self._console.copy_size()
        return self._console is not None

    def step_back(self) -> None:
        """The command was stopped: the terminal is the shell's again."""
        if self._console is not None:
            self._console.restore()
        if self._input is not None:
            self._input.pause()

    def step_forward(self) -> None:
        """We go on: take the terminal again, if we are in its foreground."""
        if self._console is not None:
            self._console.make_raw()
            self._console.copy_size()
        if self._input is not None:
            self._input.resume()

    def close(self) -> None:
        """Stop copying, put the terminal and the caller's file position as they should be."""
        for pump in self._outputs:
            pump.finish()
        for sink, screen in self._screens:
            if left_on := screen.restore():
                with contextlib.suppress(OSError):  # it has hung up
                    os.write(sink, left_on)
        self._screens.clear()
        if self._input is not None:
            self._input.hand_back()
        if self._console is not None:
            self._console.close()
            self._console = None


def is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False  # closed
