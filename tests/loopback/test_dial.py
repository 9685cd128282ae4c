"""Dialling judged addresses: in order, the next one when one fails or stays silent."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_address

import pytest

from stockade.decision.request import Permit
from stockade.gateway.dial import Dial
from stockade.reactor import Reactor


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listen(stack: ExitStack, address: str, port: int = 0, backlog: int = 8) -> socket.socket:
    listener = stack.enter_context(socket.socket())
    listener.bind((address, port))
    listener.listen(backlog)
    return listener


def dial(*addresses: str, port: int) -> tuple[str | None, str]:
    """The address that was reached (None if none) and the error word."""
    reactor = Reactor()
    answers: list[tuple[str | None, str]] = []

    def done(sock: socket.socket | None, address: object, error: str) -> None:
        if sock is not None:
            sock.close()
        answers.append((None if address is None else str(address), error))

    Dial(reactor, Permit("app.test", tuple(ip_address(a) for a in addresses), port), done)
    while not answers:
        reactor.turn(1.0)
    reactor.close()
    assert len(answers) == 1
    return answers[0]


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def silent_listener(stack: ExitStack, address: str, port: int) -> None:
    """A listener whose queue is full: the kernel drops further SYNs, as a black hole does."""
    listen(stack, address, port, backlog=0)
    for _ in range(4):
        filler = stack.enter_context(socket.socket())
        filler.setblocking(False)
        filler.connect_ex((address, port))


def test_the_first_address_that_answers_is_taken(stack: ExitStack) -> None:
    port = listen(stack, "127.0.0.1").getsockname()[1]
    listen(stack, "127.0.0.2", port)
    assert dial("127.0.0.1", "127.0.0.2", port=port) == ("127.0.0.1", "")


def test_a_refusing_address_is_passed_over(stack: ExitStack) -> None:
    port = listen(stack, "127.0.0.2").getsockname()[1]
    assert dial("127.0.0.1", "127.0.0.2", port=port) == ("127.0.0.2", "")


def test_r080_a_silent_address_costs_a_quarter_of_a_second_and_not_a_timeout(stack: ExitStack) -> None:
    port = listen(stack, "127.0.0.2").getsockname()[1]
    silent_listener(stack, "127.0.0.1", port)
    reactor = Reactor()
    began = reactor.now()
    assert dial("127.0.0.1", "127.0.0.2", port=port) == ("127.0.0.2", "")
    assert reactor.now() - began < 5  # the silent one alone would take 15


def test_when_all_refuse_the_word_says_so() -> None:
    assert dial("127.0.0.1", "127.0.0.2", port=unused_port()) == (None, "refused")


def test_an_address_family_without_a_way_is_passed_over(stack: ExitStack) -> None:
    port = listen(stack, "127.0.0.1").getsockname()[1]
    # A port is open on 127.0.0.1 only; ::1 refuses or is not there at all.
    assert dial("::1", "127.0.0.1", port=port) == ("127.0.0.1", "")


def test_only_addresses_of_the_permit_are_dialled(stack: ExitStack) -> None:
    listener = listen(stack, "127.0.0.1")
    other = listen(stack, "127.0.0.2", listener.getsockname()[1])
    other.setblocking(False)
    assert dial("127.0.0.1", port=listener.getsockname()[1])[0] == "127.0.0.1"
    with pytest.raises(BlockingIOError):
        other.accept()


def test_a_cancelled_dial_says_nothing_more(stack: ExitStack) -> None:
    port = listen(stack, "127.0.0.2").getsockname()[1]
    silent_listener(stack, "127.0.0.1", port)
    reactor = Reactor()
    answers: list[str] = []
    dialing = Dial(
        reactor, Permit("a", (ip_address("127.0.0.1"),), port), lambda *_: answers.append("called")
    )
    dialing.cancel()
    reactor.turn(0.01)
    assert answers == []
