"""Decisions put into words: every way to let an attempt through or to refuse it.

The engine decides; here a decision gets its risk, control, class, rule and sentence.
"""

from __future__ import annotations

from msgspec.structs import replace

from stockade.decision import explain
from stockade.decision.commands import ProgramList, RefusedCall, SocketCall
from stockade.decision.labels import (
    ADDRESS_REASON,
    CLOSED_CONTROL,
    REFUSAL_CONTROL,
    UNREADABLE,
    control_of_address,
    control_of_unlisted,
    place_of_address,
    risk_of_listed,
    risk_of_stranger,
    risk_of_unlisted,
)
from stockade.decision.operation import FAULT_CONTROL
from stockade.decision.request import Attempt, Decision
from stockade.decision.standing import Closing, Standing
from stockade.net.address import AddressFacts, IPAddress
from stockade.net.host import Host, HostRefusal
from stockade.policy.model import ExecPolicy, Policy, Rule
from stockade.vocabulary import Control, Identity, Phase, PlaceClass, Protocol, Reason, Risk, Verdict

HELD = frozenset({Reason.NOT_LISTED, Reason.LOOKALIKE})

_LEVEL_CONTROL = {
    Verdict.DENY: Control.DEFAULT_DENY,
    Verdict.PROXY: Control.LOGGING_PROXY,
    Verdict.ALLOW: Control.ALLOWLIST_EXACT,
}

# A refused question is refused as a question, unless the name itself says more.
_SAID_BY_NAME = frozenset({Control.DENY_LINK_LOCAL_METADATA, Control.PHASE_POLICY, Control.SEPARATE_IDENTITY})


