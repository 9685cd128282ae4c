"""How a stream is cut when it is copied."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from stockade.reactor import Reactor
from stockade.sandbox import streams
from stockade.sandbox.streams import MessageLimit, OutputPump, Turn


def pieces_of(data: bytes, turn: Turn | None, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Copy this through a pump; gives what each write to the sink took."""
    taken: list[bytes] = []
    write = os.write

    def note(fd: int, piece: Any) -> int:
        if fd == sink_in:
            taken.append(bytes(piece))
        return write(fd, piece)

    source_out, source_in = os.pipe2(os.O_NONBLOCK)
    sink_out, sink_in = os.pipe()
    monkeypatch.setattr(streams.os, "write", note)
    reactor = Reactor()
    OutputPump(reactor, source_out, sink_in, reactor.stop, turn=turn)
    write(source_in, data)
    os.close(source_in)
    reactor.run()
    monkeypatch.undo()
    for fd in (sink_out, sink_in):
        os.close(fd)
    reactor.close()
    return taken


def test_to_a_terminal_no_piece_ends_within_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel promises to take 4096 bytes (pipe(7), PIPE_BUF); a sequence stands across each such border.
    data = b"x" * 4090 + (b"\x1b[31;42m" + b"x" * 4088) * 7
    plain, whole = (pieces_of(data, turn, monkeypatch) for turn in (None, Turn()))
    assert b"".join(plain) == b"".join(whole) == data
    cut = re.compile(rb"\x1b(\[[0-9;]*)?$")
    assert any(cut.search(piece) for piece in plain)  # the control
    assert not any(cut.search(piece) for piece in whole)
    assert max(map(len, whole)) <= 4096


def test_who_is_in_the_middle_of_something_goes_on_first(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Turn()
    assert pieces_of(b"a", turn, monkeypatch) == [b"a"]
    assert turn.holder is None


def test_messages_pass_up_to_the_limit_and_after_one_that_is_longer_nothing_does() -> None:
    limit = MessageLimit(limit_bytes=10)
    ten = b"x" * 10
    for piece in (ten + b"\0", b"12345", b"67890\0ab\0" + ten, b"\0", b"\0\0", b"end\0"):
        assert limit.feed(piece) == piece
    assert limit.feed(b"x" * 6) == b"x" * 6
    assert limit.feed(b"x" * 5) == b""
    assert limit.feed(b"\0short\0") == b""
    assert limit.is_over
    assert MessageLimit(limit_bytes=10).feed(b"a\0" + ten + b"x\0b\0") == b""
