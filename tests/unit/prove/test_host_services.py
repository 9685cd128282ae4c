"""Services of the host: what arrives is noted by name, once, and when one asks everything is there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from stockade.prove.host_services import HostServices


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostServices:
    """Without those that need the range's own addresses."""
    listen = HostServices.listen

    def listen_on_sockets(self: HostServices, name: str, family: int, address: object) -> None:
        if family == socket.AF_UNIX:
            listen(self, name, family, address)

    monkeypatch.setattr(HostServices, "listen", listen_on_sockets)
    return HostServices(tmp_path, tmp_path.name)


def say(path: str, data: bytes) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    stream.sendall(data)
    return stream


def test_all_that_was_sent_is_there_when_one_asks_and_gone_the_next_time(services: HostServices) -> None:
    streams = [say(services.facts["unix_socket"], b"%d" % number) for number in range(10)]
    found = services.take()
    assert sorted(int(one["text"]) for one in found) == list(range(10))
    assert {(one["what"], one["name"], one["bytes"]) for one in found} == {("host", "unix", 1)}
    assert services.take() == []
    for stream in streams:
        stream.close()


def test_a_connection_without_a_byte_is_no_arrival(services: HostServices) -> None:
    say(services.facts["unix_socket"], b"").close()
    assert services.take() == []


def test_an_abstract_socket_and_what_is_no_listener_have_names_of_their_own(services: HostServices) -> None:
    stream = say("\0" + services.facts["abstract"][1:], b"x")
    services.note("fifo", b"yy")
    assert sorted((one["name"], one["bytes"]) for one in services.take()) == [("abstract", 1), ("fifo", 2)]
    stream.close()


def test_what_was_closed_is_free_for_the_next(services: HostServices, tmp_path: Path) -> None:
    services.close()
    Path(services.facts["unix_socket"]).unlink()
    again = HostServices(tmp_path, tmp_path.name)  # the abstract name is the same
    say(again.facts["abstract"].replace("@", "\0"), b"hello").close()
    assert [one["name"] for one in again.take()] == ["abstract"]
    assert services.take() == []
    again.close()
