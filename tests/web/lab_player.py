"""Somebody who plays the lab in a browser and knows the bank by heart: from its file, not from our code."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stockade.lab

if TYPE_CHECKING:
    from playwright.sync_api import Page

BANK = Path(stockade.lab.__file__).parent / "bank" / "scenarios.csv"

# What the help of the page says; 1, 2 and 3 are the decisions.
DECISION_KEYS = {"allow": "1", "proxy": "2", "deny": "3"}
RISK_KEYS = {
    "benign": "b",
    "exfiltration": "e",
    "ssrf": "s",
    "eval-contamination": "v",
    "supply-chain": "u",
    "metadata-credentials": "m",
    "boundary-tampering": "t",
}
OTHER = {"allow": "deny", "proxy": "deny", "deny": "allow"}

Row = dict[str, str]


def until(page: Page, claim: str, arg: Any = None) -> None:
    """Wait until it is true; Playwright's own way needs `eval`, which the page's policy forbids."""
    end = time.monotonic() + 10
    while not page.evaluate(claim, arg):
        assert time.monotonic() < end, claim
        page.wait_for_timeout(20)


class Player:
    """One page of the lab, and the keys that its user presses."""

    def __init__(self, page: Page) -> None:
        self.page = page
        with BANK.open(newline="") as file:
            self._rows = list(csv.DictReader(file))

    def ask(self, path: str) -> Any:
        """What the API says to this browser."""
        return self.page.evaluate("(path) => fetch(path).then((answer) => answer.json())", path)

    @property
    def round_id(self) -> str:
        return self.page.url.partition("#/round/")[2].partition("/")[0]

    def round(self) -> Any:
        return self.ask(f"/api/rounds/{self.round_id}")

    def key(self) -> Row:
        """The bank's row of the event whose turn it is."""
        now = self.round()
        event = next(one for one in now["events"] if one["index"] == now["current"])
        same = ("attempt", "phase", "identity", "stated_reason")
        found = [
            row
            for row in self._rows
            if all(row[name] == event[name] for name in same) and row["answers"] == ";".join(event["answers"])
        ]
        assert len({(row["verdict"], row["risk"], row["control"]) for row in found}) == 1, event
        return found[0]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, selector: str) -> None:
        """Go there by Tab alone, and see where the focus is on the way."""
        for _ in range(120):
            if self.page.evaluate("(selector) => document.activeElement?.matches(selector)", selector):
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not lead to {selector}")

    def start(self, tier: int) -> None:
        """From the start page into a round, by keyboard."""
        self.tab_to("input[name=tier]")
        while int(self.page.evaluate("document.activeElement.value")) != tier:
            self.press("ArrowDown")
        self.tab_to("form button.primary")
        self.press("Enter")
        self.wait_for_event()

    def choose(self, decision: str, risk: str, control: str) -> None:
        """By the keys that stand beside the choices."""
        self.press(DECISION_KEYS[decision], RISK_KEYS[risk], "c")
        letter = self.page.locator(f"label.control:has(input[value={control}]) kbd").inner_text()
        self.press(letter)
        claim = "(control) => document.activeElement.value === control && document.activeElement.checked"
        until(self.page, claim, control)

    def answer(self, decision: str, risk: str, control: str) -> None:
        self.choose(decision, risk, control)
        self.press("Enter")
        self.wait_for_feedback()

    def answer_right(self) -> Row:
        row = self.key()
        self.answer(row["verdict"], row["risk"], row["control"])
        return row

    def answer_wrong(self) -> Row:
        """The decision is the other one; the rest is right."""
        row = self.key()
        self.answer(OTHER[row["verdict"]], row["risk"], row["control"])
        return row

    def next(self) -> None:
        self.press("n")
        self.page.wait_for_selector(".answer, .result")

    def wait_for_event(self) -> None:
        self.page.wait_for_selector(".answer")

    def wait_for_feedback(self) -> None:
        """It is there, and the focus is at its heading."""
        until(self.page, "document.activeElement.id === 'feedback-title'")

    def headline(self) -> str:
        return self.page.locator("#feedback-title").inner_text()
