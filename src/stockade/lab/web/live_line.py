"""The line before the live bench: who waits, for what, and how many stand before.

A try takes a moment and a processor, and a class presses the button at the same time. So tries wait
in the order in which they came; each learner has one at a time; and the line has an end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from stockade.lab.web.answers import Refused

if TYPE_CHECKING:
    from stockade.lab.pack.scenario import Scenario

PLACES = 40
"""Learners in line. At half a second a try the last of them waits twenty seconds."""
WAIT_LIMIT_S = 90.0
"""For one's turn. Longer than the line should ever take, so that a bench that hangs is noticed."""


class _Place:
    """One learner's try, waiting or under way."""

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario
        self.done: asyncio.Task[Any]


class LiveLine:
    """One bench behind it. Belongs to one event loop.

    Args:
        attempt: Makes the try; called for one scenario after the other.
        wait_limit_s: For one's turn.
    """

    def __init__(
        self, attempt: Callable[[Scenario], Awaitable[Any]], wait_limit_s: float = WAIT_LIMIT_S
    ) -> None:
        self._attempt = attempt
        self._wait_limit_s = wait_limit_s
        self._turn = asyncio.Lock()  # wakes the waiting in the order in which they came
        self._places: dict[str, _Place] = {}  # by learner, in that order as well

    def before(self, learner: str) -> int | None:
        """How many tries come before this learner's; 0 while it runs, `None` without one in line."""
        if learner not in self._places:
            return None
        return list(self._places).index(learner)

    async def try_live(self, learner: str, scenario: Scenario) -> Any:
        """Wait for a turn and make the try. Asked again for the same scenario, both hear the one result.

        Raises:
            Refused: The learner has another try in line, or the line is full.
        """
        place = self._places.get(learner)
        if place is None:
            place = self._take_place(learner, scenario)
        elif place.scenario != scenario.id:
            raise Refused(409, "one-at-a-time", "another try of yours is under way", "wait for its result")
        # A page that goes away does not end the try: its reload would find the sandbox in pieces.
        return await asyncio.shield(place.done)

    def _take_place(self, learner: str, scenario: Scenario) -> _Place:
        if len(self._places) >= PLACES:
            message = f"{len(self._places)} tries wait already"
            raise Refused(503, "line-full", message, "try again in a few seconds")
        place = _Place(scenario.id)
        place.done = asyncio.get_running_loop().create_task(self._wait_and_try(learner, place, scenario))
        self._places[learner] = place
        return place

    async def _wait_and_try(self, learner: str, place: _Place, scenario: Scenario) -> Any:
        try:
            async with asyncio.timeout(self._wait_limit_s):
                await self._turn.acquire()
            try:
                return await self._attempt(scenario)
            finally:
                self._turn.release()
        except TimeoutError as error:
            raise Refused(503, "waited-too-long", "your turn did not come", "try again") from error
        finally:
            del self._places[learner]
