"""How a decision is called: risk and control. Verdicts are decided elsewhere.

The rules behind these tables stand in docs/concepts/decisions.md and at the top of the event bank's
policy; `tests/cases` holds every row of the bank against them.
"""

from __future__ import annotations

from stockade.decision.catalogue import CLASS_CONTROL, CLASS_RISK
from stockade.decision.operation import carries_data, is_plain_read
from stockade.decision.request import Attempt
from stockade.decision.standing import Standing
from stockade.net.address import AddressClass, AddressFacts
from stockade.net.host import Host
from stockade.vocabulary import Control, Phase, PlaceClass, Protocol, Reason, Risk

ORDINARY_QUESTIONS = frozenset({"A", "AAAA", "HTTPS", "SVCB"})
ORDINARY_LABEL = 30  # characters; what is longer can carry data and is rarely written by a person

_WRONG_WAY = frozenset({Reason.WRONG_PORT, Reason.WRONG_PROTOCOL})
_TAKES_OUT = frozenset(
    {Reason.FOREIGN_CREDENTIAL, Reason.QUERY_TOO_LONG, Reason.BODY_TOO_LARGE, Reason.FORBIDDEN_CONTENT}
)

CLOSED_CONTROL: dict[Reason, Control] = {
    Reason.RUBRIC_IN_SCORING: Control.PHASE_POLICY,
    Reason.WRONG_PHASE: Control.PHASE_POLICY,
    Reason.OTHER_IDENTITY: Control.SEPARATE_IDENTITY,
    Reason.WRONG_PORT: Control.SCHEME_AND_PORT_SCOPE,
    Reason.WRONG_PROTOCOL: Control.SCHEME_AND_PORT_SCOPE,
    Reason.LOOKALIKE: Control.ALLOWLIST_EXACT,
    Reason.LISTED_DENY: Control.ALLOWLIST_EXACT,
    Reason.METADATA_NAME: Control.DENY_LINK_LOCAL_METADATA,
}

# What the gateway itself found wrong with a connection, after or beside the rules.
REFUSAL_CONTROL: dict[Reason, Control] = {
    Reason.FOREIGN_CREDENTIAL: Control.CREDENTIAL_BROKER,
    Reason.FORBIDDEN_CONTENT: Control.OPERATION_SCOPE,
    Reason.INSPECTION_NOT_AVAILABLE: Control.OPERATION_SCOPE,
    Reason.UPGRADE_NOT_PERMITTED: Control.OPERATION_SCOPE,
    Reason.MALFORMED_REQUEST: Control.OPERATION_SCOPE,
    Reason.BODY_TOO_LARGE: Control.SIZE_RATE_QUOTA,
    Reason.QUERY_TOO_LONG: Control.SIZE_RATE_QUOTA,
    Reason.HEAD_TOO_LARGE: Control.SIZE_RATE_QUOTA,
    Reason.FIRST_BYTE_TIMEOUT: Control.SIZE_RATE_QUOTA,
    Reason.TOO_MANY_CONNECTIONS: Control.SIZE_RATE_QUOTA,
    Reason.TOO_MANY_NAMES: Control.SIZE_RATE_QUOTA,
    Reason.UPLOAD_LIMIT: Control.SIZE_RATE_QUOTA,
    Reason.MALFORMED_HOST: Control.CANONICALISE_HOST,
    Reason.NAME_MISMATCH: Control.NAME_CONSISTENCY,
    Reason.SNI_MISSING: Control.NAME_CONSISTENCY,
    Reason.MALFORMED_TLS: Control.NAME_CONSISTENCY,
    Reason.NOT_THE_PROTOCOL: Control.SCHEME_AND_PORT_SCOPE,
    Reason.PROTOCOL_NOT_CARRIED: Control.SCHEME_AND_PORT_SCOPE,
    Reason.MALFORMED_QUESTION: Control.OWN_RESOLVER_ONLY,
    Reason.QUERY_TYPE_REFUSED: Control.OWN_RESOLVER_ONLY,
    Reason.RESOLUTION_FAILED: Control.CHECK_RESOLVED_ADDRESS,
    Reason.ADDRESS_NOT_JUDGED: Control.CHECK_RESOLVED_ADDRESS,
    Reason.SOCKET_FAMILY_REFUSED: Control.NAMESPACE_ISOLATION,
    Reason.CONTROL_SOCKET: Control.NO_CONTROL_SOCKETS,
    Reason.PROGRAM_NOT_LISTED: Control.EXEC_DENY,
    Reason.SANDBOX_SWITCHED_OFF: Control.NAMESPACE_ISOLATION,
    Reason.SYSTEM_CALL_REFUSED: Control.NAMESPACE_ISOLATION,
    Reason.CODE_IN_MEMORY: Control.EXEC_DENY,
}

