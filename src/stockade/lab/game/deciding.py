"""Which parts of an event decide, as the engine has it: it is asked what each part alone would change."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from msgspec import Struct

from stockade.decision.request import Decision
from stockade.errors import UserError
from stockade.lab.game.book import Book
from stockade.lab.game.difference import AS_WRITTEN, find_differences
from stockade.lab.game.swap import swap
from stockade.lab.pack.scenario import Scenario
from stockade.vocabulary import Control, Reason

_PART_OF_REASON = {
    Reason.RUBRIC_IN_SCORING: "phase",
    Reason.WRONG_PHASE: "phase",
    Reason.OTHER_IDENTITY: "identity",
    Reason.WRONG_PORT: "port",
    Reason.WRONG_PROTOCOL: "scheme",
    Reason.METHOD_NOT_PERMITTED: "method",
    Reason.PATH_NOT_PERMITTED: "path",
    Reason.QUERY_TOO_LONG: "query",
    Reason.UPGRADE_NOT_PERMITTED: "scheme",
    Reason.MALFORMED_HOST: "spelling",
    Reason.NAME_MISMATCH: "sni",
    Reason.QUERY_TYPE_REFUSED: "type",
    Reason.SOCKET_FAMILY_REFUSED: "socket",
    Reason.CONTROL_SOCKET: "socket",
    Reason.PROGRAM_NOT_LISTED: "program",
    Reason.PROGRAM_LISTED: "program",
    Reason.SANDBOX_SWITCHED_OFF: "arguments",
}
_ADDRESS_REASONS = frozenset(
    {
        Reason.METADATA_ADDRESS,
        Reason.LINK_LOCAL_ADDRESS,
        Reason.PRIVATE_ADDRESS,
        Reason.LOOPBACK_ADDRESS,
        Reason.RESERVED_ADDRESS,
        Reason.OWN_ADDRESS,
        Reason.LITERAL_ADDRESS,
    }
)
_WAY = ("scheme", "port", "method", "path", "query")  # by what way a host is reached
_LET_THROUGH = frozenset({Reason.RULE_ALLOWS, Reason.RULE_PROXIES})


class Deciding(Struct, frozen=True):
    """What makes one of a pair into what the other is.

    Attributes:
        call: The part that decides the call, or those that only together do. Where the call is the same, what
            turns risk and control. Empty where the lines do not show what decides.
        control: A part that decides the control and not the call, if there is one.
    """

    call: tuple[str, ...] = ()
    control: str | None = None


def find_deciding_part(book: Book, scenario: Scenario) -> str:
    """Where to look: what the engine's reason speaks of, if that is a part that decides."""
    near = book.near(scenario)
    rows = [scenario] if near is None else [scenario, near]
    denied = next((row for row in rows if not row.is_legitimate), scenario)
    own = find_own_part(book, denied)
    deciding = find_deciding(book, scenario)
    if own is not None:
        as_written = AS_WRITTEN.get(own, own)
        if deciding.call in ((), ("kind",)) or as_written in (*deciding.call, deciding.control):
            return own if denied is scenario else as_written
    return deciding.call[0] if deciding.call else "host"


@lru_cache(maxsize=1024)
def find_deciding(book: Book, scenario: Scenario) -> Deciding:
    """The part that turns the call when it is swapped alone, by the engine.

    Put into the stricter of the two, one part of the other turns the call; where no part does so alone, the
    fewest do so together. A host takes along by what way it is reached, since that is its rule's, if it is
    enough by itself to turn the milder one.
    """
    near = book.near(scenario)
    if near is None or near.key == scenario.key:
        return Deciding()
    parts = [one.part for one in find_differences(scenario, near)]
    if not (scenario.is_seen_by_the_line and near.is_seen_by_the_line):
        return Deciding(("carries",) if "carries" in parts else ())
    strict, mild = sorted((scenario, near), key=lambda row: (row.key.verdict, row.id))
    own = find_own_part(book, strict)
    own = AS_WRITTEN.get(own, own) if own else None
    parts = sorted((part for part in parts if part != "carries"), key=lambda part: part != own)
    call = _find_fewest(book, strict, mild, parts)
    if own is None or own in call or own not in parts:
        return Deciding(call)
    changed = _decide_swapped(book, strict, mild, (own,))
    return Deciding(call, own if changed and changed.control is not strict.key.control else None)


def _find_fewest(book: Book, strict: Scenario, mild: Scenario, parts: list[str]) -> tuple[str, ...]:
    for part in parts:
        if does_turn(book, strict, mild, (part,)):
            return (part,)
    way = ("host", *(part for part in _WAY if part in parts))
    if "host" in parts and does_turn(book, strict, mild, way) and does_turn(book, mild, strict, ("host",)):
        return ("host",)
    for count in range(2, len(parts) + 1):
        for chosen in combinations(parts, count):
            if does_turn(book, strict, mild, chosen):
                return chosen
    return ()


def does_turn(book: Book, row: Scenario, other: Scenario, parts: tuple[str, ...]) -> bool:
    """With these parts of the other, the row is called as the other is."""
    decision = _decide_swapped(book, row, other, parts)
    if decision is None:
        return False
    if row.key.verdict is not other.key.verdict:
        return decision.verdict is other.key.verdict
    called = (decision.verdict, decision.risk, decision.control)
    return called == (other.key.verdict, other.key.risk, other.key.control)


def _decide_swapped(book: Book, row: Scenario, other: Scenario, parts: tuple[str, ...]) -> Decision | None:
    try:
        return book.caller.decide(swap(row, other, parts))
    except UserError:  # it is no attempt any more
        return None


def find_own_part(book: Book, scenario: Scenario) -> str | None:
    """The part of the line that the engine's reason speaks of; None if it simply was let through."""
    decision = book.decide(scenario)
    if scenario.key.control is Control.RECHECK_REDIRECTS:
        return "came_from"
    if decision.reason in _ADDRESS_REASONS:
        return "answers" if scenario.answers else "address"
    if decision.reason in _LET_THROUGH:
        return None
    if scenario.words[0] == "dns" and scenario.key.control is Control.OWN_RESOLVER_ONLY:
        return "type"
    return _PART_OF_REASON.get(decision.reason, "host")
