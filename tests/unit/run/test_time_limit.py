"""The limit on time: SIGTERM when it is up, the end of everything five seconds later."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from stockade.reactor import Timer
from stockade.run.time_limit import TimeLimit


class Clock:
    """A reactor whose time passes when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._timers: list[Timer] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self._timers.append(Timer(self.now_s + delay_s, callback))
        return self._timers[-1]

    def pass_to(self, moment_s: float) -> None:
        self.now_s = moment_s
        due = [timer for timer in self._timers if timer.due <= moment_s]
        self._timers = [timer for timer in self._timers if timer.due > moment_s]
        for timer in due:
            if timer.callback is not None:
                timer.callback()


class Recorder:
    """A sandbox that writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def send_signal(self, signum: int) -> None:
        self.asked.append(("send", signum))

    def end(self, signum: int) -> None:
        self.asked.append(("end", signum))


def started(limit_s: float | None) -> tuple[Clock, Recorder, TimeLimit]:
    clock, sandbox = Clock(), Recorder()
    limit = TimeLimit(clock, sandbox, limit_s)  # type: ignore[arg-type]
    limit.start()
    return clock, sandbox, limit


def test_first_sigterm_then_the_end_of_everything() -> None:
    clock, sandbox, limit = started(2.0)
    clock.pass_to(1.99)
    assert (sandbox.asked, limit.reached) == ([], [])
    clock.pass_to(2.0)
    assert sandbox.asked == [("send", signal.SIGTERM)]
    (reached,) = limit.reached
    assert (reached.name, reached.amount) == ("time", 2)
    assert "the command was ended" in reached.message
    clock.pass_to(6.99)
    assert len(sandbox.asked) == 1
    clock.pass_to(7.0)
    assert sandbox.asked[1:] == [("end", signal.SIGKILL)]
    assert "so all was killed" in limit.reached[0].message


@pytest.mark.parametrize("ends_at_s", [1.0, 3.0])
def test_once_the_command_has_ended_nothing_more_is_done(ends_at_s: float) -> None:
    clock, sandbox, limit = started(2.0)
    clock.pass_to(ends_at_s)
    asked, reached = list(sandbox.asked), limit.reached
    limit.cancel()
    clock.pass_to(100.0)
    assert (sandbox.asked, limit.reached) == (asked, reached)
    assert bool(reached) is (ends_at_s > 2.0)


def test_without_a_limit_nothing_is_done() -> None:
    clock, sandbox, limit = started(None)
    clock.pass_to(1e9)
    limit.cancel()
    assert (sandbox.asked, limit.reached) == ([], [])
