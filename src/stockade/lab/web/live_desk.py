"""The live bench as the server has it: started when somebody looks, asked in order, ended with us.

The pages are there long before the bench is, which builds a range and warm sandboxes and takes seconds.
So it starts in the background, at the first look at the page and not before: a server that nobody uses
costs nothing. What it cannot do on this host it says, and play goes on without.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from stockade.lab.live.client import LiveBench
from stockade.lab.pack.scenario import Live
from stockade.lab.web.live_line import LiveLine

if TYPE_CHECKING:
    from stockade.lab.live.result import LiveResult
    from stockade.lab.pack.pack import Pack
    from stockade.lab.pack.scenario import Scenario


class LiveDesk:
    """One bench, and the line before it."""

    def __init__(self, pack: Pack) -> None:
        self._bench = LiveBench(pack)
        self._is_awake = False

    @cached_property
    def line(self) -> LiveLine:
        """Who waits for it; of the event loop that asks first."""
        return LiveLine(self._attempt)

    @cached_property
    def _thread(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(1)

    def state(self) -> dict[str, str]:
        """For the page: `starting`, `ready` or `unavailable`, and why."""
        return {"state": str(self._bench.state), "why": self._bench.why}

    def wake(self) -> None:
        """Start the bench, if nobody has; returns at once. Called in the event loop alone."""
        if not self._is_awake:
            self._is_awake = True
            self._bench.start()

    async def try_live(self, learner: str, scenario: Scenario) -> LiveResult:
        """Try it when the learner's turn has come; what cannot be tried does not wait for one.

        Raises:
            Refused: The learner has another try in line, or the line is full.
        """
        if scenario.live is not Live.YES:
            return self._bench.try_scenario(scenario)
        result: LiveResult = await self.line.try_live(learner, scenario)
        return result

    async def _attempt(self, scenario: Scenario) -> LiveResult:
        self.wake()
        return await anyio.to_thread.run_sync(
            lambda: self._bench.try_scenario(scenario), limiter=self._thread
        )

    def close(self) -> None:
        """End the bench and what runs in it."""
        self._bench.close()
