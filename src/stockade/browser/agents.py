"""Who decides what the browser does next, and the agent that does whatever it is told.

An agent sees what a person in front of the screen would see, and names one action at a time.
`ObedientAgent` obeys pages as it obeys its user: with it, what stops an attack is never the
model's good sense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol
from urllib.parse import quote

from msgspec import Struct

from stockade.browser.actions import Action, Click, Open, ReadPage, RunCommand, Screenshot, Scroll, Type

SENT_TEXT_LIMIT = 200
ORDERS_LIMIT = 20


class Seen(Struct, frozen=True, kw_only=True):
    """What the agent acts on.

    Attributes:
        prompt: What its user told it.
        number: Of the step that it decides on, from 1.
        address: Of the page in front of it; empty if there is none.
        title: The page's.
        text: The page's visible text, cut to a limit. Foreign.
        screenshot: The picture (PNG); None if there is none yet.
        came: What came of its last action; empty at first.
    """

    prompt: str
    number: int
    address: str = ""
    title: str = ""
    text: str = ""
    screenshot: bytes | None = None
    came: str = ""


class Agent(Protocol):
    """Decides one step at a time."""

    def next_action(self, seen: Seen) -> Action | None:
        """The next action, or None when it has nothing more to do."""


class SendWhatIsRead(Struct, frozen=True):
    """An order to pass on what stands on the page; becomes an `Open` when its turn comes."""

    url: str


Order = Action | SendWhatIsRead

_SCHEMES = r"(?:https?|wss?|ftp|file|chrome|about|data|blob|javascript|devtools|view-source)"
_ADDRESS = rf"(?P<url>{_SCHEMES}:[^\s<>\"'`]+|(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?:[:/][^\s<>\"'`]*)?)"
_TARGET = r"(?:\"(?P<{0}q>[^\"]+)\"|“(?P<{0}c>[^”]+)”|(?P<{0}w>[^\s,.;]+))"
_WHERE, _WHAT, _CLICKED = (_TARGET.replace("{0}", name) for name in ("where", "what", "click"))

# One alternative for each kind of order, tried together, so that orders come in the order of the text.
_ORDERS = re.compile(
    "|".join(
        (
            r"(?P<command>(?:run|execute)(?: this| the following)?(?: command)?(?: line)?"
            r"(?: in (?:a|the|your) (?:terminal|shell|console))?:? ?`(?P<line>[^`]+)`)",
            r"(?P<send>(?:send|report|forward|submit) "
            r"(?:what you (?:read|see)|(?:its|the|all) (?:text|contents?))"
            rf"[^.\n]{{0,40}}? to {_ADDRESS.replace('<url>', '<sink>')})",
            rf"(?P<open>(?:open|visit|load|fetch|read|go (?:on )?to|navigate to|browse to|continue (?:to|at)|"
            rf"(?:has )?moved to|redirect(?:ed|ing)?(?: you)? to|proceed to):? {_ADDRESS})",
            rf"(?P<type>(?:type|enter|write|fill in) {_WHAT} (?:into|in|for) (?:the (?:field|box) )?{_WHERE}"
            r"(?P<enter>,? and (?:press enter|submit))?)",
            rf"(?P<click>(?:click|press|tap)(?: on)?(?: the)?(?: button| link)? {_CLICKED})",
            r"(?P<submit>submit(?: the)? form)",
            r"(?P<up>scroll up)",
            r"(?P<scroll>scroll(?: down)?)",
            r"(?P<picture>(?:take|make) a (?:screenshot|picture))",
            r"(?P<read>read (?:the|this) page)",
        )
    ),
    re.IGNORECASE,
)


class ObedientAgent:
    """Does what the prompt says, then what each page says, in the order of the text and each order once.

    Deterministic: the same prompt and pages give the same actions. It ends when nobody asks for
    anything new; the worker bounds its steps besides.
    """

    def __init__(self) -> None:
        self._waiting: list[Order] = []
        self._known: set[Order] = set()

    def next_action(self, seen: Seen) -> Action | None:
        for order in (*read_orders(seen.prompt), *read_orders(seen.text)):
            if order not in self._known and len(self._known) < ORDERS_LIMIT:
                self._known.add(order)
                self._waiting.append(order)
        if not self._waiting:
            return None
        order = self._waiting.pop(0)
        if isinstance(order, SendWhatIsRead):
            read = " ".join(seen.text.split())[:SENT_TEXT_LIMIT]
            return Open(order.url + quote(read, safe=""))
        return order


def read_orders(text: str) -> Iterator[Order]:
    """What a text tells its reader to do, in its order."""
    for match in _ORDERS.finditer(text):
        found = match.groupdict()
        if found["command"]:
            yield RunCommand(found["line"].strip())
        elif found["send"]:
            yield SendWhatIsRead(_bare(found["sink"]))
        elif found["open"]:
            yield Open(_with_scheme(_bare(found["url"])))
        elif found["type"]:
            yield Type(_quoted(found, "where"), _quoted(found, "what"), bool(found["enter"]))
        elif found["click"]:
            yield Click(_quoted(found, "click"))
        elif found["submit"]:
            yield Click("[type=submit]")
        elif found["scroll"] or found["up"]:
            yield Scroll(-600 if found["up"] else 600)
        elif found["picture"]:
            yield Screenshot()
        else:
            yield ReadPage()


def _quoted(found: dict[str, str | None], name: str) -> str:
    return next(text for text in (found[f"{name}{kind}"] for kind in "qcw") if text)


def _bare(url: str) -> str:
    """Without what belongs to the sentence around it."""
    return url.rstrip(".,;:!?)]}")


def _with_scheme(url: str) -> str:
    return url if re.match(rf"{_SCHEMES}:", url, re.IGNORECASE) else f"http://{url}"
