"""The decision engine: one attempt in, one decision out. Pure; no clock, no I/O.

The order is the promise (DESIGN.md §4):

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

from collections.abc import Iterable

from msgspec.structs import replace

from stockade.decision import explain
from stockade.decision.catalogue import Catalogue, load_builtin_entries
from stockade.decision.commands import classify_socket, is_listed_program, leaves_sandbox
from stockade.decision.labels import (
    ADDRESS_REASON,
    CLOSED_CONTROL,
    ORDINARY_QUESTIONS,
    REFUSAL_CONTROL,
    UNREADABLE,
    control_of_address,
    control_of_unlisted,
    place_of_address,
    risk_of_listed,
    risk_of_stranger,
    risk_of_unlisted,
)
from stockade.decision.operation import FAULT_CONTROL, closest_fault, find_fault
from stockade.decision.request import Attempt, Decision, Permit
from stockade.decision.standing import Closing, RuleBook, Standing
from stockade.net.address import AddressClass, AddressFacts, IPAddress, judge_address
from stockade.net.host import Host, HostRefusal
from stockade.policy.model import CatalogueEntry, Policy, Rule
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Reason, Risk, Verdict

_CACHE_SIZE = 8192  # names come from the worker, so the cache is emptied rather than grown
_PORT_PROTOCOL = {443: Protocol.TLS, 80: Protocol.HTTP}
_HELD = frozenset({Reason.NOT_LISTED, Reason.LOOKALIKE})


class Engine:
    """Decides attempts under one policy, in one phase, for one identity.

    Args:
        policy: The effective policy.
        phase: Where the run stands.
        identity: Who asks.
        own_addresses: Addresses of the gateway itself, which no rule can open.
        places: Catalogue entries of the machine, such as its package registries.
        inspects_tls: True if the gateway opens TLS, so that conditions on it can hold.
    """

    def __init__(
        self,
        policy: Policy,
        phase: Phase = Phase.WORK,
        identity: Identity = Identity.AGENT,
        own_addresses: Iterable[IPAddress] = frozenset(),
        *,
        places: Iterable[CatalogueEntry] = (),
        inspects_tls: bool = False,
        book: RuleBook | None = None,
    ) -> None:
        self.policy = policy
        self.phase = phase
        self.identity = identity
        self._own = frozenset(own_addresses)
        self._inspects_tls = inspects_tls
        self._book = book or RuleBook(policy, Catalogue(policy.catalogue, places, load_builtin_entries()))
        self._standings: dict[tuple[str, int, str], Standing] = {}

    def for_phase(self, phase: Phase, identity: Identity | None = None) -> Engine:
        """The engine for another phase or identity of the same policy; it shares the index."""
        return Engine(
            self.policy,
            phase,
            identity or self.identity,
            self._own,
            inspects_tls=self._inspects_tls,
            book=self._book,
        )

    # --- questions -----------------------------------------------------------------------

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
            return self._decide_socket(attempt)
        decision = self._judge_name(attempt, approved_by)
        if addresses is None or decision.verdict is Verdict.DENY:
            return decision
        return self._judge_answers(attempt, decision, addresses)

    def refuse(self, attempt: Attempt, reason: Reason, why: str | None = None) -> Decision:
        """Refuse an attempt for something that the gateway found, with the labels that fit it."""
        base = self.decide(attempt)
        risk = Risk.BENIGN if base.verdict is not Verdict.DENY else base.risk
        if reason in UNREADABLE and risk is Risk.BENIGN:
            risk = Risk.EXFILTRATION
        return self._deny(
            attempt,
            reason,
            risk=risk,
            control=REFUSAL_CONTROL.get(reason, base.control),
            place=base.place,
            rule=f"builtin:{reason}",
            why=why or explain.explain_reason(reason),
        )

    def protocol_for(self, host: Host, port: int) -> Protocol | None:
        """What is spoken at a place, so that the gateway knows what to parse; None if nobody says."""
        if host.address is None:
            protocol = self._book.find_protocol(host.name, port, self.phase, self.identity)
            if protocol is not None:
                return protocol
        return _PORT_PROTOCOL.get(port)

    # --- names ---------------------------------------------------------------------------

    def _judge_name(self, attempt: Attempt, approved_by: str | None) -> Decision:
        host = attempt.host
        for spelled in (host, attempt.sni, attempt.authority):
            if isinstance(spelled, HostRefusal):
                return self._refuse_spelling(attempt, spelled)
        if not isinstance(host, Host):
            return self._refuse_spelling(attempt, HostRefusal("", "no host"))
        if host.address is not None:
            return self._deny_literal(attempt, host, host.address)
        for where, other in (("TLS hello", attempt.sni), ("Host header", attempt.authority)):
            if other is not None and other != host:
                assert isinstance(other, Host)
                return self._deny_mismatch(attempt, host, other, where)
        standing = self._stand(host.name, attempt.port, attempt.protocol)
        if standing.closings:
            closing = self._find_closing(standing, attempt)
            if closing is not None:
                return self._deny_closing(attempt, host.name, standing, closing)
        if standing.reason is Reason.RULE_PROXIES:
            return self._judge_operation(attempt, host.name, standing)
        if standing.reason is Reason.RULE_ALLOWS:
            return self._pass(attempt, host.name, standing.rules[0], standing)
        if approved_by is not None and standing.reason in _HELD:
            return self._pass_approved(attempt, host.name, standing, approved_by)
        if standing.is_listed:
            return self._deny_listed(attempt, host.name, standing)
        return self._deny_unlisted(attempt, host.name, standing)

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

        What is not seen yet (a name question, a plain HTTP connection before its head, a
        tunnel that will be opened) is left to the attempt that shows it; what will never
        be seen is closed.
        """
        path, method = attempt.path, attempt.method
        is_proxied = standing.reason is Reason.RULE_PROXIES
        if attempt.protocol is Protocol.HTTP or (attempt.protocol is Protocol.DNS and is_proxied):
            will_be_seen = True
        else:
            will_be_seen = is_proxied and self._inspects_tls
        if standing.is_open and not is_proxied and attempt.protocol is not Protocol.HTTP:
            path = method = None  # a tunnel: what the command line shows, the gateway does not see
        if path is None and will_be_seen:
            return None
        return next((closing for closing in standing.closings if closing.covers(path, method)), None)

    def _judge_operation(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        rules = standing.rules
        question = attempt.protocol is Protocol.DNS
        if attempt.method is not None and not question:
            for rule in rules:
                if find_fault(rule, attempt) is None:
                    return self._pass(attempt, name, rule, standing)
            return self._deny_operation(attempt, name, standing, *closest_fault(rules, attempt))
        if question or attempt.protocol is Protocol.HTTP or self._inspects_tls:
            return self._pass(attempt, name, rules[0], standing)
        for rule in rules:
            if not rule.has_conditions:
                return self._pass(attempt, name, rule, standing)
        return self._deny_operation(attempt, name, standing, rules[0], Reason.INSPECTION_NOT_AVAILABLE)

    # --- letting through -----------------------------------------------------------------

    def _pass(self, attempt: Attempt, name: str, rule: Rule, standing: Standing) -> Decision:
        if attempt.protocol is Protocol.DNS and attempt.query_type not in (None, *ORDINARY_QUESTIONS):
            return self._deny_question(attempt, name, standing)
        return Decision(
            verdict=rule.level,
            risk=Risk.BENIGN,
            control=self._control_of_pass(attempt, rule.control or _LEVEL_CONTROL[rule.level]),
            reason=standing.reason,
            rule=rule.origin,
            place=standing.place,
            phase=self.phase,
            identity=self.identity,
            why=explain.explain_pass(attempt, name, rule),
            limit_bytes=rule.max_body_bytes,
            rate_per_s=rule.rate_per_s,
        )

    def _pass_approved(self, attempt: Attempt, name: str, standing: Standing, by: str) -> Decision:
        return Decision(
            verdict=Verdict.ALLOW,
            risk=Risk.BENIGN,
            control=self._control_of_pass(attempt, Control.ALLOWLIST_EXACT),
            reason=Reason.RULE_ALLOWS,
            rule="builtin:approved",
            place=standing.place,
            phase=self.phase,
            identity=self.identity,
            why=explain.explain_approved(attempt, name, by),
        )

    def _control_of_pass(self, attempt: Attempt, control: Control) -> Control:
        if attempt.protocol is Protocol.DNS:
            return Control.OWN_RESOLVER_ONLY
        if attempt.redirected:
            return Control.RECHECK_REDIRECTS
        return Control.CANONICALISE_HOST if _was_normalized(attempt) else control

    # --- refusing names ------------------------------------------------------------------

    def _deny(
        self,
        attempt: Attempt,
        reason: Reason,
        *,
        risk: Risk,
        control: Control,
        place: PlaceClass,
        rule: str,
        why: str,
        address: IPAddress | None = None,
    ) -> Decision:
        return Decision(
            verdict=Verdict.DENY,
            risk=risk,
            control=control,
            reason=reason,
            rule=rule,
            place=place,
            phase=self.phase,
            identity=self.identity,
            why=why,
            address=address,
        )

    def _refuse_spelling(self, attempt: Attempt, refusal: HostRefusal) -> Decision:
        risk, place = self._label_guess(attempt, refusal.guess)
        return self._deny(
            attempt,
            Reason.MALFORMED_HOST,
            risk=risk,
            control=Control.OWN_RESOLVER_ONLY if attempt.protocol is Protocol.DNS else Control.CANONICALISE_HOST,
            place=place,
            rule="builtin:host-spelling",
            why=explain.explain_spelling(refusal),
        )

    def _label_guess(self, attempt: Attempt, guess: IPAddress | str | None) -> tuple[Risk, PlaceClass]:
        """Risk and class of what a refused text aims at."""
        if guess is None:
            return risk_of_stranger(attempt), PlaceClass.UNKNOWN
        if not isinstance(guess, str):
            facts = judge_address(guess)
            return facts.row.risk or risk_of_stranger(attempt), place_of_address(facts)
        standing = self._stand(guess, attempt.port, attempt.protocol)
        if standing.is_listed:
            return risk_of_listed(attempt, standing, Reason.MALFORMED_HOST), standing.place
        return risk_of_unlisted(attempt, standing, self.phase), standing.place

    def _deny_literal(self, attempt: Attempt, host: Host, address: IPAddress) -> Decision:
        facts = judge_address(address)
        denial = self._book.find_denied_address(address)
        if address in self._own and facts.address_class is not AddressClass.METADATA:
            return self._deny_own(attempt, address, self._control_of_refusal(attempt, Control.DENY_INTERNAL_RANGES))
        reason = ADDRESS_REASON[facts.address_class]
        if facts.row.risk is None:
            reason = Reason.LISTED_DENY if denial else Reason.LITERAL_ADDRESS
        return self._deny(
            attempt,
            reason,
            risk=facts.row.risk or risk_of_stranger(attempt),
            control=self._control_of_refusal(attempt, control_of_address(facts)),
            place=place_of_address(facts),
            rule=denial.origin if denial else "builtin:addresses",
            why=explain.explain_literal(address, facts, reason),
            address=address,
        )

    def _deny_own(self, attempt: Attempt, address: IPAddress, control: Control) -> Decision:
        return self._deny(
            attempt,
            Reason.OWN_ADDRESS,
            risk=Risk.SSRF,
            control=control,
            place=PlaceClass.INTERNAL,
            rule="builtin:own-addresses",
            why=explain.explain_own_address(address),
            address=address,
        )

    def _deny_mismatch(self, attempt: Attempt, host: Host, other: Host, where: str) -> Decision:
        """Name the place that the odd name leads to: that is where the bytes would have gone."""
        guess: IPAddress | str = other.address or other.name
        risk, place = self._label_guess(attempt, guess)
        return self._deny(
            attempt,
            Reason.NAME_MISMATCH,
            risk=Risk.EXFILTRATION if risk is Risk.BENIGN and attempt.protocol is not Protocol.HTTP else risk,
            control=Control.NAME_CONSISTENCY,
            place=place,
            rule="builtin:name-consistency",
            why=explain.explain_mismatch(host.name, other.name, where),
        )

    def _deny_closing(self, attempt: Attempt, name: str, standing: Standing, closing: Closing) -> Decision:
        is_tunnel = standing.reason is Reason.RULE_ALLOWS and attempt.protocol is not Protocol.HTTP
        if is_tunnel:
            why = explain.explain_closed_tunnel(name, closing.origin)
        elif closing.rule is not None:
            why = explain.explain_listed_deny(name, closing.rule)
        else:
            why = explain.explain_rubric(name, closing.origin)
        rules = (closing.rule,) if closing.rule else standing.rules
        labeled = replace(standing, rules=rules, reason=closing.reason)
        control = closing.rule.control if closing.rule and closing.rule.control else None
        return self._deny(
            attempt,
            closing.reason,
            risk=risk_of_listed(attempt, labeled, closing.reason),
            control=self._control_of_refusal(attempt, control or CLOSED_CONTROL[closing.reason]),
            place=standing.place,
            rule=closing.origin,
            why=why,
        )

    def _deny_operation(
        self, attempt: Attempt, name: str, standing: Standing, rule: Rule, fault: Reason
    ) -> Decision:
        return self._deny(
            attempt,
            fault,
            risk=risk_of_listed(attempt, replace(standing, rules=(rule,)), fault),
            control=self._control_of_refusal(attempt, rule.control or FAULT_CONTROL[fault]),
            place=standing.place,
            rule=rule.origin,
            why=explain.explain_operation(attempt, name, rule, fault),
        )

    def _deny_listed(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        rule = standing.rules[0] if standing.rules else None
        control = CLOSED_CONTROL[standing.reason]
        risk = risk_of_listed(attempt, standing, standing.reason)
        if standing.reason is Reason.LISTED_DENY and rule is not None:
            # Whoever wrote the denial did not call the place trusted: it is judged like a stranger.
            control = rule.control or control_of_unlisted(standing)
            risk = rule.risk or risk_of_unlisted(attempt, standing, self.phase)
        return self._deny(
            attempt,
            standing.reason,
            risk=risk,
            control=self._control_of_refusal(attempt, control),
            place=standing.place,
            rule=standing.origin,
            why=self._explain_listed(attempt, name, standing, rule),
        )

    def _explain_listed(self, attempt: Attempt, name: str, standing: Standing, rule: Rule | None) -> str:
        match standing.reason:
            case Reason.LISTED_DENY if rule:
                return explain.explain_listed_deny(name, rule)
            case Reason.WRONG_PORT | Reason.WRONG_PROTOCOL if rule:
                return explain.explain_wrong_way(attempt, name, rule, self.identity)
            case Reason.WRONG_PHASE if rule:
                return explain.explain_wrong_phase(name, rule, self.phase)
            case Reason.OTHER_IDENTITY if rule:
                return explain.explain_other_identity(name, rule, self.identity)
            case _:
                return explain.explain_rubric(name, standing.origin)

    def _deny_unlisted(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        is_held = self.policy.unknown == "ask" and standing.reason in _HELD
        return self._deny(
            attempt,
            Reason.HELD if is_held else standing.reason,
            risk=(
                Risk.METADATA_CREDENTIALS
                if standing.reason is Reason.METADATA_NAME
                else risk_of_unlisted(attempt, standing, self.phase)
            ),
            control=self._control_of_refusal(attempt, control_of_unlisted(standing)),
            place=standing.place,
            rule=standing.origin,
            why=self._explain_unlisted(attempt, name, standing, is_held),
        )

    def _explain_unlisted(self, attempt: Attempt, name: str, standing: Standing, is_held: bool) -> str:
        if standing.reason is Reason.METADATA_NAME:
            return explain.explain_metadata_name(name)
        if is_held:
            return explain.explain_held(attempt, name, self.identity, self.policy.hold_s)
        if standing.imitated is not None:
            return explain.explain_lookalike(attempt, name, standing.imitated, self.identity)
        return explain.explain_unlisted(attempt, name, self.identity, standing.place)

    def _deny_question(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        return self._deny(
            attempt,
            Reason.QUERY_TYPE_REFUSED,
            risk=Risk.EXFILTRATION,
            control=Control.OWN_RESOLVER_ONLY,
            place=standing.place,
            rule="builtin:own-resolver",
            why=explain.explain_question_type(name, attempt.query_type or ""),
        )

    def _control_of_refusal(self, attempt: Attempt, control: Control) -> Control:
        """How an attempt came about can say more than what refused it."""
        if attempt.protocol is Protocol.DNS:
            return control if control in _SAID_BY_NAME else Control.OWN_RESOLVER_ONLY
        if attempt.redirected:
            return Control.RECHECK_REDIRECTS
        host = attempt.host
        if isinstance(host, Host) and host.address is not None and host.was_normalized:
            return Control.CANONICALISE_HOST
        return control

    # --- answers -------------------------------------------------------------------------

    def _judge_answers(
        self, attempt: Attempt, decision: Decision, addresses: tuple[IPAddress, ...]
    ) -> Decision:
        host = attempt.host
        assert isinstance(host, Host)
        if not addresses:
            return self.refuse(attempt, Reason.RESOLUTION_FAILED)
        worst: tuple[int, Decision] | None = None
        for address in addresses:
            denial = self._judge_answer(attempt, decision, host.name, address)
            if denial is not None and (worst is None or _RISK_ORDER[denial.risk] > worst[0]):
                worst = (_RISK_ORDER[denial.risk], denial)
        if worst is not None:
            return worst[1]
        return replace(decision, address=addresses[0], permit=Permit(host.name, addresses, attempt.port))

    def _judge_answer(
        self, attempt: Attempt, decision: Decision, name: str, address: IPAddress
    ) -> Decision | None:
        """The denial of one answer, or None if it may be dialled."""
        facts = judge_address(address)
        if address in self._own:
            return replace(
                self._deny_own(attempt, address, Control.CHECK_RESOLVED_ADDRESS), place=decision.place
            )
        denial = self._book.find_denied_address(address)
        if denial is not None:
            why = explain.explain_denied_answer(name, address, denial)
            return self._deny_answer(attempt, decision, address, facts, Reason.LISTED_DENY, denial.origin, why)
        if facts.address_class is AddressClass.PUBLIC:
            return None
        if facts.is_openable and self._book.opens_internally(name, address, attempt.port):
            return None
        why = explain.explain_answer(attempt, name, address, facts)
        reason = ADDRESS_REASON[facts.address_class]
        return self._deny_answer(attempt, decision, address, facts, reason, "builtin:addresses", why)

    def _deny_answer(
        self,
        attempt: Attempt,
        decision: Decision,
        address: IPAddress,
        facts: AddressFacts,
        reason: Reason,
        rule: str,
        why: str,
    ) -> Decision:
        risk = facts.row.risk
        if risk is None:
            risk = Risk.EXFILTRATION if facts.address_class is AddressClass.PUBLIC else Risk.SSRF
        return self._deny(
            attempt,
            reason,
            risk=risk,
            control=Control.CHECK_RESOLVED_ADDRESS,
            place=decision.place,
            rule=rule,
            why=why,
            address=address,
        )

    # --- programs and sockets ------------------------------------------------------------

    def _decide_program(self, attempt: Attempt) -> Decision:
        program = attempt.argv[0] if attempt.argv else ""
        if is_listed_program(self.policy.exec, program):
            origin = f"{self.policy.source}:exec"
            return Decision(
                verdict=Verdict.ALLOW,
                risk=Risk.BENIGN,
                control=Control.ALLOWLIST_EXACT,
                reason=Reason.PROGRAM_LISTED,
                rule=origin,
                place=PlaceClass.LOCAL,
                phase=self.phase,
                identity=self.identity,
                why=explain.explain_program(program, origin),
            )
        leaves = leaves_sandbox(attempt.argv)
        return self._deny(
            attempt,
            Reason.SANDBOX_SWITCHED_OFF if leaves else Reason.PROGRAM_NOT_LISTED,
            risk=Risk.BOUNDARY_TAMPERING,
            control=Control.NAMESPACE_ISOLATION if leaves else Control.EXEC_DENY,
            place=PlaceClass.LOCAL,
            rule="builtin:exec",
            why=explain.explain_unlisted_program(program, leaves=leaves),
        )

    def _decide_socket(self, attempt: Attempt) -> Decision:
        call = classify_socket(attempt.socket or "")
        return self._deny(
            attempt,
            call.reason,
            risk=call.risk,
            control=call.control,
            place=call.place,
            rule="builtin:sockets",
            why=explain.explain_socket(attempt.socket or "", call.reason),
        )


_LEVEL_CONTROL = {
    Verdict.DENY: Control.DEFAULT_DENY,
    Verdict.PROXY: Control.LOGGING_PROXY,
    Verdict.ALLOW: Control.ALLOWLIST_EXACT,
}

# A refused question is refused as a question, unless the name itself says more.
_SAID_BY_NAME = frozenset(
    {Control.DENY_LINK_LOCAL_METADATA, Control.PHASE_POLICY, Control.SEPARATE_IDENTITY}
)

# Of several denied answers the most telling one is recorded.
_RISK_ORDER = {risk: order for order, risk in enumerate((Risk.BENIGN, Risk.EXFILTRATION, Risk.SSRF))}
_RISK_ORDER[Risk.METADATA_CREDENTIALS] = len(_RISK_ORDER)


def _was_normalized(attempt: Attempt) -> bool:
    return any(
        isinstance(spelled, Host) and spelled.was_normalized
        for spelled in (attempt.host, attempt.sni, attempt.authority)
    )
