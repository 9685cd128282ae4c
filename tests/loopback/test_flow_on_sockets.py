"""The flow under the real driver, between real sockets: what `doubles.fake_driver` promises holds there.

A client of the standard library speaks through a `Connection` to a server of the standard
library; only the room (records, look-ups) is a double. All of it stays on loopback.
"""

from __future__ import annotations

import hashlib
import http.client
import http.server
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from doubles.fake_driver import Room as Judge
from doubles.messages import get
from stockade.decision.request import Attempt, Decision
from stockade.gateway.driver import Connection
from stockade.gateway.naming import EndsOf
from stockade.gateway.side import Side
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host
from stockade.protocol.effects import RecordOutcome
from stockade.protocol.flow import Flow
from stockade.reactor import READ, Reactor
from stockade.vocabulary import Entry

BIG = 20_000_000


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with what was asked for; a POST with the digest of its body."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n3\r\nabc\r\n")
            self.wfile.write(b"0\r\n\r\n")
        elif self.path == "/reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"part")
            self.close_connection = True
        else:
            self._answer(bytes(BIG) if self.path == "/big" else self.path.encode())

    def do_POST(self) -> None:
        digest = hashlib.sha256()
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline(), 16):
                digest.update(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else:
            digest.update(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(digest.hexdigest().encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Bench:
    """A server, the gateway's two doors to it, and what was recorded."""

    def __init__(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.judge = Judge(
            f"rules:\n  - {{allow: app.test, ports: [{self.port}], protocol: http}}\n"
            f"internal:\n  - {{host: app.test, networks: [127.0.0.0/8], ports: [{self.port}]}}\n"
        )
        self.reactor = Reactor()
        self.decisions: list[Decision] = []
        self.outcomes: list[RecordOutcome] = []
        self.faults: list[Exception] = []
        self.ended = threading.Semaphore(0)
        self._listeners: list[socket.socket] = []
        self.direct = self._open(Entry.TRANSPARENT, Endpoint(Host("app.test"), self.port))
        self.proxy = self._open(Entry.HTTP_PROXY, None)
        self._threads = [
            threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True),
            threading.Thread(target=self.reactor.run, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def authority(self) -> str:
        return f"app.test:{self.port}"

    def close(self) -> None:
        self.reactor.call_threadsafe(self.reactor.stop)
        self.server.shutdown()
        for thread in self._threads:
            thread.join()
        self.server.server_close()
        for listener in self._listeners:
            listener.close()
        self.reactor.close()

    def _open(self, entry: Entry, place: Endpoint | None) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self._listeners.append(listener)

        def accept(_events: int) -> None:
            sock, _ = listener.accept()
            sock.setblocking(False)
            flow = Flow(entry, place, self.judge)
            Connection(self, sock, flow).start(flow.start(self.reactor.now()))

        self.reactor.watch(listener.fileno(), READ, accept)
        port: int = listener.getsockname()[1]
        return port

    # --- the room, as the driver sees it -------------------------------------------------

    def record(
        self, _attempt: Attempt, decision: Decision, recorded: Callable[[int], None], _ends: EndsOf
    ) -> int:
        self.decisions.append(decision)
        number = len(self.decisions)
        self.reactor.call_soon(lambda: recorded(number))
        return number

    def record_outcome(self, outcome: RecordOutcome) -> None:
        self.outcomes.append(outcome)

    def resolve(self, _host: Host, done: Callable[[Any, Any], None]) -> None:
        self.reactor.call_soon(lambda: done((ip_address("127.0.0.1"),), None))

    def hold(self, _effect: object, answered: Callable[[bool, str], None]) -> None:
        answered(False, "nobody")

    def note_redirect(self, _host: Host, _port: int) -> None:
        pass

    def spend_upload(self, _count: int) -> bool:
        return True

    def connection_ended(self, _connection: Connection) -> None:
        self.ended.release()

    def fault(self, error: Exception) -> None:
        self.faults.append(error)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()
    assert bench.faults == []


def ask(connection: http.client.HTTPConnection, path: str, host: str, **options: Any) -> tuple[int, bytes]:
    connection.request(options.pop("method", "GET"), path, headers={"Host": host}, **options)
    answer = connection.getresponse()
    return answer.status, answer.read()


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(4096), b""))


def test_r062_r098_one_connection_many_requests_each_judged(bench: Bench) -> None:
    client = http.client.HTTPConnection("127.0.0.1", bench.direct)
    for number in range(5):
        assert ask(client, f"/{number}", bench.authority) == (200, f"/{number}".encode())
    assert ask(client, "/x", "evil.test")[0] == 403
    assert ask(client, "/after", bench.authority) == (200, b"/after")
    client.close()
    assert [decision.verdict.word for decision in bench.decisions] == ["allow"] * 5 + ["deny", "allow"]


def test_r104_r107_large_bodies_arrive_whole(bench: Bench) -> None:
    client = http.client.HTTPConnection("127.0.0.1", bench.direct)
    assert ask(client, "/big", bench.authority) == (200, bytes(BIG))
    assert ask(client, "/chunked", bench.authority) == (200, (bytes(65536) + b"abc") * 40)
    body = b"z" * 13_000_000
    wanted = hashlib.sha256(body).hexdigest().encode()
    assert ask(client, "/up", bench.authority, method="POST", body=body) == (200, wanted)
    pieces = (body[at : at + 50_000] for at in range(0, len(body), 50_000))
    answer = ask(client, "/up", bench.authority, method="POST", body=pieces, encode_chunked=True)
    assert answer == (200, wanted)
    client.close()


def test_r071_r074_the_proxy_entry_with_a_client_of_the_standard_library(bench: Bench) -> None:
    handler = urllib.request.ProxyHandler({"http": f"http://user:secret@127.0.0.1:{bench.proxy}"})
    opener = urllib.request.build_opener(handler)
    assert opener.open(f"http://{bench.authority}/proxied").read() == b"/proxied"
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open("http://evil.test/")
    assert caught.value.code == 403
    assert caught.value.headers["X-Stockade-Reason"] == "not-listed"
    caught.value.close()


def test_connect_to_a_plain_destination(bench: Bench) -> None:
    client = http.client.HTTPConnection("127.0.0.1", bench.proxy)
    client.set_tunnel("app.test", bench.port)
    assert ask(client, "/tunnelled", bench.authority) == (200, b"/tunnelled")
    client.close()


def test_a_refusal_reaches_a_client_that_is_still_sending(bench: Bench) -> None:
    client = http.client.HTTPConnection("127.0.0.1", bench.proxy)
    client.request("POST", "http://evil.test/", body=bytes(150_000))
    assert client.getresponse().status == 403
    client.close()


def test_r102_a_half_closed_client_gets_its_answer_and_the_slot_comes_back(bench: Bench) -> None:
    with socket.create_connection(("127.0.0.1", bench.direct)) as client:
        client.sendall(get("/fin", bench.authority))
        client.shutdown(socket.SHUT_WR)
        got = read_all(client)
    assert got.endswith(b"/fin")
    assert bench.ended.acquire(timeout=5)


def test_a_truncated_answer_is_a_reset_for_the_client(bench: Bench) -> None:
    with socket.create_connection(("127.0.0.1", bench.direct)) as client:
        client.sendall(get("/cut", bench.authority))
        with pytest.raises(ConnectionResetError):
            read_all(client)
    assert bench.ended.acquire(timeout=5)
    assert [outcome.outcome for outcome in bench.outcomes] == ["truncated"]


def test_a_client_that_does_not_read_its_refusals_is_given_up(bench: Bench) -> None:
    """Else it makes the gateway keep as many refusals as it cares to ask for."""
    ahead = get("/", "evil.test") * 200_000
    with socket.create_connection(("127.0.0.1", bench.proxy)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(10)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(ahead)
    assert bench.ended.acquire(timeout=5)
    assert len(bench.decisions) < 20_000


def test_a_permitted_attempt_that_ends_before_its_record_is_durable_has_an_outcome(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_durable(
        _attempt: Attempt, decision: Decision, _recorded: Callable[[int], None], _ends: EndsOf
    ) -> int:
        bench.decisions.append(decision)
        return len(bench.decisions)

    monkeypatch.setattr(bench, "record", never_durable)
    with socket.create_connection(("127.0.0.1", bench.direct)) as client:
        client.sendall(get("/", bench.authority))
        while not bench.decisions:
            time.sleep(0.01)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert bench.ended.acquire(timeout=5)
    assert [(outcome.of, outcome.outcome) for outcome in bench.outcomes] == [(1, "reset")]


def test_an_answer_that_cannot_be_delivered_still_has_its_outcome(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client resets in the same moment: the flow has said all that is to be said, and it is not lost."""
    write = Side.write

    def fail_to_answer(side: Side, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 501"):
            raise ConnectionResetError
        write(side, data)

    monkeypatch.setattr(Side, "write", fail_to_answer)
    with socket.create_connection(("127.0.0.1", bench.direct)) as client:
        client.sendall(get("/", bench.authority, method="HEAD"))  # an answer in one piece
        assert bench.ended.acquire(timeout=5)
    assert [outcome.of for outcome in bench.outcomes] == [1]


def test_a_destination_that_resets_is_a_502_and_the_next_request_is_served(bench: Bench) -> None:
    client = http.client.HTTPConnection("127.0.0.1", bench.direct)
    assert ask(client, "/before", bench.authority) == (200, b"/before")
    assert ask(client, "/reset", bench.authority)[0] == 502
    assert ask(client, "/after", bench.authority) == (200, b"/after")
    client.close()
    assert [decision.verdict.word for decision in bench.decisions] == ["allow"] * 3
    while len(bench.outcomes) < 3:  # the client may have opened a second connection behind the 502
        assert bench.ended.acquire(timeout=5)
    assert [outcome.status for outcome in bench.outcomes] == [200, 502, 200]
