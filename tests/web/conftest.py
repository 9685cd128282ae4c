"""The lab in a real browser: one server and one Chromium a module, and pages without a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from lab_player import Player
from lab_server import LabServer, lab_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with lab_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=["--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def noted() -> list[str]:
    """What the console said: faults, and refusals by the content policy."""
    return []


@pytest.fixture
def open_lab(chromium: Browser, lab: LabServer, noted: list[str]) -> Iterator[Callable[..., Page]]:
    """Open the lab in a browser of its own, signed in, as a learner of its own if one is named.

    Nothing may have been noted at the end; a test that wants a refusal clears `noted` itself.
    """
    contexts = []

    def open_lab(learner: str | None = None, **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noted.append(message.text))
        page.on("pageerror", lambda error: noted.append(str(error)))
        page.on("dialog", lambda dialog: (noted.append(dialog.message), dialog.dismiss()))
        page.goto(lab.address)
        page.wait_for_selector("h1")
        if learner is not None:
            enter(page, learner)
        return page

    yield open_lab
    for context in contexts:
        context.close()
    assert noted == []


def enter(page: Page, name: str) -> None:
    """Play as somebody else."""
    page.evaluate(
        "(name) => fetch('/api/learners', {method: 'POST', body: JSON.stringify({name}),"
        " headers: {'Content-Type': 'application/json'}})",
        name,
    )
    page.reload()
    page.wait_for_selector("h1")


@pytest.fixture
def player(open_lab: Callable[..., Page], request: pytest.FixtureRequest) -> Player:
    """A learner who has done nothing yet."""
    return Player(open_lab(request.node.name[:40]))
