"""What the host of the range has that a worker must not reach, each counting what arrives.

A TCP service on both loopbacks and on the host's own address, a Unix socket in the file
system, an abstract one. They run in the lane's process, in *host*, as threads.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

HOST_ADDRESS = "10.9.0.2"
HOST_ADDRESS6 = "fd09::2"
SERVICE_PORT = 7777
FIRST_BYTES = 200
SETTLE_STEPS = 200  # of 5 ms
VSOCK, VSOCK_ANY, VSOCK_LOCAL = 40, 0xFFFFFFFF, 1  # vsock(7); a machine without its module lacks the names


class HostServices:
    """Listeners of the host and what they received.

    Attributes:
        facts: Where they are, for the attack's `kit.facts`.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self._lock = threading.Lock()
        self._doors = select.poll()
        self._listeners: list[tuple[socket.socket, threading.Thread]] = []
        self._unread: set[socket.socket] = set()
        self._arrivals: list[dict[str, Any]] = []
        path, abstract = str(folder / "service.sock"), f"stockade-range-{token}"
        for name, family, address in (
            ("loopback", socket.AF_INET, ("127.0.0.1", SERVICE_PORT)),
            ("loopback6", socket.AF_INET6, ("::1", SERVICE_PORT)),
            ("own-address", socket.AF_INET, (HOST_ADDRESS, SERVICE_PORT)),
            ("own-address6", socket.AF_INET6, (HOST_ADDRESS6, SERVICE_PORT)),
            ("unix", socket.AF_UNIX, path),
            ("abstract", socket.AF_UNIX, f"\0{abstract}"),
        ):
            self.listen(name, family, address)
        with suppress(OSError):  # a kernel without it
            self.listen("vsock", VSOCK, (VSOCK_ANY, SERVICE_PORT))
        Path(path).chmod(0o777)
        self.facts: dict[str, Any] = {
            "host_address": HOST_ADDRESS,
            "host_address6": HOST_ADDRESS6,
            "service_port": SERVICE_PORT,
            "unix_socket": path,
            "abstract": f"@{abstract}",
        }

    def listen(self, name: str, family: int, address: Any) -> None:
        """Count what arrives at one more place, under this name."""
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(16)
        self._doors.register(listener, select.POLLIN)
        thread = threading.Thread(target=self._accept, args=(name, listener), daemon=True)
        self._listeners.append((listener, thread))
        thread.start()

    def close(self) -> None:
        """Give the places free."""
        for listener, thread in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it
            thread.join(2)

    def note(self, name: str, data: bytes) -> None:
        """Something arrived at a place that is no listener of ours."""
        with self._lock:
            self._arrivals.append(
                {
                    "what": "host",
                    "name": name,
                    "bytes": len(data),
                    "text": data[:FIRST_BYTES].decode("latin-1"),
                }
            )

    def take(self) -> list[dict[str, Any]]:
        """What arrived since the last time, with at least one byte; first lets the threads note it."""
        for _ in range(SETTLE_STEPS):
            time.sleep(0.005)  # a thread may stand between reading and noting
            if not self._doors.poll(0) and not self._has_unread():
                break
        with self._lock:
            found, self._arrivals = self._arrivals, []
        return [one for one in found if one["bytes"]]

    def _has_unread(self) -> bool:
        """Whether a connection has bytes that no thread has noted yet, or its end."""
        readable = select.poll()
        for connection in list(self._unread):
            with suppress(ValueError, OSError):  # closed meanwhile
                readable.register(connection, select.POLLIN)
        return bool(readable.poll(0))

    def _accept(self, name: str, listener: socket.socket) -> None:
        with listener, suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._unread.add(connection)
                threading.Thread(target=self._serve, args=(name, connection), daemon=True).start()

    def _serve(self, name: str, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(5)
            try:
                self.note(name, connection.recv(65536))
            finally:
                self._unread.discard(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhost\n")


def has_vsock_loopback() -> bool:
    """Whether this machine's VSOCK leads from itself to itself, in this network namespace."""
    with suppress(OSError), socket.socket(VSOCK, socket.SOCK_STREAM) as line:
        line.settimeout(0.3)
        line.connect((VSOCK_LOCAL, SERVICE_PORT))
        return True
    return False
