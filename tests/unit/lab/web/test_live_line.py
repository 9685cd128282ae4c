"""The line before the bench: order, one at a time, an end. The bench is a fake that works when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stockade.lab.pack.pack import shipped_bank
from stockade.lab.pack.scenario import Scenario
from stockade.lab.web.answers import Refused
from stockade.lab.web.live_line import PLACES, LiveLine

BANK = shipped_bank().scenarios


class Bench:
    """Finishes a try when it is told to, and notes what it was given."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.may_go = asyncio.Semaphore(0)
        self.fails = False

    async def attempt(self, scenario: Scenario) -> str:
        self.tried.append(scenario.id)
        await self.may_go.acquire()
        if self.fails:
            raise RuntimeError("the bench broke")
        return f"result of {scenario.id}"


def run(test: Callable[[Bench, LiveLine], Awaitable[None]], wait_limit_s: float = 90) -> None:
    async def whole() -> None:
        bench = Bench()
        await asyncio.wait_for(test(bench, LiveLine(bench.attempt, wait_limit_s)), 5)

    asyncio.run(whole())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def start(line: LiveLine, learner: str, scenario: Scenario) -> asyncio.Task[Any]:
    return asyncio.create_task(line.try_live(learner, scenario))


def test_tries_are_made_one_after_the_other_in_the_order_in_which_they_came() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        tries = [start(line, name, BANK[index]) for index, name in enumerate("abcd")]
        await settle()
        assert [line.before(name) for name in "abcd"] == [0, 1, 2, 3]
        assert bench.tried == [BANK[0].id]
        bench.may_go.release()
        assert await tries[0] == f"result of {BANK[0].id}"
        await settle()
        assert [line.before(name) for name in "abcd"] == [None, 0, 1, 2]
        for _ in range(3):
            bench.may_go.release()
        await asyncio.gather(*tries)
        assert bench.tried == [one.id for one in BANK[:4]]

    run(test)


def test_a_learner_has_one_try_at_a_time_and_may_then_have_the_next() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        first = start(line, "a", BANK[0])
        await settle()
        with pytest.raises(Refused) as refused:
            await line.try_live("a", BANK[1])
        assert (refused.value.status, refused.value.code) == (409, "one-at-a-time")
        bench.may_go.release()
        await first
        bench.may_go.release()
        await line.try_live("a", BANK[1])
        assert bench.tried == [BANK[0].id, BANK[1].id]

    run(test)


def test_two_tabs_that_ask_for_the_same_hear_one_result_of_one_try() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        both = [start(line, "a", BANK[0]), start(line, "a", BANK[0])]
        await settle()
        bench.may_go.release()
        assert len(set(await asyncio.gather(*both))) == 1
        assert bench.tried == [BANK[0].id]

    run(test)


def test_a_page_that_goes_away_does_not_end_the_try() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        gone = start(line, "a", BANK[0])
        await settle()
        gone.cancel()
        await settle()
        again = start(line, "a", BANK[0])
        await settle()
        bench.may_go.release()
        assert await again == f"result of {BANK[0].id}"
        assert bench.tried == [BANK[0].id]

    run(test)


def test_the_line_has_an_end_and_says_so() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        tries = [start(line, f"learner {number}", BANK[0]) for number in range(PLACES)]
        await settle()
        with pytest.raises(Refused) as refused:
            await line.try_live("one more", BANK[0])
        assert (refused.value.status, refused.value.code) == (503, "line-full")
        for _ in range(PLACES + 1):
            bench.may_go.release()
        await asyncio.gather(*tries)
        await line.try_live("one more", BANK[0])

    run(test)


def test_a_try_that_fails_does_not_hold_up_the_next() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        bench.fails = True
        bench.may_go.release()
        with pytest.raises(RuntimeError):
            await line.try_live("a", BANK[0])
        bench.fails = False
        bench.may_go.release()
        assert await line.try_live("b", BANK[0]) == f"result of {BANK[0].id}"
        assert line.before("a") is None

    run(test)


def test_whose_turn_does_not_come_hears_so_and_leaves_the_line() -> None:
    async def test(bench: Bench, line: LiveLine) -> None:
        first = start(line, "a", BANK[0])
        await settle()
        with pytest.raises(Refused) as refused:
            await line.try_live("b", BANK[1])
        assert (refused.value.status, refused.value.code) == (503, "waited-too-long")
        assert line.before("b") is None
        bench.may_go.release()
        assert await first == f"result of {BANK[0].id}"

    run(test, wait_limit_s=0.01)