class Caller:
    """Makes the decisions of one policy, phase and identity."""

    def __init__(self, policy: Policy, phase: Phase, identity: Identity, listed: ProgramList) -> None:
        self._policy = policy
        self._listed = listed
        self._phase = phase
        self._identity = identity

    # --- letting through -----------------------------------------------------------------

    def let_through(self, attempt: Attempt, name: str, standing: Standing, rule: Rule) -> Decision:
        return Decision(
            verdict=rule.level,
            risk=Risk.BENIGN,
            control=_control_of_pass(attempt, rule.control or _LEVEL_CONTROL[rule.level]),
            reason=standing.reason,
            rule=rule.origin,
            place=standing.place,
            phase=self._phase,
            identity=self._identity,
            why=explain.explain_pass(attempt, name, rule),
            limit_bytes=rule.max_body_bytes,
            rate_per_s=rule.rate_per_s,
            credential=rule.credential,
            body=rule.body,
        )

    def let_through_approved(self, attempt: Attempt, name: str, standing: Standing, by: str) -> Decision:
        why = explain.explain_approved(attempt, name, by)
        control = _control_of_pass(attempt, Control.ALLOWLIST_EXACT)
        return self._allow(Reason.RULE_ALLOWS, control, "builtin:approved", standing.place, why)

    def let_program_run(self, program: str, reason: str) -> Decision:
        """Let a program run; the reason is the entry that lists it, or what else permits it, in words."""
        rule = self._listed.find_origin(reason)
        if rule is not None:
            return self._allow_program(rule, explain.explain_program(program, reason, rule))
        return self._allow_program("builtin:exec", explain.explain_permitted_file(program, reason))

    def let_any_program_run(self, policy: ExecPolicy) -> Decision:
        return self._allow_program(policy.origin, explain.explain_any_program(policy.origin))

    def _allow_program(self, rule: str, why: str) -> Decision:
        return self._allow(Reason.PROGRAM_LISTED, Control.ALLOWLIST_EXACT, rule, PlaceClass.LOCAL, why)

    def _allow(self, reason: Reason, control: Control, rule: str, place: PlaceClass, why: str) -> Decision:
        return Decision(
            verdict=Verdict.ALLOW,
            risk=Risk.BENIGN,
            control=control,
            reason=reason,
            rule=rule,
            place=place,
            phase=self._phase,
            identity=self._identity,
            why=why,
        )

    # --- refusing ------------------------------------------------------------------------

    def _deny(
        self,
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
            phase=self._phase,
            identity=self._identity,
            why=why,
            address=address,
        )

    def refuse_found(self, reason: Reason, base: Decision, why: str | None) -> Decision:
        """Something that the gateway found; `base` is what the engine says without it."""
        risk = Risk.BENIGN if base.verdict is not Verdict.DENY else base.risk
        if reason in UNREADABLE and risk is Risk.BENIGN:
            risk = Risk.EXFILTRATION
        return self._deny(
            reason,
            risk=risk,
            control=REFUSAL_CONTROL.get(reason, base.control),
            place=base.place,
            rule=f"builtin:{reason}",
            why=why or explain.explain_reason(reason),
        )

    def refuse_spelling(
        self, attempt: Attempt, refusal: HostRefusal, aim: tuple[Risk, PlaceClass]
    ) -> Decision:
        is_question = attempt.protocol is Protocol.DNS
        return self._deny(
            Reason.MALFORMED_HOST,
            risk=aim[0],
            control=Control.OWN_RESOLVER_ONLY if is_question else Control.CANONICALISE_HOST,
            place=aim[1],
            rule="builtin:host-spelling",
            why=explain.explain_spelling(refusal),
        )

    def refuse_mismatch(
        self, attempt: Attempt, host: Host, other: Host, where: str, aim: tuple[Risk, PlaceClass]
    ) -> Decision:
        is_hidden = attempt.protocol is not Protocol.HTTP and aim[0] is Risk.BENIGN
        return self._deny(
            Reason.NAME_MISMATCH,
            risk=Risk.EXFILTRATION if is_hidden else aim[0],
            control=Control.NAME_CONSISTENCY,
            place=aim[1],
            rule="builtin:name-consistency",
            why=explain.explain_mismatch(host.name, other.name, where),
        )

    def refuse_literal(
        self, attempt: Attempt, address: IPAddress, facts: AddressFacts, denial: Rule | None
    ) -> Decision:
        """An address instead of a name: never permitted, and named for where it leads."""
        reason = ADDRESS_REASON[facts.address_class]
        if facts.row.risk is None:
            reason = Reason.LISTED_DENY if denial else Reason.LITERAL_ADDRESS
        return self._deny(
            reason,
            risk=facts.row.risk or risk_of_stranger(attempt),
            control=_control_of_refusal(attempt, control_of_address(facts)),
            place=place_of_address(facts),
            rule=denial.origin if denial else "builtin:addresses",
            why=explain.explain_literal(address, facts),
            address=address,
        )

    def refuse_own_address(self, attempt: Attempt, address: IPAddress) -> Decision:
        return self._deny(
            Reason.OWN_ADDRESS,
            risk=Risk.SSRF,
            control=_control_of_refusal(attempt, Control.DENY_INTERNAL_RANGES),
            place=PlaceClass.INTERNAL,
            rule="builtin:own-addresses",
            why=explain.explain_own_address(address),
            address=address,
        )

    def refuse_closed(self, attempt: Attempt, name: str, standing: Standing, closing: Closing) -> Decision:
        """A denial that depends on the operation: a rubric path, or a deny rule with paths."""
        if standing.reason is Reason.RULE_ALLOWS and attempt.protocol is not Protocol.HTTP:
            why = explain.explain_closed_tunnel(name, closing.origin)
        elif closing.rule is not None:
            why = explain.explain_listed_deny(name, closing.rule)
        else:
            why = explain.explain_rubric(name, closing.origin)
        rule = closing.rule
        labeled = replace(standing, rules=(rule,) if rule else standing.rules, reason=closing.reason)
        control = rule.control if rule and rule.control else CLOSED_CONTROL[closing.reason]
        return self._deny(
            closing.reason,
            risk=risk_of_listed(attempt, labeled, closing.reason),
            control=_control_of_refusal(attempt, control),
            place=standing.place,
            rule=closing.origin,
            why=why,
        )

    def refuse_operation(
        self, attempt: Attempt, name: str, standing: Standing, rule: Rule, fault: Reason
    ) -> Decision:
        return self._deny(
            fault,
            risk=risk_of_listed(attempt, replace(standing, rules=(rule,)), fault),
            control=_control_of_refusal(attempt, rule.control or FAULT_CONTROL[fault]),
            place=standing.place,
            rule=rule.origin,
            why=explain.explain_operation(attempt, name, rule, fault),
        )

    def refuse_listed(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        """A place that rules name and do not open here: denied, rubric, phase, identity, port."""
        control = CLOSED_CONTROL[standing.reason]
        risk = risk_of_listed(attempt, standing, standing.reason)
        if standing.reason is Reason.LISTED_DENY:
            # Whoever wrote the denial did not call the place trusted: it is judged like a stranger.
            rule = standing.rules[0]
            control = rule.control or control_of_unlisted(standing)
            risk = rule.risk or risk_of_unlisted(attempt, standing, self._phase)
        return self._deny(
            standing.reason,
            risk=risk,
            control=_control_of_refusal(attempt, control),
            place=standing.place,
            rule=standing.origin,
            why=self._explain_listed(attempt, name, standing),
        )

    def _explain_listed(self, attempt: Attempt, name: str, standing: Standing) -> str:
        match standing.reason:
            case Reason.LISTED_DENY:
                return explain.explain_listed_deny(name, standing.rules[0])
            case Reason.WRONG_PORT | Reason.WRONG_PROTOCOL:
                return explain.explain_wrong_way(attempt, name, standing.rules[0], self._identity)
            case Reason.WRONG_PHASE:
                return explain.explain_wrong_phase(name, standing.rules[0], self._phase)
            case Reason.OTHER_IDENTITY:
                return explain.explain_other_identity(name, standing.rules[0], self._identity)
            case _:
                return explain.explain_rubric(name, standing.origin)

    def refuse_metadata_name(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        return self._deny(
            Reason.METADATA_NAME,
            risk=Risk.METADATA_CREDENTIALS,
            control=_control_of_refusal(attempt, Control.DENY_LINK_LOCAL_METADATA),
            place=PlaceClass.METADATA,
            rule=standing.origin,
            why=explain.explain_metadata_name(name),
        )

    def refuse_unlisted(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        is_held = self._policy.unknown == "ask"
        if is_held:
            why = explain.explain_held(attempt, name, self._identity, self._policy.hold_s)
        elif standing.imitated is not None:
            why = explain.explain_lookalike(attempt, name, standing.imitated, self._identity)
        else:
            why = explain.explain_unlisted(attempt, name, self._identity, standing.place)
        return self._deny(
            Reason.HELD if is_held else standing.reason,
            risk=risk_of_unlisted(attempt, standing, self._phase),
            control=_control_of_refusal(attempt, control_of_unlisted(standing)),
            place=standing.place,
            rule=standing.origin,
            why=why,
        )

    def refuse_question_type(self, attempt: Attempt, name: str, standing: Standing) -> Decision:
        return self._deny(
            Reason.QUERY_TYPE_REFUSED,
            risk=Risk.EXFILTRATION,
            control=Control.OWN_RESOLVER_ONLY,
            place=standing.place,
            rule="builtin:own-resolver",
            why=explain.explain_question_type(name, attempt.query_type or ""),
        )

    # --- refusing answers ----------------------------------------------------------------

    def refuse_own_answer(self, decision: Decision, address: IPAddress) -> Decision:
        return self._deny(
            Reason.OWN_ADDRESS,
            risk=Risk.SSRF,
            control=Control.CHECK_RESOLVED_ADDRESS,
            place=decision.place,
            rule="builtin:own-addresses",
            why=explain.explain_own_address(address),
            address=address,
        )

    def refuse_denied_answer(
        self, name: str, decision: Decision, address: IPAddress, denial: Rule
    ) -> Decision:
        return self._deny(
            Reason.LISTED_DENY,
            risk=denial.risk or Risk.EXFILTRATION,
            control=Control.CHECK_RESOLVED_ADDRESS,
            place=decision.place,
            rule=denial.origin,
            why=explain.explain_denied_answer(name, address, denial),
            address=address,
        )

    def refuse_answer(
        self, attempt: Attempt, name: str, decision: Decision, address: IPAddress, facts: AddressFacts
    ) -> Decision:
        """An answer that the table keeps closed; what has no risk of its own leads inside as well."""
        return self._deny(
            ADDRESS_REASON[facts.address_class],
            risk=facts.row.risk or Risk.SSRF,
            control=Control.CHECK_RESOLVED_ADDRESS,
            place=decision.place,
            rule="builtin:addresses",
            why=explain.explain_answer(attempt, name, address, facts),
            address=address,
        )

    # --- refusing programs, sockets and system calls -------------------------------------

    def refuse_program(self, attempt: Attempt, *, leaves: bool) -> Decision:
        """Refuse to start a program; `leaves` says that one of its options would leave the sandbox."""
        return self._deny(
            Reason.SANDBOX_SWITCHED_OFF if leaves else Reason.PROGRAM_NOT_LISTED,
            risk=Risk.BOUNDARY_TAMPERING,
            control=Control.NAMESPACE_ISOLATION if leaves else Control.EXEC_DENY,
            place=PlaceClass.LOCAL,
            rule="builtin:exec",
            why=explain.explain_unlisted_program(attempt, self._listed, leaves=leaves),
        )

    def refuse_unknown_program(self, attempt: Attempt) -> Decision:
        """Refuse what a run could not find out: which file would start."""
        return replace(self.refuse_program(attempt, leaves=False), why=explain.explain_unknown_file(attempt))

    def refuse_socket(self, text: str, call: SocketCall) -> Decision:
        return self._deny(
            call.reason,
            risk=call.risk,
            control=call.control,
            place=call.place,
            rule="builtin:sockets",
            why=explain.explain_socket(text, call.reason),
        )

    def refuse_call(self, text: str, refused: RefusedCall) -> Decision:
        return self._deny(
            refused.reason,
            # Where it would lead is not said yet: any bytes to anybody, as `classify_socket` calls it too.
            risk=Risk.EXFILTRATION if refused.leads_out else Risk.BOUNDARY_TAMPERING,
            control=REFUSAL_CONTROL[refused.reason],
            place=PlaceClass.UNKNOWN if refused.leads_out else PlaceClass.LOCAL,
            rule=f"filter:{refused.name}",
            why=explain.explain_call(text, refused.why, refused.permit),
        )


def _control_of_pass(attempt: Attempt, control: Control) -> Control:
    if attempt.protocol is Protocol.DNS:
        return Control.OWN_RESOLVER_ONLY
    if attempt.redirected:
        return Control.RECHECK_REDIRECTS
    spelled = (attempt.host, attempt.sni, attempt.authority)
    if any(isinstance(host, Host) and host.was_normalized for host in spelled):
        return Control.CANONICALISE_HOST
    return control


def _control_of_refusal(attempt: Attempt, control: Control) -> Control:
    """How an attempt came about can say more than what refused it."""
    if attempt.protocol is Protocol.DNS:
        return control if control in _SAID_BY_NAME else Control.OWN_RESOLVER_ONLY
    if attempt.redirected:
        return Control.RECHECK_REDIRECTS
    host = attempt.host
    if isinstance(host, Host) and host.address is not None and host.was_normalized:
        return Control.CANONICALISE_HOST
    return control
