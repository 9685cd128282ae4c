"""The two ends of every measurement: an origin, and a client that counts.

Raw epoll, one thread, standard library only, so that the same file runs on the host
and as the worker inside each peer's sandbox.

    load.py origin PORT
    load.py client VIA HOST PORT

VIA is how the client gets there: `direct`; `http://[USER:PASSWORD@]HOST:PORT` for CONNECT;
`environment` for whatever `http_proxy` says. The client first prints a line about itself, then
takes one job per line of standard input and answers each with one JSON object:

    tunnels CONCURRENCY SECONDS  |  bulk BYTES  |  hold COUNT  |  release
"""

from __future__ import annotations

import base64
import json
import os
import resource
import select
import socket
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

SMALL = b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
CHUNK = bytes(1 << 18)
PATIENCE_S = 10.0
"""Longest wait for any single answer; a peer that needs more counts as an error, not as a hang."""


# --- the origin ---------------------------------------------------------------------------------


def serve(port: int) -> None:
    """Answer small requests, stream `GET /N` (N bytes), and hold what says nothing."""
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    listener.setblocking(False)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    open_sockets: dict[int, socket.socket] = {}
    while True:
        for fd, _ in poll.poll():
            if fd != listener.fileno():
                answer(open_sockets, fd)
                continue
            for connection in accept_all(listener):
                open_sockets[connection.fileno()] = connection
                poll.register(connection, select.EPOLLIN)


def accept_all(listener: socket.socket) -> Iterator[socket.socket]:
    """Yield what waits in the queue."""
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        yield connection


def answer(open_sockets: dict[int, socket.socket], fd: int) -> None:
    """Serve one request and close. A download is served to its end before anything else."""
    connection = open_sockets.pop(fd)
    try:
        request = connection.recv(4096)
        size = request.split(b" ", 2)[1][1:] if request else b""
        if size:
            stream(connection, int(size))
        elif request:
            connection.send(ANSWER)
    except OSError:
        pass
    connection.close()


def stream(connection: socket.socket, size: int) -> None:
    """Send `size` zero bytes."""
    connection.settimeout(PATIENCE_S)
    while size > 0:
        size -= connection.send(CHUNK[:size] if size < len(CHUNK) else CHUNK)


# --- the client ---------------------------------------------------------------------------------


class Way(NamedTuple):
    """Where to connect, and what to say there before the tunnel is open."""

    address: tuple[str, int]
    preamble: bytes

    @classmethod
    def parse(cls, via: str, host: str, port: int) -> Way:
        """Resolve once, so that a name costs one question and the loop measures connections."""
        if via == "direct":
            return cls((socket.gethostbyname(host), port), b"")
        proxy = urlsplit(via)
        lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
        if proxy.username:
            token = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(token).decode()}")
        preamble = "\r\n".join([*lines, "", ""]).encode()
        return cls((socket.gethostbyname(proxy.hostname or ""), proxy.port or 3128), preamble)


def open_tunnel(way: Way) -> socket.socket:
    """Connect and pass the CONNECT exchange, blocking."""
    connection = socket.create_connection(way.address, PATIENCE_S)
    if way.preamble:
        connection.sendall(way.preamble)
        head = b""
        while b"\r\n\r\n" not in head:
            more = connection.recv(4096)
            if not more:
                raise ConnectionError(f"closed after {head!r}")
            head += more
        if head.split(b" ", 2)[1] != b"200":
            raise ConnectionError(head.decode(errors="replace"))
    return connection


class Tunnel:
    """One measured connection: connect, CONNECT if need be, one small request, end of stream."""

    __slots__ = ("began", "got", "socket", "waits_for_head")

    def __init__(self, way: Way) -> None:
        self.began = time.perf_counter()
        self.got = b""
        self.waits_for_head = bool(way.preamble)
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(way.address)


