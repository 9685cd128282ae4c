"""The one plain sentence of each decision, and the line that would allow what was denied.

Every line offered is valid policy syntax (a test loads them). These sentences are for
the operator: they name rules and files. The worker sees the reason's own sentence in
`vocabulary.REASONS`, never these.
"""

from __future__ import annotations

import re

from stockade.decision.commands import ProgramList
from stockade.decision.request import Attempt
from stockade.decision.script import is_env, parse_script_text
from stockade.net.address import AddressFacts, IPAddress
from stockade.net.host import HostRefusal, escape_text
from stockade.policy.model import Rule
from stockade.policy.programs import is_in_program_folder, is_loader, is_pattern, parse_program
from stockade.vocabulary import REASONS, Identity, Phase, PlaceClass, Protocol, Reason

# Names that YAML reads as strings without quotes; a last label of letters rules out numbers.
_PLAIN = re.compile(r"(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,}")
_PLAIN_PROGRAM = re.compile(r"(?:\./|~/|/)?[A-Za-z_][\w.+/-]*", re.ASCII)
_NOT_PLAIN = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_DEFAULT_PROTOCOL = {443: Protocol.TLS, 80: Protocol.HTTP}


def quote(name: str) -> str:
    """A name as it can stand in a policy."""
    return name if _PLAIN.fullmatch(name) else _quote_text(name)


def _quote_text(text: str) -> str:
    import json  # only denials quote, and most runs start without one

    return json.dumps(text)


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
    network = _quote_text(f"{address}/{address.max_prefixlen}")
    return f"- {{host: {quote(name)}, networks: [{network}], ports: [{port}]}}"


def _offer(attempt: Attempt, name: str, identity: Identity) -> str:
    """How to list a name, or why that is not possible."""
    if attempt.protocol is Protocol.UDP:
        return "UDP is not carried, so no rule can allow it"
    port, protocol = attempt.port, attempt.protocol
    if protocol is Protocol.DNS:
        port, protocol = 443, Protocol.TLS
    return f"to allow it, add `{allow_line(name, port, protocol, identity)}` under `rules:`"


def _place(attempt: Attempt, name: str) -> str:
    if attempt.protocol is Protocol.DNS:
        return f"the name {name}"
    return f"{name} on port {attempt.port} ({attempt.protocol})"


# --- let through --------------------------------------------------------------------------


def explain_pass(attempt: Attempt, name: str, rule: Rule) -> str:
    said = f" ({rule.why})" if rule.why else ""
    return f"{rule.origin} permits {_place(attempt, name)}{said}."


def explain_approved(attempt: Attempt, name: str, by: str) -> str:
    return f"{escape_text(by, 80)} allowed {_place(attempt, name)} when asked; no rule lists it."


# --- nobody listed it ---------------------------------------------------------------------


def explain_unlisted(attempt: Attempt, name: str, identity: Identity, place: PlaceClass) -> str:
    known = "" if place is PlaceClass.UNKNOWN else f", known as a place of class {place}"
    return f"No rule lists {_place(attempt, name)}{known}; {_offer(attempt, name, identity)}."


def explain_held(attempt: Attempt, name: str, identity: Identity, hold_s: float) -> str:
    asked = f"a person is asked and has {hold_s:g} s"
    return f"No rule lists {_place(attempt, name)}, so {asked}; {_offer(attempt, name, identity)}."


def explain_lookalike(attempt: Attempt, name: str, imitated: str, identity: Identity) -> str:
    if imitated == f"*.{name}":
        said = f"{imitated} is listed, which is every name below {name} and not {name} itself"
    else:
        said = f"{name} imitates the listed {imitated} and is another place"
    return f"{said}; {_offer(attempt, name, identity)}."


# --- listed and closed --------------------------------------------------------------------


def explain_listed_deny(name: str, rule: Rule) -> str:
    said = f" ({rule.why})" if rule.why else ""
    return (
        f"{rule.origin} denies {rule.host.text}{said}, and a denial wins over every other rule; "
        f"{name} can be allowed only by removing or narrowing it."
    )


def explain_closed_tunnel(name: str, origin: str) -> str:
    return (
        f"{origin} closes some paths of {name}; in a tunnel no path can be seen, so all of it is closed. "
        f"A `proxy` rule for {name} would close those paths alone."
    )


def explain_rubric(name: str, origin: str) -> str:
    return f"{origin} closes {name} to the agent while scoring; no rule can open it in this phase."


