"""What arrived in the world: the only witness that the judge believes.

A client's own word ("connection refused") proves nothing. An arrival is noted the moment
a server of the range accepts or receives, before anything is parsed, and grows while
bytes come in.
"""

from __future__ import annotations

import threading
import time
from typing import Any

FIRST_BYTES = 200
# The range's resolvers: what a host without a policy asks, and the gateway for permitted names.
NAME_SERVERS = frozenset({"9.9.9.9", "2620:fe::fe"})


class Arrival:
    """One connection or datagram as the world saw it. `bytes` counts what the client sent."""

    def __init__(self, protocol: str, address: str, port: int, source: str) -> None:
        self.time = time.time()
        self.protocol = protocol
        self.address = address
        self.port = port
        self.source = source
        self.is_tls = False
        self.sni: str | None = None
        self.bytes = 0
        self.first = b""
        self.requests: list[dict[str, Any]] = []
        self.closed = ""

    def note_bytes(self, data: bytes) -> None:
        self.bytes += len(data)
        if len(self.first) < FIRST_BYTES:
            self.first = (self.first + data)[:FIRST_BYTES]

    def to_json(self, number: int) -> dict[str, Any]:
        return {
            "number": number,
            "time": self.time,
            "protocol": self.protocol,
            "address": self.address,
            "port": self.port,
            "source": self.source,
            "tls": self.is_tls,
            "sni": self.sni,
            "bytes": self.bytes,
            "first": self.first.decode("latin-1"),
            "requests": list(self.requests),
            "closed": self.closed,
        }


class WorldLog:
    """All arrivals since the last reset, and the packets that the tap saw on the wire."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: list[Arrival] = []
        self._packets: list[dict[str, Any]] = []

    def open(self, protocol: str, address: str, port: int, source: str) -> Arrival:
        arrival = Arrival(protocol, address, port, source)
        with self._lock:
            self._arrivals.append(arrival)
        return arrival

    def note_packet(self, packet: dict[str, Any]) -> None:
        with self._lock:
            self._packets.append(packet)

    def arrivals(self, since: int = 0) -> list[dict[str, Any]]:
        with self._lock:
            return [
                arrival.to_json(number) for number, arrival in enumerate(self._arrivals) if number >= since
            ]

    def packets(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._packets)

    def size(self) -> tuple[int, int, int]:
        """Grows whenever anything arrives; used to tell when the world has caught up."""
        with self._lock:
            return len(self._arrivals), len(self._packets), sum(arrival.bytes for arrival in self._arrivals)

    def reset(self) -> None:
        with self._lock:
            self._arrivals.clear()
            self._packets.clear()
