"""What the gateway writes down: decisions and outcomes as ledger fields.

The one place that turns a `Decision` into a record, so that every entry of the room
records the same words under the same keys. Values are plain text and integers; the
ledger itself escapes and redacts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from stockade.decision.request import Attempt, Decision
from stockade.net.host import Host, HostRefusal
from stockade.protocol.effects import RecordOutcome
from stockade.vocabulary import Entry, Reason, Verdict
from stockade.vocabulary import Protocol as Spoken


class LedgerWriter(Protocol):
    """The part of a ledger that the gateway uses."""

    def append(
        self, kind: str, fields: Mapping[str, object], on_durable: Callable[[int], None] | None = None
    ) -> int: ...


class Denial(Struct, frozen=True):
    """One kind of refusal, as the summary at the end counts them.

    Attributes:
        name: The name or address alone, by which a question belongs to its connection.
        is_question: A name was asked for, and no connection tried (so far).
        entry: What `exec: allow` would have to list, for a program.
        program: Of a refused system call the file that made it, of a command the file that it would start.
        key: What in the policy would permit a refused system call, empty where nothing does.
        is_script: The command is a script, which its interpreter could run as well.
    """

    target: str
    reason: str
    why: str
    name: str
    is_question: bool = False
    entry: str = ""
    program: str = ""
    key: str = ""
    is_script: bool = False


class Unreached(Struct, frozen=True):
    """A place that was permitted and could not be reached, as the summary counts it."""

    target: str
    outcome: str
    detail: str


class Journal:
    """Writes the records of one run and keeps the counts that its last record states.

    Attributes:
        attempts: Attempts by verdict.
        commands_started: How many of those let through were commands: none of them left the room by that.
        denials: How often each kind of refusal happened; bounded, the rest is counted in `denials_left_out`.
        unreached: How often each permitted place was not reached; bounded as well.
        common_denials: Refusals of what ordinary programs try and go on without, by reason; not in `denials`.
    """

    KEPT_DENIALS = 1000
    FAILURES = frozenset(("resolution-failed", "dial-failed"))

    def __init__(self, ledger: LedgerWriter, policy_digest: str) -> None:
        self._ledger = ledger
        self.policy_digest = policy_digest
        self.attempts: Counter[Verdict] = Counter()
        self.commands_started = 0
        self.denials: Counter[Denial] = Counter()
        self.denials_left_out = 0
        self.common_denials: Counter[tuple[Reason, str]] = Counter()
        self.unreached: Counter[Unreached] = Counter()
        self._under_way: dict[int, Attempt] = {}  # let through, outcome to come

    def attempt(
        self,
        attempt: Attempt,
        decision: Decision,
        recorded: Callable[[int], None] | None,
        *,
        is_common: bool = False,
        key: str = "",
        repeated: int | None = None,
        **more: object,
    ) -> int:
        """Append one attempt; `recorded(seq)` is called when it is durable.

        Args:
            is_common: An ordinary program tries this and goes on without: the summary for
                people leaves it out, the record does not.
            key: What in the policy would permit a refused system call.
            repeated: How many equal ones this record stands for, where they were only counted.
        """
        fields = attempt_fields(attempt, decision)
        fields["policy"] = self.policy_digest
        fields.update(more)
        times = 1
        if repeated is not None:
            fields["repeated"] = times = repeated
        self.attempts[decision.verdict] += times
        self.commands_started += attempt.entry is Entry.EXEC and decision.verdict is not Verdict.DENY
        if decision.verdict is Verdict.DENY and is_common:
            self.common_denials[decision.reason, attempt.program or ""] += times
        elif decision.verdict is Verdict.DENY:
            self._count_denial(_describe_denial(attempt, decision, key), times)
        seq = self._ledger.append("attempt", fields, recorded)
        has_outcome = (
            attempt.host is not None and attempt.query_type is None
        )  # a command and a question have none
        if decision.verdict is not Verdict.DENY and has_outcome:
            self._under_way[seq] = attempt
        return seq

    def outcome(self, outcome: RecordOutcome) -> None:
        """Append what became of an attempt. Nothing waits for it."""
        fields: dict[str, object] = {
            "of": outcome.of,
            "outcome": outcome.outcome,
            "sent_bytes": outcome.sent_bytes,
            "received_bytes": outcome.received_bytes,
        }
        if outcome.detail is not None:
            fields["detail"] = outcome.detail
        if outcome.status is not None:
            fields["status"] = outcome.status
        self._ledger.append("outcome", fields)
        attempt = self._under_way.pop(outcome.of, None)
        if attempt is not None and outcome.outcome in self.FAILURES:
            place = Unreached(target_text(attempt), outcome.outcome, outcome.detail or "")
            if place in self.unreached or len(self.unreached) < self.KEPT_DENIALS:
                self.unreached[place] += 1

    def note(self, kind: str, fields: Mapping[str, object]) -> None:
        """Append a record of another kind."""
        self._ledger.append(kind, fields)

    def _count_denial(self, denial: Denial, times: int) -> None:
        if denial in self.denials or len(self.denials) < self.KEPT_DENIALS:
            self.denials[denial] += times
        else:
            self.denials_left_out += times


def _describe_denial(attempt: Attempt, decision: Decision, key: str) -> Denial:
    host = attempt.host
    name = "" if host is None else host.name if isinstance(host, Host) else host.raw
    is_question = attempt.query_type is not None
    return Denial(
        target=f"{name} (name question)" if is_question else target_text(attempt),
        reason=decision.reason.value,
        why=decision.why,
        name=name,
        is_question=is_question,
        entry=_entry_for(attempt, decision),
        program=(attempt.program if attempt.call else attempt.file) or "",
        key=key,
        is_script=attempt.is_script_of is not None,
    )


def _entry_for(attempt: Attempt, decision: Decision) -> str:
    if not attempt.file or decision.reason not in (Reason.PROGRAM_NOT_LISTED, Reason.SANDBOX_SWITCHED_OFF):
        return ""
    from stockade.decision.explain import offer_entry  # a denial has loaded it already; a start does not

    return offer_entry(attempt) or ""


def attempt_fields(attempt: Attempt, decision: Decision) -> dict[str, object]:
    """The keys of an attempt's record, in the words of `vocabulary`."""
    host = attempt.host
    fields: dict[str, object] = {
        "verdict": decision.verdict.word,
        "risk": decision.risk.value,
        "control": decision.control.value,
        "reason": decision.reason.value,
        "rule": decision.rule,
        "class": decision.place.value,
        "phase": decision.phase.value,
        "identity": decision.identity.value,
        "entry": attempt.entry.value,
        "protocol": attempt.protocol.value,
        "name": host.name if isinstance(host, Host) and host.address is None else None,
        "address": _address_text(host, decision),
        "port": attempt.port or None,
        "method": attempt.method,
        "path": attempt.path,
        "why": decision.why,
    }
    if isinstance(host, HostRefusal):
        fields["raw"] = host.raw
    if decision.verdict is Verdict.PROXY and attempt.protocol is Spoken.TLS:
        fields["inspection"] = "none"  # who, when and how many bytes; nothing inside is seen
    if attempt.query_bytes:
        fields["query_bytes"] = attempt.query_bytes
    if attempt.body_bytes is not None:
        fields["body_bytes"] = attempt.body_bytes
    if attempt.query_type is not None:
        fields["query_type"] = attempt.query_type
    if attempt.socket is not None:
        fields["socket"] = attempt.socket
    if attempt.call is not None:
        fields["call"] = attempt.call
    if attempt.argv:
        fields["argv"] = list(attempt.argv)
    if attempt.program is not None or attempt.call is not None:
        fields["program"] = attempt.program
    if attempt.file is not None:
        fields["file"] = attempt.file
    if attempt.is_script_of is not None:
        fields["interpreter"] = attempt.is_script_of
    if attempt.upgrade is not None:
        fields["upgrade"] = attempt.upgrade
    if decision.permit is not None and decision.permit.through is not None:
        fields["through"] = decision.permit.through.text
    if attempt.redirected:
        fields["redirected"] = True
    _add_other_names(fields, attempt)
    return fields


def _add_other_names(fields: dict[str, object], attempt: Attempt) -> None:
    """Names in the hello or the head, where they differ from the one that was dialled."""
    own = attempt.host.name if isinstance(attempt.host, Host) else None
    for key, other in (("sni", attempt.sni), ("host", attempt.authority)):
        if isinstance(other, HostRefusal):
            fields[key] = other.raw
        elif other is not None and other.name != own:
            fields[key] = other.name


def _address_text(host: Host | HostRefusal | None, decision: Decision) -> str | None:
    if decision.address is not None:
        return str(decision.address)
    if isinstance(host, Host) and host.address is not None:
        return str(host.address)
    return None


def target_text(attempt: Attempt) -> str:
    """The destination in one short phrase, for tables and summaries."""
    if attempt.call is not None:
        return attempt.call
    if attempt.program_name:
        return attempt.program_name
    if attempt.socket is not None:
        return attempt.socket
    if attempt.host is None:
        return "?"
    name = attempt.host.name if isinstance(attempt.host, Host) else attempt.host.raw
    if attempt.query_type is not None:
        return f"{name} ({attempt.query_type})"
    return f"{name}:{attempt.port}" if attempt.port else name
