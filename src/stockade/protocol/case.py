"""From an attempt to a recorded decision: judge the name, resolve, judge the answers, record.

The order here is the promise. A name is judged before anybody is asked about it, so a
denied name leaks nothing. All answers are judged before one is dialled. What was
decided is on record before it is acted on, since `record` returns only after `Recorded`
and nobody dials without it. One attempt gives one record, and one more for each answer
of a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol as Interface

from msgspec import Struct

from stockade.decision.request import Attempt, Decision, Permit
from stockade.errors import ProtocolViolation
from stockade.net.address import IPAddress
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, HostRefusal
from stockade.protocol.content import Holding
from stockade.protocol.effects import Dial, Hold, Record, RecordOutcome, Resolve
from stockade.protocol.events import Dialed, DialFailed, HoldAnswered, PolicyReplaced, Recorded, Resolved
from stockade.protocol.line import Line, Steps, wait_for
from stockade.protocol.refusal import reason_of
from stockade.vocabulary import REASONS, Entry, Protocol, Reason, Verdict

Objection = tuple[Reason, str | None]

# Stands for the destination of bytes out of which none could be read.
NOWHERE = HostRefusal("", "no destination could be read")


class Judge(Interface):
    """Who decides: the engine, or the room that asks the engine in force.

    After a policy was replaced, the same object answers by the new one. After a person
    allowed a held attempt, it answers what that means; nobody else can make a permit.
    `refuse` words a denial for something that the flow found.
    """

    def decide(self, attempt: Attempt, addresses: tuple[IPAddress, ...] | None = None) -> Decision: ...

    def refuse(self, attempt: Attempt, reason: Reason, why: str | None = None) -> Decision: ...

    def protocol_for(self, host: Host, port: int) -> Protocol | None: ...


class Case(Struct):
    """One attempt on its way from decision to outcome.

    Attributes:
        addresses: The answers that were judged; None if only the name was.
        failure: Why a permitted name gave no addresses, else None.
        seq: Number of its record, 0 before that.
        sent_bytes: To the destination; `received_bytes` from it.
        status: Of the HTTP answer.
    """

    attempt: Attempt
    decision: Decision
    addresses: tuple[IPAddress, ...] | None = None
    failure: str | None = None
    seq: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    status: int | None = None

    @property
    def permit(self) -> Permit | None:
        """Leave to dial; None for a denial and for a name without addresses."""
        return self.decision.permit if self.decision.verdict is not Verdict.DENY else None


class Docket:
    """The cases of one connection, one at a time.

    Attributes:
        pending: What is known of an attempt that has no record yet, in case the client goes.
        running: The permitted case that is recorded and has no outcome yet.
        name_at: The name behind an address that the room gave out, for clients that look
            names up themselves and then give a proxy the number.
    """

    __slots__ = (
        "_has_policy_moved",
        "_secrets",
        "decision_id",
        "entry",
        "holding",
        "judge",
        "line",
        "name_at",
        "pending",
        "running",
    )

    def __init__(
        self,
        line: Line,
        judge: Judge,
        entry: Entry,
        decision_id: Callable[[int], str],
        name_at: Callable[[str], Host | None] | None,
        secrets: Mapping[str, str],
        holding: Holding,
    ) -> None:
        self.line = line
        self.judge = judge
        self.entry = entry
        self.decision_id = decision_id
        self.name_at = name_at
        self._secrets = secrets
        self.holding = holding
        self.pending: Attempt | None = None
        self.running: Case | None = None
        self._has_policy_moved = False

    def translate(self, place: Endpoint) -> Endpoint:
        """The name behind a number that this room gave out for it, else the place as it is."""
        host = place.host
        if self.name_at is None or not isinstance(host, Host) or host.address is None:
            return place
        name = self.name_at(host.name)
        return place if name is None else Endpoint(name, place.port)

    def credential_for(self, case: Case) -> tuple[str, str] | None:
        """The field that the gateway puts into a permitted request, None for none."""
        credential = case.decision.credential
        return None if credential is None else (credential.header, self._secrets[credential.env])

    # --- judging ---------------------------------------------------------------------

    def weigh(
        self,
        attempt: Attempt,
        objection: Objection | None = None,
        addresses: tuple[IPAddress, ...] | None = None,
    ) -> Steps[Case]:
        """Judge a name and its answers, without recording the result.

        Args:
            objection: What the flow itself holds against the attempt. It denies what the
                engine would permit, and never the other way round.
            addresses: Answers that are known already; then nothing is resolved.
        """
        self.pending = attempt
        decision = self._decide(attempt, objection, addresses)
        if decision.reason is Reason.HELD and decision.verdict is Verdict.DENY:
            decision = yield from self._ask(attempt, objection, decision, addresses)
        if decision.verdict is Verdict.DENY or addresses is not None:
            return Case(attempt, decision, addresses)
        host = attempt.host
        assert isinstance(host, Host)  # `_decide` denies everything else
        if host.address is not None:
            addresses = (host.address,)
        else:
            self.line.emit(Resolve(host))
            resolved = yield from wait_for(Resolved)
            if not resolved.addresses:
                return Case(attempt, decision, None, resolved.error or "no-address")
            addresses = resolved.addresses
        return Case(attempt, self._decide(attempt, objection, addresses), addresses)

    def _decide(
        self, attempt: Attempt, objection: Objection | None, addresses: tuple[IPAddress, ...] | None
    ) -> Decision:
        decision = self.judge.decide(attempt, addresses)
        if decision.verdict is Verdict.DENY:
            if objection is not None and decision.reason is Reason.HELD:
                return self.refuse(attempt, *objection)  # nobody needs to be asked about a contradiction
            return decision
        if objection is not None:
            return self.refuse(attempt, *objection)
        if not isinstance(attempt.host, Host):
            return self.refuse(attempt, Reason.MALFORMED_HOST)
        if decision.limit_bytes is not None and (attempt.body_bytes or 0) > decision.limit_bytes:
            return self.refuse(attempt, Reason.BODY_TOO_LARGE)
        if addresses is not None and decision.permit is None:
            return self.refuse(attempt, Reason.ADDRESS_NOT_JUDGED)
        return decision

    def refuse(self, attempt: Attempt, reason: Reason, detail: str | None = None) -> Decision:
        """A denial for something that only the connection shows. What it says is never more than no."""
        sentence = REASONS[reason]
        why = None if detail is None else f"{sentence[0].upper()}{sentence[1:]}: {detail}"
        denial = self.judge.refuse(attempt, reason, why)
        assert denial.verdict is Verdict.DENY
        return denial

    def _ask(
        self,
        attempt: Attempt,
        objection: Objection | None,
        decision: Decision,
        addresses: tuple[IPAddress, ...] | None,
    ) -> Steps[Decision]:
        """Hold the attempt until a person, the clock or a new policy says what is to be."""
        self.pending = None
        self.line.emit(Record(attempt, decision))
        yield from wait_for(Recorded)
        self.line.set_deadline(self.line.limits.hold_s)
        self.line.emit(Hold(attempt, decision, self.line.limits.hold_s))
        while True:
            event = yield
            if type(event) is HoldAnswered:
                answer = self._hear(attempt, objection, addresses, event)
                break
            if self.line.is_late(event):
                answer = self.refuse(attempt, Reason.HOLD_TIMED_OUT)
                break
            if type(event) is PolicyReplaced:
                answer = self._decide(attempt, objection, addresses)
                if answer.reason is not Reason.HELD:
                    break
        self.line.clear_deadline()
        return answer

    def _hear(
        self,
        attempt: Attempt,
        objection: Objection | None,
        addresses: tuple[IPAddress, ...] | None,
        event: HoldAnswered,
    ) -> Decision:
        if not event.allowed:
            return self.refuse(attempt, Reason.HOLD_REFUSED, event.by)
        answer = self._decide(attempt, objection, addresses)
        if answer.reason is Reason.HELD:  # the answer has not reached the judge, and only it makes permits
            return self.refuse(attempt, Reason.HOLD_TIMED_OUT)
        return answer

    def weigh_refused(self, attempt: Attempt, violation: ProtocolViolation) -> Case:
        """The case of bytes that could not be read: denied, for the better reason of two."""
        decision = self.judge.decide(attempt)
        if decision.verdict is not Verdict.DENY or decision.reason is Reason.HELD or attempt.host is NOWHERE:
            decision = self.refuse(attempt, reason_of(violation), violation.message)
        return Case(attempt, decision)

    # --- recording -------------------------------------------------------------------

    def record(self, case: Case) -> Steps[None]:
        """Write the decision down; it may be acted on when this returns."""
        while True:
            self.pending = None
            self._has_policy_moved = False
            self.line.emit(Record(case.attempt, case.decision))
            case.seq = (yield from wait_for(Recorded)).seq
            if case.permit is None:
                break
            if not self._has_policy_moved or (denial := self._reconsider(case)) is None:
                self.running = case
                break
            self.finish(case, "cut", denial.reason.value)  # the record said yes, and nothing came of it
            case.decision = denial
        if case.failure is not None:
            self.finish(case, "resolution-failed", case.failure)

    def record_unused(self, attempt: Attempt) -> Steps[None]:
        """A connection on which nothing was said: the verdict that the name has, and that outcome.

        Browsers open connections in advance and drop them; calling that a denial would be wrong.
        """
        case = Case(attempt, self.judge.decide(attempt))
        yield from self.record(case)
        if case.decision.verdict is not Verdict.DENY:
            self.finish(case, "unused")

    def finish(self, case: Case, outcome: str, detail: str | None = None) -> None:
        """Say what became of a recorded case."""
        if self.running is case:
            self.running = None
        self.line.emit(
            RecordOutcome(
                of=case.seq,
                outcome=outcome,
                detail=detail,
                sent_bytes=case.sent_bytes,
                received_bytes=case.received_bytes,
                status=case.status,
            )
        )

    # --- interruptions ---------------------------------------------------------------

    def policy_moved(self) -> None:
        """Judge the running case again and cut it if it is no longer permitted."""
        self._has_policy_moved = True
        if self.running is not None and (denial := self._reconsider(self.running)) is not None:
            self.cut(denial)

    def _reconsider(self, case: Case) -> Decision | None:
        """The denial that the policy in force has for a case it once permitted, else None."""
        decision = self._decide(case.attempt, None, case.addresses)
        if decision.verdict is not Verdict.DENY:
            return None
        return self.refuse(case.attempt, Reason.POLICY_CHANGED, decision.why)

    def cut(self, denial: Decision) -> None:
        """End the connection because of this denial of what runs on it."""
        case = self.running
        if case is not None:
            self.line.emit(Record(case.attempt, denial))
            self.finish(case, "cut", denial.reason.value)
        self.line.close(reset=True)

    def client_gone(self) -> None:
        """The client reset the connection: what was begun still gets its record."""
        if self.running is not None:
            self.finish(self.running, "reset")
        elif self.pending is not None:
            self.line.emit(Record(self.pending, self.judge.decide(self.pending)))
        self.line.close(reset=True)

    # --- dialling --------------------------------------------------------------------

    def dial(self, case: Case) -> Steps[str | None]:
        """Connect to what a recorded case permits; returns None, or a word for what went wrong."""
        assert case.permit is not None
        assert self.running is case
        self.line.emit(Dial(case.permit))
        while True:
            event = yield
            if type(event) is Dialed:
                self.line.is_connected = True
                return None
            if type(event) is DialFailed:
                return event.error
