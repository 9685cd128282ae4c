"""The one plain sentence of each decision, and the line that would allow what was denied.

Every line offered is valid policy syntax (a test loads them). These sentences are for
the operator: they name rules and files. The worker sees the reason's own sentence in
`vocabulary.REASONS`, never these.
"""

from __future__ import annotations

import json
import re

from stockade.decision.request import Attempt
from stockade.net.address import AddressFacts, IPAddress
from stockade.net.host import HostRefusal, escape_text
from stockade.policy.model import Rule
from stockade.vocabulary import REASONS, Identity, Phase, Protocol, Reason

# Words that YAML reads as strings without quotes whatever stands around them.
_PLAIN = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)*\.[a-z][a-z0-9-]*")
_DEFAULT_PROTOCOL = {443: Protocol.TLS, 80: Protocol.HTTP}


def quote(name: str) -> str:
    """A name as it can stand in a policy."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def allow_line(name: str, port: int, protocol: Protocol, identity: Identity = Identity.AGENT) -> str:
    """The rule that lists a name as it was asked for."""
    keys = [f"allow: {quote(name)}"]
    if port != 443 or protocol is not Protocol.TLS:
        keys.append(f"ports: [{port}]")
    if _DEFAULT_PROTOCOL.get(port) is not protocol:
        keys.append(f"protocol: {protocol}")
    if identity is not Identity.AGENT:
        keys.append(f"identities: [{identity}]")
    return f"- {keys[0]}" if len(keys) == 1 else f"- {{{', '.join(keys)}}}"


def internal_line(name: str, address: IPAddress, port: int) -> str:
    """The `internal:` entry that opens one private address for one name."""
    return f"- {{host: {quote(name)}, networks: [{json.dumps(f'{address}/{address.max_prefixlen}')}], ports: [{port}]}}"


def _offer(attempt: Attempt, name: str, identity: Identity) -> str:
    """How to list a name, or why that is not possible."""
    if attempt.protocol is Protocol.UDP:
        return "UDP is not carried, so no rule can allow it"
    if attempt.protocol is Protocol.DNS:
        return f"to allow it, add `{allow_line(name, 443, Protocol.TLS, identity)}` under `rules:`"
    return f"to allow it, add `{allow_line(name, attempt.port, attempt.protocol, identity)}` under `rules:`"


def explain_pass(attempt: Attempt, name: str, rule: Rule) -> str:
    named = f" ({rule.why})" if rule.why else ""
    how = "permits" if not attempt.method or rule.paths == () else "permits this operation on"
    return f"{rule.origin} {how} {_place(attempt, name)}{named}."


def explain_approved(attempt: Attempt, name: str, by: str) -> str:
    return f"{by} allowed {_place(attempt, name)} when asked; no rule lists it."


def explain_unlisted(attempt: Attempt, name: str, identity: Identity, what: str | None) -> str:
    known = f" The catalogue knows it as: {what}." if what else ""
    return f"No rule lists {_place(attempt, name)};{known and ''} {_offer(attempt, name, identity)}.{known}"


def explain_held(attempt: Attempt, name: str, identity: Identity, hold_s: float) -> str:
    return f"No rule lists {_place(attempt, name)}; a person is asked for {hold_s:g} s; {_offer(attempt, name, identity)}."


def explain_lookalike(attempt: Attempt, name: str, imitated: str, identity: Identity) -> str:
    return f"{name} imitates {imitated}, which is listed, and is not it; if it is meant, {_offer(attempt, name, identity)}."


def explain_listed_deny(name: str, rule: Rule) -> str:
    named = f" ({rule.why})" if rule.why else ""
    return f"{rule.origin} denies {rule.host.text}{named}; a denial wins over every other rule, so only removing it opens {name}."


def explain_closed_tunnel(name: str, origin: str) -> str:
    return (
        f"{origin} closes some paths of {name}, and in a tunnel no path can be seen, so all of it is closed; "
        f"a `proxy` rule for {name} closes those paths alone."
    )


def explain_rubric(name: str, origin: str) -> str:
    return f"{origin} closes {name} to the agent while scoring; no rule can open it in this phase."


def explain_wrong_way(attempt: Attempt, name: str, rule: Rule, identity: Identity) -> str:
    ports = ", ".join(map(str, rule.ports))
    return f"{rule.origin} permits {rule.host.text} on port {ports} with {rule.protocol} only; {_offer(attempt, name, identity)}."


def explain_wrong_phase(name: str, rule: Rule, phase: Phase) -> str:
    phases = " and ".join(rule.phases) or "no phase"
    return f"{rule.origin} permits {name} in {phases}, not in {phase}; to allow it, add `{phase}` to its `phases:`."


def explain_other_identity(name: str, rule: Rule, identity: Identity) -> str:
    others = " and ".join(rule.identities)
    return (
        f"{rule.origin} permits {name} to the {others} only; "
        f"to allow it to the {identity}, give it a rule of its own with `identities: [{identity}]`."
    )


def explain_operation(attempt: Attempt, name: str, rule: Rule, fault: Reason) -> str:
    return f"{rule.origin}: {_FAULTS[fault](attempt, name, rule)}."


def _path_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    return f"this path of {name} is not among its `paths:`; to allow it, add it there"


def _method_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    method = escape_text(attempt.method or "", 20)
    return f"only {', '.join(rule.methods)} may be used on {name}; to allow {method}, add it to `methods:`"


def _upgrade_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    return f"{name} is open for single requests, and an upgrade ends their record; an `allow` rule would carry it"


def _credential_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    headers = ", ".join(attempt.credential_headers[:3])
    return f"the gateway puts the credential for {name} in, and the request brings its own ({escape_text(headers, 80)})"


def _query_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    return f"the query has {attempt.query_bytes} bytes and `max-query` permits {rule.max_query_bytes}"


def _body_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    return f"the body has {attempt.body_bytes} bytes and `max-body` permits {rule.max_body_bytes}"


def _inspection_fault(attempt: Attempt, name: str, rule: Rule) -> str:
    return f"its conditions for {name} need TLS to be opened, which this version cannot do; `allow: {quote(name)}` would tunnel"


_FAULTS = {
    Reason.PATH_NOT_PERMITTED: _path_fault,
    Reason.METHOD_NOT_PERMITTED: _method_fault,
    Reason.UPGRADE_NOT_PERMITTED: _upgrade_fault,
    Reason.FOREIGN_CREDENTIAL: _credential_fault,
    Reason.QUERY_TOO_LONG: _query_fault,
    Reason.BODY_TOO_LARGE: _body_fault,
    Reason.INSPECTION_NOT_AVAILABLE: _inspection_fault,
}


def explain_metadata_name(name: str) -> str:
    return f"{name} is a name of a cloud metadata service, which hands out credentials; no rule can open it."


def explain_literal(address: IPAddress, facts: AddressFacts, reason: Reason) -> str:
    what = _describe(address, facts)
    if reason is Reason.LITERAL_ADDRESS:
        return f"{address} is an address ({facts.row.note}), and only names can be permitted; use a name that a rule lists."
    if facts.is_openable and reason is not Reason.OWN_ADDRESS:
        return f"{what}; give it a name, a rule and an `internal:` entry to reach it."
    return f"{what}; no rule can open it."


def explain_own_address(address: IPAddress) -> str:
    return f"{address} is an address of the gateway itself; no rule can open it."


def explain_answer(attempt: Attempt, name: str, address: IPAddress, facts: AddressFacts) -> str:
    said = f"{name} is permitted, but resolves to {address}: {_describe(address, facts)}"
    if facts.is_openable:
        return f"{said}; to allow it, add `{internal_line(name, address, attempt.port)}` under `internal:`."
    return f"{said}; no rule can open it."


def explain_denied_answer(name: str, address: IPAddress, rule: Rule) -> str:
    return f"{name} is permitted, but resolves to {address}, which {rule.origin} denies."


def _describe(address: IPAddress, facts: AddressFacts) -> str:
    inside = f"{address} carries an address in" if facts.carried else f"{address} lies in"
    return f"{inside} {facts.row.network} ({facts.row.address_class}: {facts.row.note})"


def explain_spelling(refusal: HostRefusal) -> str:
    guess = f"; a browser would read {refusal.guess}" if refusal.guess is not None else ""
    return f'The host "{refusal.raw}" is refused: {refusal.problem}{guess}; write the host in its plain form.'


def explain_mismatch(host: str, other: str, where: str) -> str:
    return f"The connection is for {host} and its {where} says {other}; all names of one connection must agree."


def explain_question_type(name: str, query_type: str) -> str:
    return f"The gateway answers A, AAAA, HTTPS and SVCB questions; {escape_text(query_type, 20)} for {name} is not answered."


def explain_program(program: str, origin: str) -> str:
    return f"{origin} lists {escape_text(program, 80)}."


def explain_unlisted_program(program: str, *, leaves: bool) -> str:
    shown = json.dumps(escape_text(program, 80))
    head = "An option of the command leaves the sandbox, and " if leaves else ""
    return f"{head}{shown} is not among the permitted programs; to allow the program, add `exec: {{allow: [{shown}]}}`."


def explain_socket(text: str, reason: Reason) -> str:
    return f"{escape_text(text, 80)}: {REASONS[reason]}; no rule can open it."


def explain_reason(reason: Reason) -> str:
    sentence = REASONS[reason]
    return f"{sentence[0].upper()}{sentence[1:]}."


def _place(attempt: Attempt, name: str) -> str:
    if attempt.protocol is Protocol.DNS:
        return f"the name {name}"
    return f"{name} on port {attempt.port} ({attempt.protocol})"