def explain_wrong_way(attempt: Attempt, name: str, rule: Rule, identity: Identity) -> str:
    ports = ", ".join(map(str, rule.ports))
    only = f"{rule.origin} permits {rule.host.text} on port {ports} ({rule.protocol}) only"
    return f"{only}; {_offer(attempt, name, identity)}."


def explain_wrong_phase(name: str, rule: Rule, phase: Phase) -> str:
    phases = " and ".join(rule.phases) or "no phase"
    only = f"{rule.origin} permits {name} in {phases} only"
    return f"{only}; to allow it in {phase}, add `{phase}` to its `phases:`."


def explain_other_identity(name: str, rule: Rule, identity: Identity) -> str:
    others = " and ".join(rule.identities)
    return (
        f"{rule.origin} permits {name} to the {others} only; "
        f"to allow it to the {identity}, add a rule of its own with `identities: [{identity}]`."
    )


# --- operations ---------------------------------------------------------------------------


def explain_operation(attempt: Attempt, name: str, rule: Rule, fault: Reason) -> str:
    """Say which condition of a rule an operation did not meet, and what would."""
    return f"{rule.origin} permits {name}, but {_explain_fault(attempt, rule, fault)}."


def _explain_fault(attempt: Attempt, rule: Rule, fault: Reason) -> str:
    match fault:
        case Reason.PATH_NOT_PERMITTED:
            return "not this path; to allow it, add it to `paths:`"
        case Reason.METHOD_NOT_PERMITTED:
            method = escape_text(attempt.method or "", 20)
            return f"only with {', '.join(rule.methods)}; to allow {method}, add it to `methods:`"
        case Reason.UPGRADE_NOT_PERMITTED:
            return "for single requests, whose record an upgrade would end; an `allow` rule would carry it"
        case Reason.FOREIGN_CREDENTIAL:
            brought = escape_text(", ".join(attempt.credential_headers[:3]), 80)
            return f"with the gateway's credential, and the request brings its own ({brought}); leave it out"
        case Reason.QUERY_TOO_LONG:
            return f"`max-query` is {rule.max_query_bytes} bytes, and the query has {attempt.query_bytes}"
        case Reason.BODY_TOO_LARGE:
            return f"`max-body` is {rule.max_body_bytes} bytes, and the body has {attempt.body_bytes}"
        case _:
            return "its conditions need TLS to be opened, which this version cannot do"


# --- addresses ----------------------------------------------------------------------------


def explain_metadata_name(name: str) -> str:
    return f"{name} names a cloud metadata service, which hands out credentials; no rule can open it."


def explain_own_address(address: IPAddress) -> str:
    return f"{address} is an address of the gateway itself; no rule can open it."


def explain_literal(address: IPAddress, facts: AddressFacts) -> str:
    if facts.row.risk is None:
        return f"{address} is an address, and only names can be permitted; use a name that a rule lists."
    if facts.is_openable:
        return f"{address} {_lies(facts)}; to reach it, give it a name, a rule and an `internal:` entry."
    return f"{address} {_lies(facts)}; no rule can open it."


def explain_answer(attempt: Attempt, name: str, address: IPAddress, facts: AddressFacts) -> str:
    said = f"{name} is permitted, but resolves to {address}, which {_lies(facts)}"
    if facts.is_openable:
        return f"{said}; to allow it, add `{internal_line(name, address, attempt.port)}` under `internal:`."
    return f"{said}; no rule can open it."


def explain_denied_answer(name: str, address: IPAddress, rule: Rule) -> str:
    return f"{name} is permitted, but resolves to {address}, which {rule.origin} denies."


def _lies(facts: AddressFacts) -> str:
    network, note = facts.row.network, facts.row.note
    if network.num_addresses == 1:  # "1.2.3.4 lies in 1.2.3.4/32" says nothing
        return f"carries {network.network_address} ({note})" if facts.carried else f"is special ({note})"
    return f"{'carries an address of' if facts.carried else 'lies in'} {network} ({note})"


# --- spelling, names, questions -----------------------------------------------------------


def explain_spelling(refusal: HostRefusal) -> str:
    guess = "" if refusal.guess is None else f", and a browser would read it as {refusal.guess}"
    _, user_part, host = refusal.raw.rpartition("@")  # what stands before an @ can be a password
    shown = f"…@{host}" if user_part else host
    return f'The host "{shown}" has {refusal.problem}{guess}; write the host in its plain form.'


def explain_mismatch(host: str, other: str, where: str) -> str:
    return f"The connection is for {host}, and its {where} says {other}; both must name the same host."


def explain_question_type(name: str, query_type: str) -> str:
    asked = escape_text(query_type, 20)
    return f"Only A, AAAA, HTTPS and SVCB questions are answered, and this one for {name} is {asked}."


