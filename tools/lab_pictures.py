"""Play the lab in a real browser, and leave the pictures that docs/lab.md shows.

Usage: .venv/bin/python tools/lab_pictures.py

It starts `stockade lab` on a data folder of its own, plays one seeded round by keyboard, with some calls
right and some wrong, and writes docs/pictures/lab-*.png. Run it again when the pages have changed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "web"))

from lab_player import Player  # noqa: E402  # the same keys that the tests press

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

PICTURES = ROOT / "docs" / "pictures"
LARGEST_BYTES = 200_000
SEED = "pictures"
WINDOW = (1180, 760)

POLICY = """version: 1

rules:
  - allow: docs.python.org
    class: docs
  - proxy: docs.framework.test
    class: docs
    methods: [GET, HEAD]
  - allow: "*.host.test"
    class: code-host
  - allow: datasets.hub.example

rubric: [rubrics.bench.test]

unknown: deny
"""


@contextmanager
def served() -> Iterator[str]:
    """The lab, and the address that lets a browser in."""
    with tempfile.TemporaryDirectory() as data:
        command = [str(ROOT / ".venv" / "bin" / "stockade"), "lab", "--no-open", "--data", data]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()


def keep(shown: Page | Locator, name: str) -> None:
    """The window as it is, or a part of it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"lab-{name}.png"
    time.sleep(0.2)
    shown.screenshot(path=path)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size // 1000} KB")
    assert size < LARGEST_BYTES, f"{path} is too large for a page"


def open_lab(browser: Browser, address: str, scheme: str, window: tuple[int, int]) -> Page:
    width, height = window
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("h1")
    return page


def start_round(page: Page, tier: int) -> None:
    page.get_by_text("Play the same round as others").click()
    page.get_by_label("Seed").fill(SEED)
    page.get_by_label(f"Tier {tier}").check()
    page.get_by_role("button", name="Play a round").click()
    page.wait_for_selector(".answer")


def run_it(player: Player) -> None:
    """Until the sandbox is ready."""
    for _ in range(60):
        player.press("r")
        player.page.wait_for_timeout(500)
        if player.page.locator(".three").count():
            return
    raise SystemExit("`run it` is not available here: the pictures would not show it")


def play(page: Page) -> None:
    """A round of tier 2, from the start page to the debrief."""
    keep(page, "start")
    start_round(page, 2)
    player = Player(page)
    player.press("h")
    page.wait_for_selector(".hints li")
    row = player.key()
    player.choose(row["verdict"], row["risk"], row["control"])
    page.evaluate("scrollTo(0, 0)")
    keep(page, "round")
    player.press("Enter")
    player.wait_for_feedback()
    has_run = False
    for number in range(8):
        player.next()
        row = player.answer_wrong() if number in (2, 5) else player.answer_right()
        if row["live"] == "yes" and not has_run:
            has_run = True
            run_it(player)
            page.locator("#feedback-title").evaluate("(one) => one.scrollIntoView()")
            keep(page, "answer")
            page.locator(".live").evaluate("(one) => one.scrollIntoView({block: 'end'})")
            keep(page, "run-it")
    keep(page.locator(".drawn"), "map")
    page.get_by_role("button", name="Show as table").click()
    keep(page.locator(".drawn"), "table")
    player.next()
    page.wait_for_selector(".result")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur()")
    keep(page, "debrief")


def answer_by_policy(page: Page) -> None:
    page.evaluate("location.hash = '#/policy'")
    page.wait_for_selector("#policy-text")
    page.locator("#policy-text").fill(POLICY)
    page.wait_for_selector(".findings li")
    page.get_by_role("button", name="Replay the bank").click()
    page.wait_for_selector(".numbers-of")
    page.locator(".replay").evaluate("(one) => scrollBy(0, one.getBoundingClientRect().top - 420)")
    page.get_by_text("Draft saved").wait_for()
    keep(page, "policy")


def play_narrow_and_dark(browser: Browser, address: str) -> None:
    page = open_lab(browser, address, "dark", (320, 720))
    start_round(page, 3)
    page.evaluate("scrollTo(0, 150)")
    keep(page, "narrow")
    page.context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=["--disable-gpu"]
        )
        page = open_lab(browser, address, "light", WINDOW)
        play(page)
        answer_by_policy(page)
        play_narrow_and_dark(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