# Refused because something could not be read: then nobody knows what it carried.
UNREADABLE = frozenset(
    {
        Reason.NAME_MISMATCH,
        Reason.SNI_MISSING,
        Reason.MALFORMED_TLS,
        Reason.MALFORMED_REQUEST,
        Reason.MALFORMED_QUESTION,
        Reason.NOT_THE_PROTOCOL,
        Reason.UPLOAD_LIMIT,
    }
)

ADDRESS_REASON: dict[AddressClass, Reason] = {
    AddressClass.PUBLIC: Reason.LITERAL_ADDRESS,
    AddressClass.RESERVED: Reason.RESERVED_ADDRESS,
    AddressClass.MULTICAST: Reason.RESERVED_ADDRESS,
    AddressClass.UNSPECIFIED: Reason.RESERVED_ADDRESS,
    AddressClass.SHARED: Reason.PRIVATE_ADDRESS,
    AddressClass.PRIVATE: Reason.PRIVATE_ADDRESS,
    AddressClass.LOOPBACK: Reason.LOOPBACK_ADDRESS,
    AddressClass.LINK_LOCAL: Reason.LINK_LOCAL_ADDRESS,
    AddressClass.METADATA: Reason.METADATA_ADDRESS,
}


def risk_of_unlisted(attempt: Attempt, standing: Standing, phase: Phase) -> Risk:
    """The risk of a place that no rule lists."""
    entry = standing.entry
    if entry is not None and entry.risk is not None:
        return entry.risk
    if standing.place is PlaceClass.RUBRIC and phase is Phase.SCORING:
        return Risk.EVAL_CONTAMINATION
    known = CLASS_RISK.get(standing.place)
    return known or risk_of_stranger(attempt)


def risk_of_stranger(attempt: Attempt) -> Risk:
    """The risk of a place that nobody knows: what the attempt shows, and else the worst of it."""
    if attempt.protocol is Protocol.DNS:
        return _risk_of_question(attempt)
    if attempt.protocol is Protocol.HTTP and is_plain_read(attempt):
        return Risk.BENIGN
    return Risk.EXFILTRATION


def _risk_of_question(attempt: Attempt) -> Risk:
    if (attempt.query_type or "A") not in ORDINARY_QUESTIONS:
        return Risk.EXFILTRATION
    host = attempt.host
    name = host.name if isinstance(host, Host) else host.raw if host else ""
    longest = max(map(len, name.split(".")))
    return Risk.EXFILTRATION if longest > ORDINARY_LABEL else Risk.BENIGN


def risk_of_listed(attempt: Attempt, standing: Standing, reason: Reason) -> Risk:
    """The risk of a refusal at a place that a rule lists."""
    if reason is Reason.RUBRIC_IN_SCORING:
        return Risk.EVAL_CONTAMINATION
    if reason in _WRONG_WAY:
        return Risk.BENIGN
    if standing.place is PlaceClass.MIRROR:
        return Risk.SUPPLY_CHAIN
    if standing.place is PlaceClass.RUBRIC:
        return Risk.EVAL_CONTAMINATION
    for rule in standing.rules:
        if rule.risk is not None:
            return rule.risk
    if attempt.protocol is Protocol.DNS:
        return _risk_of_question(attempt)
    return Risk.EXFILTRATION if reason in _TAKES_OUT or carries_data(attempt) else Risk.BENIGN


def control_of_unlisted(standing: Standing) -> Control:
    """The control of a place that no rule lists: the catalogue's, a lookalike's, or default-deny."""
    if standing.entry is not None and standing.entry.control is not None:
        return standing.entry.control
    if standing.reason in CLOSED_CONTROL:
        return CLOSED_CONTROL[standing.reason]
    return CLASS_CONTROL.get(standing.place, Control.DEFAULT_DENY)


def place_of_address(facts: AddressFacts) -> PlaceClass:
    if facts.row.risk is Risk.METADATA_CREDENTIALS:
        return PlaceClass.METADATA
    return PlaceClass.UNKNOWN if facts.row.risk is None else PlaceClass.INTERNAL


def control_of_address(facts: AddressFacts) -> Control:
    if facts.address_class in (AddressClass.METADATA, AddressClass.LINK_LOCAL):
        return Control.DENY_LINK_LOCAL_METADATA
    return Control.DEFAULT_DENY if facts.row.risk is None else Control.DENY_INTERNAL_RANGES
