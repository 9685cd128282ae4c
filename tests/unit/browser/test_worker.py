"""The worker's order of things: see, ask, note, do. The browser here is a double."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import pytest

from stockade.browser import worker as worker_module
from stockade.browser.actions import Action, Open, RunCommand, Scroll, Type
from stockade.browser.agents import Seen
from stockade.browser.chromium import Came
from stockade.browser.transcript import Album
from stockade.browser.worker import Worker


class Story:
    """What happened, in order; the doubles below write into it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.asked: list[dict[str, Any]] = []


class FakeChromium:
    def __init__(self, story: Story, _launcher: str, _flags: tuple[str, ...]) -> None:
        self._story = story
        self.address = ""
        self._shown = 0

    def perform(self, action: Action) -> Came:
        self._story.lines.append(f"do {type(action).__name__}")
        self._shown += 1
        self.address = action.url if isinstance(action, Open) else self.address
        return Came(words="done")

    def picture(self) -> bytes:
        return b"picture %d" % self._shown

    def title(self) -> str:
        return "Title"

    def text(self) -> str:
        return f"text {self._shown}"

    def close(self) -> None:
        self._story.lines.append("close")


class FakeHelper:
    run = "terminal"

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        return {"code": 0, "out": f"ran {question['line']}"}

    def close(self) -> None:
        pass


class FakePlace:
    browser_run = "run"

    def __init__(self, story: Story) -> None:
        self._story = story

    def browser_launcher(self) -> str:
        return "launcher"

    def start_helper(self, payload: str) -> FakeHelper:
        self._story.lines.append(f"start {payload}")
        return FakeHelper()

    def record(self, request: dict[str, Any]) -> int:
        self._story.lines.append(request["do"])
        self._story.asked.append(request)
        return len(self._story.asked)

    def end_browser(self) -> None:
        pass

    def close(self) -> None:
        pass


class Script:
    """An agent that does these in turn."""

    def __init__(self, *actions: Action) -> None:
        self._actions = list(actions)
        self.saw: list[Seen] = []

    def next_action(self, seen: Seen) -> Action | None:
        self.saw.append(seen)
        return self._actions.pop(0) if self._actions else None


def make(
    monkeypatch: pytest.MonkeyPatch,
    agent: Script,
    browser_kind: type[FakeChromium] = FakeChromium,
    **options: Any,
) -> tuple[Worker, Story]:
    story = Story()
    monkeypatch.setattr(worker_module, "Chromium", browser_kind)
    return Worker(story, FakePlace(story), agent, Album(None), **options), story  # type: ignore[arg-type]


def sha(picture: bytes) -> str:
    return hashlib.sha256(picture).hexdigest()


def test_a_step_is_recorded_before_it_is_done_with_the_picture_that_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Script(Scroll())
    worker, story = make(monkeypatch, agent)
    assert worker.work("prompt", "http://a.test/") == "done"
    assert story.lines == ["step", "do Open", "step-outcome", "step", "do Scroll", "step-outcome"]
    first, _, second, outcome = story.asked
    assert (first["screenshot"], first["address"], first["target"]) == (None, "", "http://a.test/")
    assert (second["screenshot"], second["address"]) == (sha(b"picture 1"), "http://a.test/")
    assert (outcome["of"], outcome["screenshot"]) == (3, sha(b"picture 2"))
    assert [sha(seen.screenshot or b"") for seen in agent.saw] == [sha(b"picture 1"), sha(b"picture 2")]


def test_an_agent_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, story = make(monkeypatch, Script(*[Scroll()] * 50), step_limit=4)
    assert worker.work("", "http://a.test/") == "step-limit"
    assert story.lines.count("step") == 4
    late, _ = make(monkeypatch, Script(*[Scroll()] * 50), time_limit_s=-1.0)
    assert late.work("", "http://a.test/") == "time-limit"


def test_a_command_goes_to_the_terminal_which_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, story = make(monkeypatch, Script(RunCommand("id"), RunCommand("ls")))
    worker.work("", "http://a.test/")
    assert [step.came for step in worker.steps] == ["done", "exit 0: ran id", "exit 0: ran ls"]
    assert story.lines.count("start terminal_payload") == 1
    assert story.lines.index("start terminal_payload") > story.lines.index("step")
    assert worker.transcript("", "x", "done").terminal_run == "terminal"


def test_a_browser_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Playwright waits without limit for some answers; ending the browser is what makes it return."""
    is_ended = threading.Event()

    class Silent(FakeChromium):
        def title(self) -> str:
            return "ended" if is_ended.wait(5) else "waited"

        def close(self) -> None:
            is_ended.clear()
            self._story.lines.append("ended" if is_ended.wait(5) else "waited")

    monkeypatch.setattr(worker_module, "STEP_TIME_LIMIT_S", 0.01)
    monkeypatch.setattr(worker_module, "END_TIME_LIMIT_S", 0.01)
    monkeypatch.setattr(FakePlace, "end_browser", lambda _self: is_ended.set())
    agent = Script(Scroll())
    worker, story = make(monkeypatch, agent, browser_kind=Silent)
    worker.work("", "http://a.test/")
    worker.close()
    assert [seen.title for seen in agent.saw] == ["ended", "ended"]
    assert story.lines[-1] == "ended"


def test_what_is_typed_stands_in_the_transcript_and_not_in_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, story = make(monkeypatch, Script(Type("Key", "top-secret")))
    worker.work("", "http://a.test/")
    assert "top-secret" not in str(story.asked)
    assert worker.transcript("", "x", "done").steps[1].action["text"] == "top-secret"
