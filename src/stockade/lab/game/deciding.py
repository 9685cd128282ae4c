"""Which part of an event's line decides, as the engine's reason has it."""

from __future__ import annotations

from stockade.lab.game.book import Book
from stockade.lab.game.difference import AS_WRITTEN, find_differences
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
_LET_THROUGH = frozenset({Reason.RULE_ALLOWS, Reason.RULE_PROXIES})


def find_deciding_part(book: Book, scenario: Scenario) -> str:
    """The part that tells the event from the one that looks like it, else the one that decides by itself.

    The reason of the denied one of the two says which part that is; where they differ in one part only,
    it is that one.
    """
    near = book.near(scenario)
    differences = [one.part for one in find_differences(scenario, near)] if near else []
    denied = next((row for row in (scenario, near) if row and not row.is_legitimate), scenario)
    part = find_own_part(book, denied)
    if part is not None:
        as_written = AS_WRITTEN.get(part, part)
        if len(differences) != 1 or as_written in differences:
            return part if denied is scenario else as_written
    return differences[0] if differences else "host"


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
