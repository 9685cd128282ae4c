"""What a proxied request does, against one rule: method, path, upgrade, account and amounts.

Only requests that can be seen are judged here. The order of the steps is from the outside
in, and a rule that fails late was the closer one, so its fault is the one that is told.
"""

from __future__ import annotations

from stockade.decision.request import Attempt
from stockade.policy.match import permits_path
from stockade.policy.model import Rule
from stockade.vocabulary import Control, Reason

READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ORDINARY_QUERY_BYTES = 1024  # error texts and search terms fit; files do not

FAULT_CONTROL: dict[Reason, Control] = {
    Reason.PATH_NOT_PERMITTED: Control.OPERATION_SCOPE,
    Reason.METHOD_NOT_PERMITTED: Control.OPERATION_SCOPE,
    Reason.UPGRADE_NOT_PERMITTED: Control.OPERATION_SCOPE,
    Reason.FOREIGN_CREDENTIAL: Control.CREDENTIAL_BROKER,
    Reason.QUERY_TOO_LONG: Control.SIZE_RATE_QUOTA,
    Reason.BODY_TOO_LARGE: Control.SIZE_RATE_QUOTA,
    Reason.INSPECTION_NOT_AVAILABLE: Control.OPERATION_SCOPE,
}
_CLOSENESS = {fault: place for place, fault in enumerate(FAULT_CONTROL)}


def find_fault(rule: Rule, attempt: Attempt) -> Reason | None:
    """The first thing about a request that a proxy rule does not permit, or None."""
    if not permits_path(rule.paths, attempt.path or "/"):
        return Reason.PATH_NOT_PERMITTED
    if rule.methods and attempt.method not in rule.methods:
        return Reason.METHOD_NOT_PERMITTED
    if attempt.upgrade is not None and rule.has_conditions:
        # After an upgrade nothing can be read any more, so a rule that limits what is
        # said cannot hold.
        return Reason.UPGRADE_NOT_PERMITTED
    if rule.credential is not None and attempt.credential_headers:
        return Reason.FOREIGN_CREDENTIAL
    if rule.max_query_bytes is not None and attempt.query_bytes > rule.max_query_bytes:
        return Reason.QUERY_TOO_LONG
    if rule.max_body_bytes is not None and (attempt.body_bytes or 0) > rule.max_body_bytes:
        return Reason.BODY_TOO_LARGE
    return None


def closest_fault(rules: tuple[Rule, ...], attempt: Attempt) -> tuple[Rule, Reason]:
    """The fault of the rule that came closest to permitting a request; all of them have one."""
    faults = [(rule, find_fault(rule, attempt) or Reason.METHOD_NOT_PERMITTED) for rule in rules]
    return max(faults, key=lambda fault: _CLOSENESS[fault[1]])


def carries_data(attempt: Attempt) -> bool:
    """True if a request visibly takes something out: a body, a writing method, an overlong query."""
    if attempt.has_body or attempt.query_bytes > ORDINARY_QUERY_BYTES:
        return True
    return attempt.method is not None and attempt.method not in READING_METHODS


def is_plain_read(attempt: Attempt) -> bool:
    """True if a request can be seen, and takes nothing out."""
    return attempt.method is not None and not carries_data(attempt)
