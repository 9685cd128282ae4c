"""The world answers a question about arrivals only when the kernel has nothing more for it."""

from __future__ import annotations

import select
import socket
from pathlib import Path

import pytest

from stockade.prove import world as world_module
from stockade.prove.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, "range0")


def test_first_bytes_that_no_thread_has_read_yet_are_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair()
    arrival = world.log.open("tcp", "93.184.216.66", 80, "10.9.0.2")
    world._unread[ours] = arrival
    theirs.sendall(b"secret")
    naps = []

    def nap(seconds: float) -> None:  # the busy thread gets its turn at the third
        naps.append(seconds)
        if len(naps) == 3:
            arrival.note_bytes(ours.recv(100))

    monkeypatch.setattr(world_module.time, "sleep", nap)
    world._settle()
    assert arrival.bytes == 6
    ours.close()
    theirs.close()


def test_a_connection_that_nobody_has_accepted_yet_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        world._doors.register(listener, select.POLLIN)
        client = socket.create_connection(listener.getsockname())
        naps, accepted = [], []

        def nap(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 3:
                accepted.append(listener.accept()[0])

        monkeypatch.setattr(world_module.time, "sleep", nap)
        world._settle()
        assert len(accepted) == 1
        for stream in (client, *accepted):
            stream.close()


def test_a_quiet_world_answers_at_once_and_one_that_never_rests_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []
    monkeypatch.setattr(world_module.time, "sleep", naps.append)
    world._settle()
    assert len(naps) == 1
    ours, theirs = socket.socketpair()
    world._unread[ours] = world.log.open("tcp", "93.184.216.66", 80, "10.9.0.2")
    theirs.sendall(b"nobody reads this")
    naps.clear()
    world._settle()
    assert sum(naps) == pytest.approx(1)
    ours.close()
    theirs.close()
