"""Ending a TCP connection so that the other side notices."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

# SO_LINGER on, zero seconds: close() sends a reset instead of a FIN (socket(7)).
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


# A client that has sent its FIN may wait for an answer for as long as it likes, or may be gone: the two
# look alike until it is asked. A socket that nobody owns any more answers with a reset once the kernel has
# dropped it (tcp_fin_timeout, 60 s), so a vanished client is noticed after about a minute and a half.
_ASK_AFTER_S = 30
_ASK_EVERY_S = 15
_ASK_TIMES = 3


def notice_when_gone(sock: socket.socket) -> None:
    """Have the kernel ask from time to time whether the peer is still there (tcp(7), keepalive)."""
    with suppress(OSError):  # gone already, which reading or writing will say
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _ASK_AFTER_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _ASK_EVERY_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _ASK_TIMES)


def is_dead(sock: socket.socket) -> bool:
    """True if the connection has failed: the kernel does not know a peer any more."""
    try:
        sock.getpeername()
    except OSError:
        return True
    return False


def close_with_reset(sock: socket.socket) -> None:
    """Close at once; what was not sent is dropped, and the peer gets a reset."""
    with suppress(OSError):  # the peer has reset it already
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.close()