def load_tunnels(way: Way, concurrency: int, seconds: float) -> dict[str, object]:
    """Keep `concurrency` tunnels in flight for `seconds`; count those that brought the whole answer."""
    poll = select.epoll()
    tunnels: dict[int, Tunnel] = {}
    latencies: list[float] = []
    errors = 0
    first_words = way.preamble or SMALL

    def start() -> None:
        tunnel = Tunnel(way)
        tunnels[tunnel.socket.fileno()] = tunnel
        poll.register(tunnel.socket, select.EPOLLOUT)

    began = time.perf_counter()
    end = began + seconds
    for _ in range(concurrency):
        start()
    while (now := time.perf_counter()) < end:
        for fd, events in poll.poll(max(end - now, 0.001)):
            tunnel = tunnels[fd]
            try:
                if events == select.EPOLLOUT:
                    tunnel.socket.send(first_words)
                    poll.modify(fd, select.EPOLLIN)
                    continue
                data = tunnel.socket.recv(4096)
            except OSError:
                data = b""
            tunnel.got += data
            if data and tunnel.waits_for_head:
                if tunnel.got.endswith(b"\r\n\r\n") and tunnel.got[9:12] == b"200":
                    tunnel.waits_for_head, tunnel.got = False, b""
                    tunnel.socket.send(SMALL)
                continue
            if data:
                continue
            if tunnel.got == ANSWER:
                latencies.append(time.perf_counter() - tunnel.began)
            else:
                errors += 1
            tunnel.socket.close()
            del tunnels[fd]
            start()
    elapsed = time.perf_counter() - began
    return {"tunnels": len(latencies), "errors": errors, "seconds": elapsed, **percentiles(latencies)}


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Return p50 and p99 in milliseconds."""
    if not latencies:
        return {"p50_ms": 0.0, "p99_ms": 0.0}
    latencies.sort()
    return {f"p{p}_ms": latencies[len(latencies) * p // 100] * 1e3 for p in (50, 99)}


def load_bulk(way: Way, size: int) -> dict[str, object]:
    """Download once and time it."""
    connection = open_tunnel(way)
    began = time.perf_counter()
    connection.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % size)
    room = bytearray(1 << 18)
    received = 0
    while count := connection.recv_into(room):
        received += count
    seconds = time.perf_counter() - began
    return {"bytes": received, "seconds": seconds, "errors": int(received != size)}


class Client:
    """Does the jobs that arrive on standard input, one at a time."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.kept: list[socket.socket] = []

    def do(self, job: str, *numbers: float) -> dict[str, object]:
        """Do one job; what goes wrong is an answer, too."""
        if job == "tunnels":
            return load_tunnels(self.way, int(numbers[0]), numbers[1])
        if job == "bulk":
            return load_bulk(self.way, int(numbers[0]))
        if job == "hold":
            return self.hold(int(numbers[0]))
        if job == "release":
            while self.kept:
                self.kept.pop().close()
        return {"open": len(self.kept)}

    def hold(self, count: int) -> dict[str, object]:
        """Open tunnels and keep them; say how many when there is a limit in the way."""
        try:
            while len(self.kept) < count:
                self.kept.append(open_tunnel(self.way))
        except OSError as problem:
            return {"open": len(self.kept), "stopped": f"{len(self.kept)} open, then {problem}"}
        return {"open": len(self.kept)}

    def serve(self) -> None:
        """Answer until standard input ends."""
        for line in sys.stdin:
            job, *numbers = line.split()
            before = time.process_time()
            try:
                result = self.do(job, *map(float, numbers))
            except OSError as problem:
                result = {"failed": f"{job}: {problem}"}
            say({**result, "client_cpu_s": time.process_time() - before})


def say(answer: dict[str, object]) -> None:
    """Print one JSON object as one line."""
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Be the origin or the client."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if sys.argv[1] == "origin":
        serve(int(sys.argv[2]))
        return
    via, host, port = sys.argv[2:]
    proxies = {name: value for name, value in os.environ.items() if "PROXY" in name.upper()}
    via = os.environ["http_proxy"] if via == "environment" else via
    client = Client(Way.parse(via, host, int(port)))
    say({"pid": os.getpid(), "proxies": proxies})
    client.serve()


if __name__ == "__main__":
    main()
