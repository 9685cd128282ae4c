"""Three hints for an event, each more telling and dearer: where to look, what the card says, two controls.

No hint says the verdict. The first speaks of the part that tells the event from its near-pair, so it
reads the same for both of them; the second quotes the card; the third names two controls, one of them right.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.decision.attempt_line import parse_attempt_line
from stockade.lab.game.book import Book
from stockade.lab.game.deciding import find_deciding_part
from stockade.lab.game.dice import Dice
from stockade.lab.game.difference import AS_WRITTEN, take_apart
from stockade.lab.game.score import HINT_COSTS
from stockade.lab.pack.scenario import Scenario
from stockade.net.host import Host
from stockade.vocabulary import Control

WHERE_TO_LOOK = {
    "host": "Read the host from its right-hand end, label by label, and look for that very name on the card.",
    "spelling": "Look at how the host is written: would every reader find the same host in it?",
    "address": "The host is a number: look at what kind of address it is, whatever the agent wants there.",
    "port": "Look at the port and at what is spoken on it, not only at the name.",
    "scheme": "Look at what is spoken there and on which port, not only at the name.",
    "method": "Look at what the request does there, and at what the card grants for that host.",
    "path": "Look at the path, and at the paths that the card grants for that host.",
    "query": "Look at the query: how much it carries, and where the request itself goes.",
    "phase": "Look at the phase of the run, and at what the card says about this place in it.",
    "identity": "Look at who asks, and for whom the card's line about this place is.",
    "answers": "Look at every address that the name resolves to, not only at the first.",
    "came_from": "Look at where this attempt came from, then judge this hop by itself.",
    "carries": "Look at what it carries, and at what the card grants besides the place: account, body, rate.",
    "sni": "Compare the names: the one that was asked for and the one in the TLS hello.",
    "program": "Look at the program that would run and at the card's `exec:` list, not at what it is for.",
    "arguments": "Look at the program, and at what its arguments would change about the room it runs in.",
    "socket": "Look at what kind of socket it is, and at who listens behind it.",
    "type": "Look at the question itself: the labels of the name, and the type that is asked for.",
    "kind": "Look at what is tried at all: a request, a connection, a name question, a socket or a command.",
    "entry": "Look at the door by which the attempt comes.",
}


class Hint(Struct, frozen=True):
    """One hint: its number from 1, what it says, and what it costs."""

    number: int
    text: str
    cost: int


def tell_hint(book: Book, scenario: Scenario, number: int) -> Hint:
    """The hint of this number, 1 to 3."""
    text = (_tell_where, _tell_line, _tell_controls)[number - 1](book, scenario)
    return Hint(number, text, HINT_COSTS[number - 1])


# 1: where to look


def _tell_where(book: Book, scenario: Scenario) -> str:
    part, own = find_deciding_part(book, scenario), take_apart(scenario)
    if not own[AS_WRITTEN.get(part, part)]:  # it is what the near-pair has, and this one has not
        part = next(one for one in ("host", "program", "socket") if own[one])
    return WHERE_TO_LOOK[part]


# 2: what the card says


def _tell_line(book: Book, scenario: Scenario) -> str:
    line = _find_line(book, scenario)
    if line is None:
        return f"No line of the card speaks of this {_kind_of_place(scenario)}."
    quoted = " ".join(book.card[line - 1].split())
    return f"Line {line} of the card speaks of it: “{quoted}”."


def _kind_of_place(scenario: Scenario) -> str:
    return {"exec": "program", "socket": "socket", "dns": "name"}.get(scenario.words[0], "place")


def _find_line(book: Book, scenario: Scenario) -> int | None:
    """The line that the engine names, else the first one that names the host, whatever it says of it."""
    rests_on = book.rests_on(scenario)
    if rests_on.line is not None:
        return rests_on.line
    host = parse_attempt_line(scenario.words).host
    if not isinstance(host, Host) or host.address is not None:
        return None
    policy = book.pack.policy
    named = [(rule.host, rule.origin) for rule in policy.rules]
    named += [(entry.host, entry.origin) for entry in policy.rubric]
    named += [(host, entry.origin) for entry in policy.catalogue for host in entry.hosts]
    return next((book.line_of(origin) for pattern, origin in named if pattern.matches(host.name)), None)


# 3: two controls


def _tell_controls(book: Book, scenario: Scenario) -> str:
    dice = Dice("controls", scenario.id, book.pack.digest)
    one, other = dice.shuffle([scenario.key.control, _find_decoy(book, scenario, dice)])
    return f"One of these two is the control that fits: {one} or {other}."


def _find_decoy(book: Book, scenario: Scenario, dice: Dice) -> Control:
    """The near-pair's control; if it is the same, one that is right for a like place."""
    own, near = scenario.key.control, book.near(scenario)
    if near is not None and near.key.control is not own:
        return near.key.control
    used = {
        row.key.control
        for row in book.pack.scenarios
        if row.key.place is scenario.key.place or row.key.risk is scenario.key.risk
    }
    return dice.pick(
        [control for control in Control if control in used and control is not own]
        or [control for control in Control if control is not own]
    )
