"""The policy that most flows are judged under, and the ways to open a flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from doubles.fake_driver import FakeDriver, Room
from doubles.messages import POLICY
from stockade.vocabulary import Entry


@pytest.fixture
def room() -> Room:
    return Room(POLICY)


@pytest.fixture
def transparent(room: Room) -> Callable[..., FakeDriver]:
    """A connection to a name's address: ``transparent("app.test", 443)``."""

    def open_flow(name: str = "app.test", port: int = 80, **options: Any) -> FakeDriver:
        return FakeDriver(room, Entry.TRANSPARENT, (name, port), **options)

    return open_flow


@pytest.fixture
def proxy(room: Room) -> Callable[..., FakeDriver]:
    """A connection to the HTTP proxy entry."""
    return lambda **options: FakeDriver(room, Entry.HTTP_PROXY, **options)


@pytest.fixture
def socks(room: Room) -> Callable[..., FakeDriver]:
    """A connection to the SOCKS5 entry."""
    return lambda **options: FakeDriver(room, Entry.SOCKS5, **options)
