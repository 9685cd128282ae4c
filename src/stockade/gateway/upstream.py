"""The way out of a site that has only a proxy: CONNECT, said by the gateway.

What the proxy answers is as untrusted as any destination: a small head is read and
nothing of it but the status is used. Not a byte more than the head is taken from the
socket, since a server may speak first.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from stockade.decision.request import Permit

HEAD_LIMIT_BYTES = 16384


class ConnectRequest:
    """Asks an upstream proxy for one name and port; calls `answered(error)` once, empty for yes."""

    def __init__(self, sock: socket.socket, permit: Permit, answered: Callable[[str], None]) -> None:
        self._sock = sock
        self._answered = answered
        self._head = b""
        assert permit.through is not None
        target = f"{permit.name}:{permit.port}"
        fields = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if permit.through.authorization is not None:
            fields.append(f"Proxy-Authorization: {permit.through.authorization}")
        # A fresh socket's buffer is empty, so this small head goes out whole.
        self._sock.send("\r\n".join([*fields, "", ""]).encode("ascii"))

    def read(self) -> None:
        """Take what belongs to the head, and nothing behind it."""
        try:
            seen = self._sock.recv(HEAD_LIMIT_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            self._answered("upstream-proxy-reset")
            return
        if not seen:
            self._answered("upstream-proxy-closed")
            return
        end = (self._head + seen).find(b"\r\n\r\n") + 4
        is_whole = end >= 4
        self._head += self._sock.recv(end - len(self._head) if is_whole else len(seen))
        if is_whole:
            self._answered(judge_answer(self._head))
        elif len(self._head) >= HEAD_LIMIT_BYTES:
            self._answered("upstream-proxy-answer-too-long")


def judge_answer(head: bytes) -> str:
    """Empty if the proxy says 2xx (RFC 9110 §9.3.6), else a short word with its status."""
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    is_http = len(words) >= 2 and words[0].startswith(b"HTTP/1.")
    if not is_http or len(words[1]) != 3 or not words[1].isdigit():
        return "upstream-proxy-nonsense"
    return "" if words[1].startswith(b"2") else f"upstream-proxy-said-{words[1].decode()}"
