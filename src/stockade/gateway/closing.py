"""Ending a TCP connection so that the other side notices."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

# SO_LINGER on, zero seconds: close() sends a reset instead of a FIN (socket(7)).
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def close_with_reset(sock: socket.socket) -> None:
    """Close at once; what was not sent is dropped, and the peer gets a reset."""
    with suppress(OSError):  # the peer has reset it already
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.close()
