"""The loop: readiness, time, threads, and no callback after it was taken back."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from stockade.reactor import READ, WRITE, Reactor


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    loop = Reactor()
    yield loop
    loop.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_a_readable_descriptor_is_called_and_an_idle_one_is_not(
    reactor: Reactor, pipe: tuple[int, int]
) -> None:
    calls: list[int] = []
    reactor.watch(pipe[0], READ, calls.append)
    reactor.turn(0)
    assert calls == []
    os.write(pipe[1], b"x")
    reactor.turn(1)
    assert len(calls) == 1


def test_a_descriptor_unwatched_by_an_earlier_callback_of_the_same_round_is_not_called(
    reactor: Reactor,
) -> None:
    pairs = [os.pipe() for _ in range(2)]
    calls: list[int] = []

    def first_wins(reader: int, other: int) -> None:
        calls.append(reader)
        reactor.unwatch(other)

    (a, _), (b, _) = pairs
    reactor.watch(a, READ, lambda _events: first_wins(a, b))
    reactor.watch(b, READ, lambda _events: first_wins(b, a))
    for _, writer in pairs:
        os.write(writer, b"x")
    reactor.turn(1)
    assert len(calls) == 1
    for descriptor in (fd for pair in pairs for fd in pair):
        os.close(descriptor)


def test_interest_can_be_changed(reactor: Reactor, pipe: tuple[int, int]) -> None:
    calls: list[int] = []
    reactor.watch(pipe[1], 0, calls.append)
    reactor.turn(0)
    assert calls == []
    reactor.rewatch(pipe[1], WRITE)
    reactor.turn(1)
    assert calls == [WRITE]


def test_timers_come_in_the_order_of_their_time_and_a_cancelled_one_never(reactor: Reactor) -> None:
    calls: list[str] = []
    now = reactor.now()
    reactor.call_at(now - 1, lambda: calls.append("second"))
    reactor.call_at(now - 2, lambda: calls.append("first"))
    reactor.call_at(now - 3, lambda: calls.append("never")).cancel()
    reactor.call_at(now + 3600, lambda: calls.append("later"))
    reactor.turn(0)
    assert calls == ["first", "second"]


def test_another_thread_wakes_a_sleeping_loop(reactor: Reactor) -> None:
    calls: list[int] = []
    thread = threading.Thread(
        target=lambda: reactor.call_threadsafe(lambda: calls.append(threading.get_ident()))
    )
    reactor.call_later(0, thread.start)
    while not calls:
        reactor.turn(10)
    assert calls == [threading.get_ident()]  # called here, not there
    thread.join()


def test_ten_thousand_wakeups_do_not_fill_the_pipe(reactor: Reactor) -> None:
    calls: list[int] = []
    for number in range(10_000):
        reactor.call_threadsafe(lambda n=number: calls.append(n))
    while len(calls) < 10_000:
        reactor.turn(1)
    assert calls == list(range(10_000))


def test_what_is_called_soon_by_a_soon_call_waits_for_the_next_round(reactor: Reactor) -> None:
    calls: list[int] = []

    def again() -> None:
        calls.append(1)
        reactor.call_soon(again)

    reactor.call_soon(again)
    reactor.turn(0)
    assert calls == [1]


def test_a_signal_arrives_in_the_loop(reactor: Reactor) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    calls: list[str] = []
    reactor.on_signal(signal.SIGUSR1, lambda: calls.append("usr1"))
    os.kill(os.getpid(), signal.SIGUSR1)
    while not calls:
        reactor.turn(1)
    signal.signal(signal.SIGUSR1, before)
    assert calls == ["usr1"]


def test_an_exception_of_a_callback_is_not_swallowed(reactor: Reactor) -> None:
    reactor.call_soon(lambda: 1 / 0)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        reactor.run()


def test_cancelled_timers_do_not_pile_up(reactor: Reactor) -> None:
    """A kept connection sets and clears a deadline of minutes with each request."""
    kept = reactor.call_later(300, lambda: None)
    for _ in range(50_000):
        reactor.call_later(300, lambda: None).cancel()
    assert len(reactor._timers) < 5_000
    assert kept in [timer for _, _, timer in reactor._timers]
