"""One direction of a tunnel between real sockets: nothing lost, nothing added, back-pressure, limits."""

import contextlib
import hashlib
import os
import socket
from collections.abc import Iterator

import pytest

from stockade.gateway.relay import BULK_AFTER_BYTES, PIPES, LimitReached, Way

Pair = tuple[socket.socket, socket.socket]


def tcp_pair() -> Pair:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket, socket.socket, socket.socket]]:
    """writer → source … destination → reader"""
    writer, source = tcp_pair()
    destination, reader = tcp_pair()
    yield writer, source, destination, reader
    for sock in (writer, source, destination, reader):
        sock.close()


def carry(way: Way, writer: socket.socket, reader: socket.socket, data: bytes) -> bytes:
    """Push all of `data` through, reading slowly, then end the source."""
    sent, received, ended = 0, bytearray(), False
    while not way.is_done or way.wants_write:
        if sent < len(data):
            with contextlib.suppress(BlockingIOError):
                sent += writer.send(data[sent : sent + 300_000])
        elif not ended:
            writer.shutdown(socket.SHUT_WR)
            ended = True
        way.move()
        received += drain(reader, 70_000)
    while len(received) < way.count:
        received += drain(reader, 1 << 20)
    return bytes(received)


def drain(reader: socket.socket, count: int) -> bytes:
    try:
        return reader.recv(count)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("size", [0, 1, 65_536, BULK_AFTER_BYTES - 1, BULK_AFTER_BYTES + 1, 8_000_000])
def test_what_goes_in_comes_out(line, size: int) -> None:  # type: ignore[no-untyped-def]
    writer, source, destination, reader = line
    data = os.urandom(size)
    way = Way(source, destination, None)
    received = carry(way, writer, reader, data)
    assert way.count == size
    assert way.source_ended
    assert hashlib.sha256(received).digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("limit", [1, 1000, BULK_AFTER_BYTES + 5])
def test_a_limit_stops_at_the_byte_and_leaves_the_rest_unread(line, limit: int) -> None:  # type: ignore[no-untyped-def]
    writer, source, destination, reader = line
    data = os.urandom(limit + 100)
    writer.setblocking(True)
    writer.settimeout(5)
    way = Way(source, destination, limit)
    sent, received = 0, bytearray()
    while not way.is_done:
        sent += writer.send(data[sent : sent + 65_536]) if sent < len(data) else 0
        way.move()
        received += drain(reader, 1 << 20)
    while len(received) < limit:
        received += drain(reader, 1 << 20)
    assert bytes(received) == data[:limit]
    writer.sendall(data[sent:])
    source.setblocking(True)
    source.settimeout(5)
    assert source.recv(200) == data[limit:][:200]


def test_a_reader_that_stands_still_stops_the_reading_and_not_the_memory(line) -> None:  # type: ignore[no-untyped-def]
    writer, source, destination, _reader = line
    way = Way(source, destination, None)
    total = 0
    for _ in range(2000):
        try:
            total += writer.send(bytes(65_536))
        except BlockingIOError:
            if way.wants_write:
                break
        way.move()
    assert way.wants_write
    assert not way.wants_read
    way.release()


def test_an_upload_that_is_used_up_stops_the_way(line) -> None:  # type: ignore[no-untyped-def]
    writer, source, destination, _reader = line
    left = [1000]

    def spend(count: int) -> bool:
        left[0] -= count
        return left[0] >= 0

    way = Way(source, destination, None, spend)
    writer.send(bytes(900))
    source.setblocking(True)
    way.move()
    writer.send(bytes(200))
    with pytest.raises(LimitReached):
        way.move()


def test_an_idle_way_owns_no_pipe(line) -> None:  # type: ignore[no-untyped-def]
    writer, source, destination, reader = line
    way = Way(source, destination, None)
    carry(way, writer, reader, os.urandom(1_000_000))
    way.release()
    before = len(os.listdir("/proc/self/fd"))
    PIPES.close()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert way._pipe is None
