"""The operator's terminal at the end of a run: what waits in it, and for whom."""

from __future__ import annotations

import os
import pty
import select
import termios
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from stockade.sandbox.console import Console


@pytest.fixture
def terminal() -> Iterator[SimpleNamespace]:
    """A terminal of which the test holds the keyboard and the screen, raw as during a run."""
    (keys, outer), (master, inner) = pty.openpty(), pty.openpty()
    console = Console(outer, outer, master, lambda: None)
    before = termios.tcgetattr(outer)
    console.make_raw()
    yield SimpleNamespace(keys=keys, outer=outer, console=console)
    console.close()
    assert termios.tcgetattr(outer) == before
    for fd in (keys, outer, master, inner):
        os.close(fd)


def waiting(terminal: SimpleNamespace) -> bytes:
    """What the operator's shell would read next, line ends or not."""
    mode = termios.tcgetattr(terminal.outer)
    mode[3] &= ~termios.ICANON
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 0, 0
    kept = termios.tcgetattr(terminal.outer)
    termios.tcsetattr(terminal.outer, termios.TCSANOW, mode)
    found = os.read(terminal.outer, 4096)
    termios.tcsetattr(terminal.outer, termios.TCSANOW, kept)
    return found


def shown(terminal: SimpleNamespace) -> bytes:
    return os.read(terminal.keys, 4096) if select.select([terminal.keys], [], [], 0)[0] else b""


def test_type_ahead_stays_if_the_command_asked_nothing(terminal: SimpleNamespace) -> None:
    terminal.console.filter.feed(b"\x1b[31mred\x1b[0m\x1b[?2004h")
    os.write(terminal.keys, b"ls")
    terminal.console.restore()
    assert waiting(terminal) == b"ls"
    assert shown(terminal).replace(b"ls", b"") == b"\x1b[?2004l"  # the kernel may echo what was typed


@pytest.mark.parametrize("question", [b"\x1b[c", b"\x1b[6n", b"\x1b[>q", b"\x1b[14t", b"\x1b[?1003h"])
def test_an_answer_does_not_wait_for_the_shell(terminal: SimpleNamespace, question: bytes) -> None:
    terminal.console.filter.feed(question)
    os.write(terminal.keys, b"\x1b[?62;1c\x1b[0n")  # to the command, then to us
    terminal.console.restore()
    assert shown(terminal).endswith(b"\x1b[5n")
    assert waiting(terminal) == b""
    os.write(terminal.keys, b"later")
    assert waiting(terminal) == b"later"


def test_the_command_cannot_answer_for_us_by_asking_the_same(terminal: SimpleNamespace) -> None:
    terminal.console.filter.feed(b"\x1b[5n\x1b[6n")
    os.write(terminal.keys, b"\x1b[0n" + b"\x1b[1;1R" * 1000)  # more than one read takes
    terminal.console.restore()
    assert waiting(terminal) == b""


def test_a_terminal_that_never_answers_is_given_back_all_the_same(terminal: SimpleNamespace) -> None:
    terminal.console.filter.feed(b"\x1b[c")
    terminal.console.restore()
    assert waiting(terminal) == b""


def test_only_what_was_asked_since_the_terminal_was_taken_counts(terminal: SimpleNamespace) -> None:
    """Ctrl-Z gives the terminal back too, and takes it again."""
    terminal.console.filter.feed(b"\x1b[c")
    os.write(terminal.keys, b"\x1b[?62;1c\x1b[0n")
    terminal.console.restore()
    terminal.console.make_raw()
    os.write(terminal.keys, b"ls")
    terminal.console.restore()
    assert waiting(terminal) == b"ls"
