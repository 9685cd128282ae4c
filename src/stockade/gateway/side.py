"""One socket of a connection, with what waits to be written to it."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress


class Side:
    """One socket of a connection, with what waits to be written to it."""

    __slots__ = ("ended", "fin_wanted", "interest", "pending", "sock", "watched")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.pending: deque[memoryview] = deque()
        self.interest = -1  # not registered
        self.watched = False
        self.ended = False  # its FIN was seen
        self.fin_wanted = False  # send our FIN when `pending` is empty

    def write(self, data: bytes) -> None:
        """Send now what goes, keep the rest. Raises OSError."""
        if not self.pending:
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return
            self.pending.append(memoryview(data)[sent:])
        else:
            self.pending.append(memoryview(data))

    def flush(self) -> None:
        while self.pending:
            first = self.pending[0]
            try:
                sent = self.sock.send(first)
            except BlockingIOError:
                return
            if sent < len(first):
                self.pending[0] = first[sent:]
                return
            self.pending.popleft()
        if self.fin_wanted:
            self.fin_wanted = False
            with suppress(OSError):  # not connected any more: there is nobody to be told
                self.sock.shutdown(socket.SHUT_WR)
