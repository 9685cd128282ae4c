"""The decision engine: one attempt in, one decision out. Pure; no clock, no I/O.

The order is the promise (docs/concepts/decisions.md):

1. a host that two readers read differently is refused;
2. fixed denials: addresses instead of names, names that disagree, metadata services;
3. the rubric list, for the agent while scoring;
4. name, port, phase and identity choose the level: deny, then proxy, then allow, then
   nothing, which is a denial;
5. methods, paths and sizes decide inside that level and never fall to a lower one;
6. every answer of the resolver is judged; one denied answer denies the attempt.

What the rules say about a (name, port, protocol) is worked out once and kept in a
bounded cache, so a decision costs the same with 10 rules and with 100,000. An engine is
for one policy, phase and identity and never changes; another policy or phase means
another engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address

from msgspec.structs import replace

from stockade.decision.calls import HELD, Caller
from stockade.decision.catalogue import Catalogue
from stockade.decision.commands import ProgramList, RefusedCall, classify_socket, leaves_sandbox
from stockade.decision.labels import (
    ORDINARY_QUESTIONS,
    place_of_address,
    risk_of_listed,
    risk_of_stranger,
    risk_of_unlisted,
)
from stockade.decision.operation import closest_fault, find_fault
from stockade.decision.request import Attempt, Decision, Permit, UpstreamProxy
from stockade.decision.standing import Closing, RuleBook, Standing
from stockade.net.address import AddressClass, IPAddress, judge_address
from stockade.net.host import Host, HostRefusal
from stockade.policy.model import CatalogueEntry, Policy
from stockade.vocabulary import Identity, Phase, PlaceClass, Protocol, Reason, Risk, Verdict

_CACHE_SIZE = 8192  # names come from the worker, so the cache is emptied rather than grown
_PORT_PROTOCOL = {443: Protocol.TLS, 80: Protocol.HTTP}
_NO_HOST = HostRefusal("", "no host")

# Of several denied answers the most telling one is recorded.
_TELLING = {Risk.METADATA_CREDENTIALS: 2, Risk.SSRF: 1}


class Engine:
    """Decides attempts under one policy, in one phase, for one identity.

    Args:
        policy: The effective policy.
        phase: Where the run stands.
        identity: Who asks.
        own_addresses: Addresses of the gateway itself, which no rule can open.
        places: Catalogue entries of the machine, such as its package registries.
        inspects_tls: True if the gateway opens TLS, so that conditions on it can hold.
        upstream: The operator's proxy by which names without an `internal:` entry are reached.
        programs: Real paths of the files that may run, as a run has resolved them: the launched
            command, what `exec:` lists, and their interpreters. A mapping says for each which
            entry of `exec: allow` lists it, or in a few words what else permits it. None
            judges by names.
        book: The index of the same policy, to share; see `for_phase`.
    """

    def __init__(
        self,
        policy: Policy,
        phase: Phase = Phase.WORK,
        identity: Identity = Identity.AGENT,
        own_addresses: Iterable[IPAddress] = (),
        *,
        places: Iterable[CatalogueEntry] = (),
        inspects_tls: bool = False,
        upstream: UpstreamProxy | None = None,
        programs: Mapping[str, str] | frozenset[str] | None = None,
        book: RuleBook | None = None,
    ) -> None:
        self.policy = policy
        self.phase = phase
        self.identity = identity
        self._own = frozenset(map(_without_zone, own_addresses))
        self._inspects_tls = inspects_tls
        self.upstream = upstream
        self._programs = programs
        self._book = book or RuleBook(policy, Catalogue(policy.catalogue, places))
        self._listed = ProgramList(policy.exec)
        self._caller = Caller(policy, phase, identity, self._listed)
        self._standings: dict[tuple[str, int, str], Standing] = {}

    def for_phase(self, phase: Phase, identity: Identity | None = None) -> Engine:
        """The engine for another phase or identity of the same policy; it shares the index."""
        return Engine(
            self.policy,
            phase,
            identity or self.identity,
            self._own,
            inspects_tls=self._inspects_tls,
            upstream=self.upstream,
            programs=self._programs,
            book=self._book,
        )

    def decide(
        self,
        attempt: Attempt,
        addresses: tuple[IPAddress, ...] | None = None,
        *,
        approved_by: str | None = None,
    ) -> Decision:
        """Decide an attempt.

        Args:
            attempt: What was tried.
            addresses: All answers for its name; None judges by the name alone, without a permit.
            approved_by: Who allowed it after a hold; opens what no rule lists, nothing else.
        """
        if attempt.protocol is Protocol.EXEC:
            return self._decide_program(attempt)
        if attempt.protocol is Protocol.SOCKET:
            return self._caller.refuse_socket(attempt.socket or "", classify_socket(attempt.socket or ""))
        decision = self._judge_name(attempt, approved_by)
        if addresses is None or decision.verdict is Verdict.DENY:
            return decision
        if isinstance(attempt.host, Host) and self.goes_upstream(attempt.host.name):
            return self._permit_upstream(attempt.host.name, attempt.port, decision)
        return self._judge_answers(attempt, decision, addresses)

    def refuse(self, attempt: Attempt, reason: Reason, why: str | None = None) -> Decision:
        """Refuse an attempt for something that the gateway found, with the labels that fit it."""
        return self._caller.refuse_found(reason, self.decide(attempt), why)

    def refuse_call(self, attempt: Attempt, refused: RefusedCall) -> Decision:
        """Refuse a system call that the sandbox's filter refuses whatever the rules say."""
        return self._caller.refuse_call(attempt.call or "", refused)

    def protocol_for(self, host: Host, port: int) -> Protocol | None:
        """What is spoken at a place, so that the gateway knows what to parse; None if nobody says."""
        if host.address is None:
            protocol = self._book.find_protocol(host.name, port, self.phase, self.identity)
            if protocol is not None:
                return protocol
        return _PORT_PROTOCOL.get(port)

    def goes_upstream(self, name: str) -> bool:
        """True if a permitted name is handed to the upstream proxy instead of being looked up."""
        if self.upstream is None or name in self.upstream.exempt:
            return False
        return not self._book.is_internal(name)

    # --- names ---------------------------------------------------------------------------

    def _judge_name(self, attempt: Attempt, approved_by: str | None) -> Decision:
        host = attempt.host
        for spelled in (host, attempt.sni, attempt.authority):
            if isinstance(spelled, HostRefusal):
                return self._refuse_spelling(attempt, spelled)
        if not isinstance(host, Host):
            return self._refuse_spelling(attempt, _NO_HOST)
        if host.address is not None:
            return self._refuse_literal(attempt, host.address)
        standing = self._stand(host.name, attempt.port, attempt.protocol)
        for where, other in (("TLS hello", attempt.sni), ("Host header", attempt.authority)):
            if isinstance(other, Host) and other != host:
                return self._refuse_mismatch(attempt, host, other, where, standing)
        return self._judge_standing(attempt, host.name, standing, approved_by)

    def _judge_standing(
        self, attempt: Attempt, name: str, standing: Standing, approved_by: str | None
    ) -> Decision:
        closing = self._find_closing(standing, attempt) if standing.closings else None
        if closing is not None:
            return self._caller.refuse_closed(attempt, name, standing, closing)
        if standing.is_open:
            if attempt.protocol is Protocol.DNS and attempt.query_type not in (None, *ORDINARY_QUESTIONS):
                return self._caller.refuse_question_type(attempt, name, standing)
            return self._judge_operation(attempt, name, standing)
        if standing.reason is Reason.METADATA_NAME:
            return self._caller.refuse_metadata_name(attempt, name, standing)
        if standing.reason not in HELD:
            return self._caller.refuse_listed(attempt, name, standing)
        if approved_by is not None:
            return self._caller.let_through_approved(attempt, name, standing, approved_by)
        return self._caller.refuse_unlisted(attempt, name, standing)

    def _stand(self, name: str, port: int, protocol: Protocol) -> Standing:
        key = (name, port, protocol.value)
        standing = self._standings.get(key)
        if standing is None:
            standing = self._book.stand(name, port, protocol, self.phase, self.identity)
            if len(self._standings) >= _CACHE_SIZE:
                self._standings.clear()
            self._standings[key] = standing
        return standing

    def _find_closing(self, standing: Standing, attempt: Attempt) -> Closing | None:
        """The path-bound denial that closes this attempt.

        What is not seen yet (a name question, a plain HTTP connection before its head, TLS
        that will be opened) is left to the attempt that shows it; what will never be seen
        is closed.
        """
        path, method = attempt.path, attempt.method
        is_tunnel = standing.reason is Reason.RULE_ALLOWS and standing.rules[0].protocol is not Protocol.HTTP
        if is_tunnel:
            path = method = None  # whatever a command line shows of it, the gateway does not see it
        elif path is None and self._will_show_path(standing, attempt):
            return None
        return next((closing for closing in standing.closings if closing.covers(path, method)), None)

    def _will_show_path(self, standing: Standing, attempt: Attempt) -> bool:
        if attempt.protocol is Protocol.HTTP:
            return True
        return standing.is_open and (attempt.protocol is Protocol.DNS or self._inspects_tls)

    def _judge_operation(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        """Judge inside the level: an allowed place passes, a proxied one by its operations."""
        rules = standing.rules
        is_question = attempt.protocol is Protocol.DNS
        if standing.reason is Reason.RULE_ALLOWS:
            return self._caller.let_through(attempt, name, standing, rules[0])
        if attempt.method is not None and not is_question:
            for rule in rules:
                if find_fault(rule, attempt) is None:
                    return self._caller.let_through(attempt, name, standing, rule)
            return self._caller.refuse_operation(attempt, name, standing, *closest_fault(rules, attempt))
        if is_question or attempt.protocol is Protocol.HTTP or self._inspects_tls:
            return self._caller.let_through(attempt, name, standing, rules[0])
        for rule in rules:
            if not rule.has_conditions:
                return self._caller.let_through(attempt, name, standing, rule)
        return self._caller.refuse_operation(
            attempt, name, standing, rules[0], Reason.INSPECTION_NOT_AVAILABLE
        )

    # --- fixed denials -------------------------------------------------------------------

    def _refuse_spelling(self, attempt: Attempt, refusal: HostRefusal) -> Decision:
        return self._caller.refuse_spelling(attempt, refusal, self._classify_aim(attempt, refusal.guess))

    def _refuse_literal(self, attempt: Attempt, address: IPAddress) -> Decision:
        facts = judge_address(address)
        if address in self._own and facts.address_class is not AddressClass.METADATA:
            return self._caller.refuse_own_address(attempt, address)
        return self._caller.refuse_literal(attempt, address, facts, self._book.find_denied_address(address))

    def _refuse_mismatch(
        self, attempt: Attempt, host: Host, other: Host, where: str, standing: Standing
    ) -> Decision:
        """Named for the place that is not permitted: a permitted name is only what it hides behind."""
        hidden = other if standing.is_open else host
        aim = self._classify_aim(attempt, hidden.address or hidden.name)
        return self._caller.refuse_mismatch(attempt, host, other, where, aim)

    def _classify_aim(self, attempt: Attempt, aim: IPAddress | str | None) -> tuple[Risk, PlaceClass]:
        """Risk and class of what a refused text leads to."""
        if aim is None:
            return risk_of_stranger(attempt), PlaceClass.UNKNOWN
        if not isinstance(aim, str):
            facts = judge_address(aim)
            return facts.row.risk or risk_of_stranger(attempt), place_of_address(facts)
        standing = self._stand(aim, attempt.port, attempt.protocol)
        if standing.is_listed:
            return risk_of_listed(attempt, standing, Reason.MALFORMED_HOST), standing.place
        return risk_of_unlisted(attempt, standing, self.phase), standing.place

    # --- answers -------------------------------------------------------------------------

    def _judge_answers(
        self, attempt: Attempt, decision: Decision, addresses: tuple[IPAddress, ...]
    ) -> Decision:
        assert isinstance(attempt.host, Host)
        name = attempt.host.name
        if not addresses:
            return self.refuse(attempt, Reason.RESOLUTION_FAILED)
        denials = [
            denial
            for address in addresses
            if (denial := self._judge_answer(attempt, decision, name, address)) is not None
        ]
        if denials:
            return max(denials, key=lambda denial: _TELLING.get(denial.risk, 0))
        return replace(decision, address=addresses[0], permit=Permit(name, addresses, attempt.port))

    def _permit_upstream(self, name: str, port: int, decision: Decision) -> Decision:
        """Let a name that was judged by itself go by the upstream proxy, and say what that means."""
        assert self.upstream is not None
        permit = Permit(name, (self.upstream.address,), port, self.upstream)
        why = f"{decision.why} Address checks end at the upstream proxy {self.upstream.text}."
        return replace(decision, permit=permit, why=why)

    def _judge_answer(
        self, attempt: Attempt, decision: Decision, name: str, address: IPAddress
    ) -> Decision | None:
        """The denial of one answer, or None if it may be dialled."""
        if address in self._own:
            return self._caller.refuse_own_answer(decision, address)
        denial = self._book.find_denied_address(address)
        if denial is not None:
            return self._caller.refuse_denied_answer(name, decision, address, denial)
        facts = judge_address(address)
        if facts.address_class is AddressClass.PUBLIC:
            return None
        if facts.is_openable and self._book.opens_internally(name, address, attempt.port):
            return None
        return self._caller.refuse_answer(attempt, name, decision, address, facts)

    # --- programs ------------------------------------------------------------------------

    def _decide_program(self, attempt: Attempt) -> Decision:
        program = attempt.program_name
        policy = self.policy.exec
        if policy is not None and policy.mode == "any":
            return self._caller.let_any_program_run(policy)
        if self._programs is None:
            reason = self._listed.find(program)
        elif attempt.file is None:
            return self._caller.refuse_unknown_program(attempt)
        else:
            reason = self._reason_to_run(attempt.file)
        if reason is not None:
            return self._caller.let_program_run(program, reason)
        return self._caller.refuse_program(attempt, leaves=leaves_sandbox(attempt.argv))

    def _reason_to_run(self, file: str) -> str | None:
        """What permits a file in this run, None if nothing does."""
        assert self._programs is not None
        if file not in self._programs:
            return None
        if isinstance(self._programs, Mapping):
            return self._programs[file]
        return self._listed.find(file) or "its own command, a listed program or an interpreter"


def _without_zone(address: IPAddress) -> IPAddress:
    """``fe80::1%eth0`` and ``fe80::1`` are one address for a judgement."""
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address
