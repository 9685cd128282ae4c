"""Slow and large requests to the lab's server, on real sockets, with limits that a test can wait for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from stockade.lab.web import body, protocol
from stockade.lab.web.app import answering
from stockade.lab.web.body import read_body
from stockade.lab.web.serve import listen, make_server

LIMIT_S = 0.3


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server that gives back the body that it got."""
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", LIMIT_S)
    monkeypatch.setattr(body, "TIMEOUT_S", LIMIT_S)

    async def echo(request: object) -> Response:
        return JSONResponse(await read_body(request, dict))  # type: ignore[arg-type]

    server = make_server(answering([Route("/", echo, methods=["POST"])]))
    listener = listen(0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()


def post(data: bytes, length: int | None = None) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (length or len(data), data)


def answer_of(connection: socket.socket) -> bytes:
    """What comes until the server closes, or until a whole small answer is there."""
    connection.settimeout(10)
    data = b""
    while b"\r\n\r\n" not in data or not data.endswith(b"}"):
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data


@pytest.mark.parametrize("sent", [b"", b"POST / HT", b"POST / HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_whole_head_is_closed(port: int, sent: bytes) -> None:
    """As nginx (client_header_timeout) and Apache (RequestReadTimeout) do."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        assert answer_of(connection) == b""


def is_closed_while_sending(connection: socket.socket) -> bool:
    """Send a byte now and then, for ten seconds at most."""
    for _ in range(int(10 / LIMIT_S * 10)):
        try:
            connection.sendall(b"x")
        except OSError:
            return True
        time.sleep(LIMIT_S / 10)
    return False


def test_drops_do_not_keep_a_head_alive(port: int) -> None:
    """One byte at a time (slowloris): the limit is for the whole head."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        assert is_closed_while_sending(connection)


def test_a_second_request_on_a_connection_has_its_limit_too(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(post(b'{"a": 1}'))
        assert answer_of(connection).endswith(b'{"a":1}')
        connection.sendall(b"POST / HT")
        assert answer_of(connection) == b""


def test_a_slow_body_is_answered_with_408_and_a_whole_one_with_itself(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(post(b'{"a"', length=100))
        assert answer_of(connection).startswith(b"HTTP/1.1 408 ")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(post(b'{"a": 2}'))
        assert answer_of(connection).endswith(b'{"a":2}')


def test_answers_go_out_at_once() -> None:
    """asyncio sets TCP_NODELAY (tcp(7)) on accepted sockets whose protocol number says that they are TCP."""
    with listen(0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP
