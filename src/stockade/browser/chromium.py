"""Chromium, driven by Playwright over its debugging pipe: what each action does, and what can be seen.

Nothing listens on a port. The browser runs with `--no-sandbox`: browser and page are one trust
zone, and the room is around both. Importing Playwright takes a sixth of a second, so only the
functions that need it do.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from stockade.browser.actions import Action, Click, Open, ReadPage, Screenshot, Scroll, Type
from stockade.errors import HostError

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Playwright, ViewportSize

TEXT_LIMIT = 20_000
PICTURE_LIMIT_BYTES = 16 << 20  # of 1000 by 700 points, raw, it is 3 MB; more is no picture of this page
PATIENCE_MS = 4_000
LOOK_MS = 1_000
LOAD_MS = 2_000  # a page that never ends loading is looked at as it is
SETTLE_MS = 150
SIZE: ViewportSize = {"width": 1000, "height": 700}
# What Chromium calls home by itself, whatever the page: refused by the browser's own resolver rules, so that
# a run's record holds what pages and the agent tried. The room refuses them as well.
CALLS_HOME = (
    *("update.googleapis.com", "clients2.google.com", "accounts.google.com", "clients.l.google.com"),
    *("optimizationguide-pa.googleapis.com", "safebrowsingohttpgateway.googleapis.com", "www.googleapis.com"),
    *(
        "content-autofill.googleapis.com",
        "redirector.gvt1.com",
        "edgedl.me.gvt1.com",
        "android.clients.google.com",
    ),
)
FLAGS = (
    "--disable-gpu",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--no-pings",
    "--host-resolver-rules=" + ", ".join(f"MAP {name} ^NOTFOUND" for name in CALLS_HOME),
)
ONE_ZONE = "Chromium runs with --no-sandbox: browser and page are one trust zone, and the room is around both"
_NET_ERROR = re.compile(r"\b(?:net::)?(ERR_[A-Z0-9_]+)")


class Came(Struct, frozen=True, kw_only=True):
    """What came of an action: words, Chromium's error name if there is one, the status of a page."""

    words: str
    error: str = ""
    status: int | None = None


@contextlib.contextmanager
def open_playwright() -> Iterator[Playwright]:
    """Playwright's driver, a process of its own; it may serve many sessions.

    Raises:
        HostError: Playwright is not installed, or its driver does not start.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise HostError(
            "no-playwright",
            "Playwright is not installed, and it drives the browser",
            "pip install 'stockade[browser]' (or tools/setup in a clone); it needs no browsers of its own",
        ) from error
    with ExitStack() as stack:
        # The driver prints what it cannot read, and that came from the browser: nothing for a terminal.
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            playwright = stack.enter_context(sync_playwright())
        yield playwright


def whole_text(text: str) -> str:
    """Text of a page with its lone surrogates replaced: JavaScript has them, UTF-8 and so records do not."""
    return text.encode("utf-8", "replace").decode()


class Chromium:
    """One browser with one page in front.

    Args:
        launcher: The program to start instead of the browser's own (`places.Place.browser_launcher`).
        flags: Further flags of Chromium.

    Raises:
        HostError: It did not start; what it said is in the message.
    """

    def __init__(self, playwright: Playwright, launcher: str, flags: tuple[str, ...] = ()) -> None:
        from playwright.sync_api import Error

        # In the room the folder of this name is another one, in its private /tmp, and Chromium makes it.
        self._profile = tempfile.TemporaryDirectory(
            prefix="browser-profile-", dir="/tmp", ignore_cleanup_errors=True
        )
        try:
            # Not a context of its own: such a one is "incognito", and leaves out some of what a page can do.
            self._context = playwright.chromium.launch_persistent_context(
                self._profile.name,
                executable_path=launcher,
                args=[*FLAGS, *flags],
                chromium_sandbox=False,
                timeout=20_000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                viewport=SIZE,
                accept_downloads=False,
            )
            self._context.set_default_timeout(PATIENCE_MS)
            self._front = self._context.pages[0]
            self._context.on("page", self._came_to_front)
        except Error as error:
            said = [line for line in str(error).splitlines() if "stockade:" in line or "ERROR" in line]
            detail = said[0].strip() if said else str(error).splitlines()[0]
            self._profile.cleanup()
            raise HostError(
                "browser-did-not-start",
                f"Chromium did not start: {detail}",
                "does the policy have `include: [exec/browser]`, and does `stockade doctor` find no fault?",
            ) from error

    def _came_to_front(self, page: Page) -> None:
        """A page opened another one: that is what a person would now see."""
        page.set_default_timeout(PATIENCE_MS)
        self._front = page

    @property
    def _page(self) -> Page:
        """The page in front; the last one that is open, if it has closed itself."""
        if self._front.is_closed() and (pages := self._context.pages):
            self._front = pages[-1]
        return self._front

    # --- seeing -----------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return "" if self._page.url == "about:blank" else whole_text(self._page.url)

    def title(self) -> str:
        return self._quietly(partial(self._evaluate, "html => document.title"))

    def text(self) -> str:
        """The visible text of the page and of its frames."""
        found = [
            self._quietly(partial(frame.inner_text, "body", timeout=LOOK_MS))
            for frame in self._page.frames[:8]
        ]
        return "\n".join(text for text in found if text)[:TEXT_LIMIT]

    def picture(self) -> bytes | None:
        """What is on the screen, as PNG; None if Chromium gives none."""
        from playwright.sync_api import Error

        try:
            picture = self._page.screenshot(timeout=PATIENCE_MS, animations="disabled")
        except Error:
            return None
        return picture if len(picture) <= PICTURE_LIMIT_BYTES else None

    def _quietly(self, look: Callable[[], object]) -> str:
        from playwright.sync_api import Error

        try:
            return whole_text(str(look()))
        except Error:
            return ""

    # --- acting -----------------------------------------------------------------------------

    def perform(self, action: Action) -> Came:
        """Do it and let the page come to rest; a failure is an answer, not an end."""
        from playwright.sync_api import Error

        try:
            came = self._perform(action)
        except Error as error:
            first = str(error).splitlines()[0]
            name = _NET_ERROR.search(first)
            came = Came(words=whole_text(first[:300]), error=name[1] if name else "failed")
        self.settle()
        return came

    def _perform(self, action: Action) -> Came:
        match action:
            case Open(url):
                answer = self._page.goto(url, wait_until="commit", timeout=PATIENCE_MS)
                status = None if answer is None else answer.status
                return Came(words="opened" if status is None else f"answered {status}", status=status)
            case Click(target):
                self._find(target).click(timeout=PATIENCE_MS)
                return Came(words="clicked")
            case Type(target, text, submit):
                field = self._find_field(target)
                field.fill(text, timeout=PATIENCE_MS)
                if submit:
                    field.press("Enter")
                return Came(words="typed")
            case Scroll(pixels):
                self._evaluate("(html, pixels) => scrollBy(0, pixels)", pixels)
                return Came(words="scrolled")
            case Screenshot() | ReadPage():
                return Came(words="looked")
        return Came(words="not done by the browser", error="failed")

    def _evaluate(self, script: str, argument: object = None) -> object:
        """Run a line in the page, with a limit: a page that is busy for good must not stop us."""
        return self._page.locator("html").first.evaluate(script, argument, timeout=LOOK_MS)

    def _find(self, target: str) -> Locator:
        by_text = self._page.get_by_text(target).or_(self._page.get_by_role("button", name=target))
        return self._by_selector_or(target, by_text)

    def _find_field(self, target: str) -> Locator:
        page = self._page
        named = page.get_by_label(target).or_(page.get_by_placeholder(target))
        return self._by_selector_or(target, named.or_(page.locator(f'[name="{_attribute(target)}"]')))

    def _by_selector_or(self, target: str, other: Locator) -> Locator:
        return (self._page.locator(target) if target[:1] in "#.[" else other).first

    def settle(self) -> None:
        """Let what the action began get going: a redirect, a script, a frame."""
        from playwright.sync_api import Error

        with contextlib.suppress(Error):
            self._page.wait_for_timeout(SETTLE_MS)
            self._page.wait_for_load_state("load", timeout=LOAD_MS)

    def wait(self, seconds: float) -> None:
        """Leave the page alone for a while; its scripts go on."""
        from playwright.sync_api import Error

        try:
            self._page.wait_for_timeout(seconds * 1000)
        except Error:
            time.sleep(seconds)

    def close(self) -> None:
        from playwright.sync_api import Error

        with contextlib.suppress(Error):
            self._context.close()
        self._profile.cleanup()


def _attribute(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
