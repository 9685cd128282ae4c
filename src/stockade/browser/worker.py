"""The computer-use worker: sees, asks its agent, notes the step, does it, notes what came of it.

A step is durable in the run's ledger before it is done, with the digest of the picture that the
agent acted on, so nobody can say afterwards that it had seen something else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from stockade.browser.actions import Action, Open, RunCommand, describe_step
from stockade.browser.agents import Agent, Seen
from stockade.browser.chromium import ONE_ZONE, Came, Chromium, whole_text
from stockade.browser.places import Helper, Place
from stockade.browser.transcript import Album, TakenStep, Transcript

if TYPE_CHECKING:
    from playwright.sync_api import Playwright

STEP_LIMIT = 12
TIME_LIMIT_S = 300.0
STEP_TIME_LIMIT_S = (
    40.0  # four questions with limits of 1 to 4 seconds each, several times over, or a command
)
END_TIME_LIMIT_S = 8.0
COMMAND_OUTPUT_SHOWN = 300


class Sight(Struct, frozen=True):
    """What is on the screen at one moment."""

    address: str = ""
    title: str = ""
    text: str = ""
    picture: bytes | None = None
    digest: str | None = None


class Worker:
    """One browser, one agent, one session.

    Args:
        place: Where the processes run.
        album: Where pictures go.
        step_limit: An agent that is not done by then is stopped.

    Raises:
        HostError: The browser does not start.
    """

    def __init__(
        self,
        playwright: Playwright,
        place: Place,
        agent: Agent,
        album: Album,
        *,
        step_limit: int = STEP_LIMIT,
        time_limit_s: float = TIME_LIMIT_S,
        flags: tuple[str, ...] = (),
        on_step: Callable[[TakenStep], None] = lambda _step: None,
    ) -> None:
        self._place = place
        self._agent = agent
        self._album = album
        self._step_limit = step_limit
        self._time_limit_s = time_limit_s
        self._on_step = on_step
        self._terminal: Helper | None = None
        self.steps: list[TakenStep] = []
        self.browser = Chromium(playwright, place.browser_launcher(), flags)
        self._sight = Sight()

    def work(self, prompt: str, url: str) -> str:
        """Open `url`, then do what the agent says until it is done; returns why it ended."""
        deadline = time.monotonic() + self._time_limit_s
        self.take(Open(url))
        while len(self.steps) < self._step_limit:
            if time.monotonic() > deadline:
                return "time-limit"
            sight, number = self._sight, len(self.steps) + 1
            action = self._agent.next_action(
                Seen(
                    prompt=prompt,
                    number=number,
                    address=sight.address,
                    title=sight.title,
                    text=sight.text,
                    screenshot=sight.picture,
                    came=self.steps[-1].came,
                )
            )
            if action is None:
                return "done"
            self.take(action)
        return "step-limit"

    def take(self, action: Action) -> TakenStep:
        """One step, on record before it is done."""
        before, number = self._sight, len(self.steps) + 1
        record = self._note(number, action)
        with self._no_longer_than(STEP_TIME_LIMIT_S):
            came = self._do(action)
            after = self._sight = self._look()
        step = TakenStep(
            number=number,
            action=msgspec.to_builtins(action),
            address=before.address,
            screenshot=before.digest,
            came=came.words,
            error=came.error,
            status=came.status,
            address_after=after.address,
            screenshot_after=after.digest,
            record=record,
        )
        self.steps.append(step)
        if record is not None:
            outcome: dict[str, Any] = {"do": "step-outcome", "of": record, "came": came.words}
            self._place.record(outcome | {"address": after.address, "screenshot": after.digest})
        self._on_step(step)
        return step

    @contextmanager
    def _no_longer_than(self, limit_s: float) -> Iterator[None]:
        """End a browser that does not answer any more: not every question to it has a limit of its own."""
        overdue = threading.Timer(limit_s, self._place.end_browser)
        overdue.start()
        try:
            yield
        finally:
            overdue.cancel()

    def _note(self, number: int, action: Action) -> int | None:
        """Put on record what is about to be done; returns when that is durable."""
        seen = {"address": self._sight.address, "screenshot": self._sight.digest}
        return self._place.record({"do": "step", "number": number, **seen, **describe_step(action)})

    def _do(self, action: Action) -> Came:
        return (
            self._run_command(action.line) if isinstance(action, RunCommand) else self.browser.perform(action)
        )

    def _look(self) -> Sight:
        picture = self.browser.picture()
        digest = None if picture is None else self._album.add(picture)
        return Sight(self.browser.address, self.browser.title(), self.browser.text(), picture, digest)

    def _run_command(self, line: str) -> Came:
        """In the agent's terminal, which is opened when first needed: a contained run of its own."""
        if self._terminal is None:
            self._terminal = self._place.start_helper("terminal_payload")
        answer = self._terminal.ask({"line": line})
        if "error" in answer:
            words = whole_text(f"refused: {answer.get('detail', '')}")
            error = whole_text(str(answer["error"]))
            return Came(words=words[:COMMAND_OUTPUT_SHOWN], error=error[:COMMAND_OUTPUT_SHOWN])
        said = f"exit {answer.get('code')}: {answer.get('out')}"
        return Came(words=whole_text(said)[:COMMAND_OUTPUT_SHOWN].strip())

    @property
    def terminal_run(self) -> str:
        return "" if self._terminal is None else self._terminal.run

    def transcript(self, prompt: str, agent: str, ended: str) -> Transcript:
        return Transcript(
            prompt=prompt,
            agent=agent,
            run=self._place.browser_run,
            terminal_run=self.terminal_run,
            steps=tuple(self.steps),
            pictures=dict(self._album.names),
            ended=ended,
            notes=(ONE_ZONE,),
        )

    def close(self) -> None:
        """End browser and terminal; their runs close their records."""
        with self._no_longer_than(END_TIME_LIMIT_S):
            self.browser.close()
        if self._terminal is not None:
            self._terminal.close()