# --- programs, sockets and system calls ----------------------------------------------------


def explain_program(program: str, entry: str, origin: str) -> str:
    covered = "" if entry == program else f", which covers {escape_text(program, 80)}"
    return f"{origin} lists {escape_text(entry, 80)}{covered}."


def explain_any_program(origin: str) -> str:
    return f"{origin} says `mode: any`: every program may run."


def explain_permitted_file(program: str, reason: str) -> str:
    return f"This run permits {escape_text(program, 80)} ({escape_text(reason, 160)})."


def explain_unknown_file(attempt: Attempt) -> str:
    shown = _shown_program(attempt)
    return f"Which file {shown} would start cannot be told, and what cannot be told does not run."


def explain_unlisted_program(attempt: Attempt, listed: ProgramList, *, leaves: bool) -> str:
    """Say that a program is not listed, and the exact line that lists it, by the file that would run."""
    said = ", and an option of the command leaves the sandbox" if leaves else ""
    entry = offer_entry(attempt)
    if entry is None and is_loader(attempt.file or ""):
        return (
            f"{_shown_program(attempt)} is the loader{said}, which every permitted program has and which as"
            " a command would load any file: run the program itself (`readelf -d FILE` shows what ldd does)."
        )
    if entry is None:
        return (
            f"No `exec:` entry lists {_shown_program(attempt)}{said}; only a plain name or path of a file"
            " can be listed."
        )
    line = f"`exec: {{allow: [{quote_program(entry)}]}}`"
    if attempt.is_script_of is None:
        return f"No `exec:` entry lists {_shown_program(attempt)}{said}; to allow the program, add {line}."
    interpreter, *words = parse_script_text(attempt.is_script_of).command
    by_hand = escape_text(" ".join((interpreter, *words, _path_of(attempt))), 200)
    start = (
        f"No `exec:` entry lists {_shown_program(attempt)}, a script for {escape_text(interpreter, 80)}{said}"
    )
    if is_env(interpreter):  # it names nothing that it starts
        return f"{start}; to allow it, add {line}."
    if listed.find(interpreter) is not None:
        return f"{start}; run it as `{by_hand}`, or add {line}."
    return (
        f"{start}; to allow it, add {line}, which permits its interpreter for every command line,"
        f" or list the interpreter and run `{by_hand}`."
    )


def quote_program(entry: str) -> str:
    """An entry of `exec: allow` as it can stand in a policy."""
    is_plain = _PLAIN_PROGRAM.fullmatch(entry) and entry.lower() not in _NOT_PLAIN
    return entry if is_plain else _quote_text(entry)


def _shown_program(attempt: Attempt) -> str:
    """What was typed, and the file if that says more; what was typed may be a lie."""
    program = attempt.program_name
    shown = _quote_text(escape_text(program, 80))
    if attempt.file is None or attempt.file == program:
        return shown
    return f"{shown} (the file {escape_text(attempt.file, 160)})"


def offer_entry(attempt: Attempt) -> str | None:
    """The entry that would list what was tried, None if none can.

    The name by which it was called, if that stands in a program folder, which nobody inside can write:
    `sh` says more than the file that `sh` is on this machine.
    """
    from stockade.policy.problems import Rejected  # only a denial needs it

    program = attempt.file or attempt.program_name
    if is_loader(program):
        return None
    if attempt.program is not None and is_in_program_folder(attempt.program):
        program = attempt.program
    text = program.rpartition("/")[2] if is_in_program_folder(program) else program
    try:
        entry = parse_program(text)
    except Rejected:
        return None
    return None if is_pattern(entry) else entry


def _path_of(attempt: Attempt) -> str:
    """A script's path as it was typed if that is one, else the file's."""
    program = attempt.program_name
    file = attempt.file or program
    is_its_path = "/" in program and program.rpartition("/")[2] == file.rpartition("/")[2]
    return program if is_its_path else file


def explain_socket(text: str, reason: Reason) -> str:
    return f"{escape_text(text, 80)} is {REASONS[reason]}; no rule can open it."


def explain_call(text: str, why: str, permit: str | None) -> str:
    """Say what the filter's line says, and what would permit the call.

    The offer is for one key; in a policy that has `exec:` already the key is added there.
    """
    offer = "no rule can open it" if permit is None else f"to permit it, add `{permit}`"
    return f"{escape_text(text, 120)} is refused: {why}; {offer}."


def explain_reason(reason: Reason) -> str:
    sentence = REASONS[reason]
    return f"{sentence[0].upper()}{sentence[1:]}."
