"""The command of a connection as a field: which exec it began with, and what looking for it may cost."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from stockade.ledger.record import Redactor
from stockade.net.ends import Ends
from stockade.run.command_names import Allowance, CommandNames
from stockade.sandbox.owner import Owner, Process

ENDS = Ends(True, (ip_address("10.0.0.1"), 40000), (ip_address("203.0.113.9"), 443))
REDACTOR = Redactor(b"key")
CURL, SHELL, FORK = (b"1", b"2"), (b"3", b"4"), (b"1", b"2")


def process(pid: int, image: tuple[bytes, ...]) -> Process:
    return Process(pid=1000 + pid, inner_pid=pid, start_time=5000 + pid, image=image)


def owner(*images: tuple[bytes, ...], also: tuple[int, ...] = ()) -> Owner:
    """Process 9 and its ancestors 8, 7, … with these images."""
    line = [process(9 - step, image) for step, image in enumerate(images)]
    return Owner(line[0], "/usr/bin/curl", (b"curl", b"x"), tuple(line[1:]), also)


def exec_of(found: Owner, execs: dict[tuple[int, int], int]) -> object:
    names = CommandNames(lambda _ends: found, REDACTOR, names_all=False, exec_of=lambda *key: execs.get(key))
    fields = names.name(ENDS)
    assert fields is not None
    return fields["exec"]


def test_a_command_is_told_in_plain_words() -> None:
    names = CommandNames(lambda _ends: owner(CURL, also=(12,)), REDACTOR, names_all=False)
    assert names.name(ENDS) == {
        "pid": 9, "program": "/usr/bin/curl", "argv": ["curl", "x"], "exec": None, "also": [12],
    }  # fmt: skip
    assert names.counts() == {"named": 1, "unknown": 0, "not_looked_up": 0}


def test_the_exec_is_the_process_s_own_by_pid_and_start_time() -> None:
    assert exec_of(owner(CURL, SHELL), {(1009, 5009): 12}) == 12
    assert exec_of(owner(CURL, SHELL), {(1009, 5008): 12}) is None  # the same number, another process


def test_a_fork_without_exec_has_the_exec_of_the_ancestor_whose_image_it_is() -> None:
    assert exec_of(owner(FORK, FORK, CURL, SHELL), {(1007, 5007): 12, (1006, 5006): 3}) == 12


def test_an_ancestor_that_called_exec_since_is_another_program() -> None:
    # A forked B, then A called exec: what A is now says nothing about B.
    assert exec_of(owner(FORK, SHELL), {(1008, 5008): 12}) is None


def test_images_that_are_not_shown_are_not_taken_for_equal() -> None:
    assert exec_of(owner((), ()), {(1008, 5008): 12}) is None


def test_a_process_whose_number_outside_is_not_known_is_passed_over() -> None:
    inside = Process(pid=None, inner_pid=9, start_time=1, image=FORK)
    found = Owner(inside, "/usr/bin/curl", (), (process(8, FORK),))
    assert exec_of(found, {(1008, 5008): 12}) == 12


def test_what_is_written_is_redacted_and_the_same_until_something_changes() -> None:
    current = [Owner(process(9, CURL), "/usr/bin/curl", (b"curl", b"--password", b"hunter2"), ())]
    names = CommandNames(lambda _ends: current[0], REDACTOR, names_all=False)
    first = names.name(ENDS)
    assert first is not None
    assert first["argv"] == ["curl", "--password", REDACTOR.mark("hunter2")]
    assert names.name(ENDS) is first
    current[0] = Owner(process(9, SHELL), "/bin/sh", (b"sh",), ())  # it called exec
    changed = names.name(ENDS)
    assert changed is not None
    assert (changed["program"], changed["argv"]) == ("/bin/sh", ["sh"])


class Clocks:
    """Wall and processor time that stand still unless told."""

    def __init__(self, cost_s: float) -> None:
        self.now = self.used = 0.0
        self.cost_s = cost_s
        self.asked = 0

    def find(self, _ends: Ends) -> Owner:
        self.asked += 1
        self.used += self.cost_s
        return owner(CURL)

    def names(self) -> CommandNames:
        return CommandNames(
            self.find, REDACTOR, names_all=False, clock=lambda: self.now, processor_clock=lambda: self.used
        )


def test_a_flood_is_looked_up_until_its_allowance_is_used_and_then_counted() -> None:
    clocks = Clocks(cost_s=0.01)
    names = clocks.names()
    answers = [names.name(ENDS) for _ in range(1000)]
    # 0.3 s at once, 10 ms each: 30; a 31st may begin on what rounding leaves.
    assert clocks.asked in (30, 31)
    assert [answer is not None for answer in answers] == [True] * clocks.asked + [False] * (
        1000 - clocks.asked
    )
    assert names.counts() == {"named": clocks.asked, "unknown": 0, "not_looked_up": 1000 - clocks.asked}
    clocks.now = 1.0  # a tenth of the second has come back: 10 more
    before = clocks.asked
    for _ in range(100):
        names.name(ENDS)
    assert clocks.asked - before in (9, 10, 11)


def test_an_allowance_does_not_grow_beyond_its_most() -> None:
    allowance = Allowance(0.1, 0.3, now=0.0)
    assert allowance.has_any(1000.0)
    allowance.spend(0.31)
    assert not allowance.has_any(1000.0)
    assert not allowance.has_any(1000.05)
    assert allowance.has_any(1000.2)


@pytest.mark.parametrize("ends", [None, ENDS])
def test_what_is_not_found_is_unknown(ends: Ends | None) -> None:
    names = CommandNames(lambda _ends: None, REDACTOR, names_all=False)
    assert names.name(ends) is None
    assert names.counts() == {"named": 0, "unknown": 1, "not_looked_up": 0}
