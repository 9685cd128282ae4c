"""What a learner takes home: an in-toto statement of the half day, signed with the learner's key.

It says what was done, the policy that was written with its two numbers, which evidence was made, and
the eight answers. What can be computed again is: the policy stands in it as text, and whoever
verifies replays the bank with it. What cannot be (steps ticked by hand, who the learner is) is
called a claim of the learner's, in the record itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from stockade.errors import IntegrityError, UserError
from stockade.evidence.envelope import sign
from stockade.evidence.keys import write_public_key
from stockade.evidence.points import STATEMENT_TYPE, Descriptor
from stockade.evidence.review import pick_answers
from stockade.lab.workshop import STEPS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from stockade.lab.pack.pack import Pack

WORKSHOP_TYPE = "urn:stockade:lab-workshop:v1"
NAME_LIMIT = 200
POLICY_LIMIT = 256 << 10
CLAIMS = (
    "The learner's name, the ticked steps and the answers are the learner's word.",
    "The two numbers are computed again from the policy's text and the bank when this record is verified.",
    "The evidence is named by digest: verify its folder to see what it shows.",
    "The signature says which key signed and not when; the time is that of the learner's machine.",
)


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Keys are camelCase, as in in-toto; one that is not known is an error."""


class Played(Part, frozen=True):
    """The bank that the policy was replayed on."""

    name: str
    digest: str


class Replayed(Part, frozen=True):
    """What the bank's replay under the learner's policy came to; numbers of events.

    Attributes:
        leaks: Let through, and should not have been.
        breakages: Refused, and should not have been.
        unwatched: Let through as they should be, but by the other of `allow` and `proxy`.
        right: Called as the key says.
        total: All events that were replayed.
        waiting: Not judged, since the line does not show what decides.
    """

    leaks: int
    breakages: int
    unwatched: int
    right: int
    total: int
    waiting: int


class Policy(Part, frozen=True):
    """The learner's policy."""

    text: str
    sha256: str
    replay: Replayed


class Evidence(Part, frozen=True):
    """The evidence that the learner made, as it verified when this record was written."""

    statement_sha256: str
    result: str
    counts: dict[str, int]
    signed_by: str


class HalfDay(Part, frozen=True):
    """The predicate.

    Attributes:
        made: RFC 3339, in UTC.
        done: Keys of the steps that the learner ticked, in the order of the half day.
        answers: The eight, by key.
        claims: How far each part can be believed.
    """

    learner: str
    made: str
    software: str
    bank: Played
    done: list[str]
    policy: Policy
    evidence: Evidence
    answers: dict[str, str]
    public_key: str
    claims: list[str]


class WorkshopStatement(Struct, frozen=True, kw_only=True):
    """in-toto Statement v1 about the learner's policy and evidence."""

    subject: list[Descriptor]
    predicate: HalfDay
    type: str = field(name="_type", default=STATEMENT_TYPE)
    predicate_type: str = field(name="predicateType", default=WORKSHOP_TYPE)


Replay = Callable[[str], Replayed]


def replay_on(bank: Pack) -> Replay:
    """Replays a bank under a policy's text; the replay raises `UserError` for a text that is no policy."""
    from stockade.lab.game.book import Book
    from stockade.lab.game.replay import replay_text

    book = Book(bank)

    def replay(text: str) -> Replayed:
        found = replay_text(text, book)
        return Replayed(
            leaks=len(found.leaks),
            breakages=len(found.breakages),
            unwatched=len(found.unwatched),
            right=found.right,
            total=found.total,
            waiting=len(found.waiting),
        )

    return replay


def see_evidence(folder: Path) -> Evidence:
    """What a folder of evidence says, if it verifies now.

    Raises:
        UserError: There is none, or it is not finished.
        IntegrityError: It does not verify.
    """
    from stockade.evidence.verify import verify_evidence

    report = verify_evidence(folder)
    if not report.is_sealed:
        raise UserError("evidence-open", f"{folder} holds no finished evidence")
    if report.faults:
        fault = report.faults[0]
        raise IntegrityError("evidence-fault", f"{fault.file}: {fault.problem}")
    assert report.statement is not None  # sealed and without a fault
    return Evidence(
        statement_sha256=hashlib.sha256(report.payload).hexdigest(),
        result=report.statement.predicate.result,
        counts=dict(report.statement.predicate.points.verdict.counts),
        signed_by=report.signed_by,
    )


def verify_folder(path: str) -> dict[str, Any]:
    """What `stockade evidence verify` says of a folder, for the page, with its digest and exit code.

    Raises:
        UserError: There is no such folder, or it may not be looked at.
    """
    from stockade.evidence.report import report_lines, report_object
    from stockade.evidence.verify import verify_evidence

    try:
        folder = Path(path.strip() or "?").expanduser().absolute()
    except RuntimeError as error:  # `~somebody` who has no home here
        raise UserError("no-evidence", f"{path[:80]!r}: {error}") from error
    report = verify_evidence(folder)
    return {
        **report_object(folder, report),
        "lines": report_lines(folder, report),
        "exit_code": report.exit_code,
        "statement_sha256": hashlib.sha256(report.payload).hexdigest() if report.verifies else None,
    }


def workshop_record(
    *,
    learner: str,
    made: str,
    software: str,
    bank: Played,
    done: tuple[str, ...],
    policy_text: str,
    replayed: Replayed,
    evidence: Evidence,
    answers: Mapping[str, str],
    key: Ed25519PrivateKey,
) -> bytes:
    """The file that a learner downloads.

    Raises:
        UserError: An answer is missing, or the name or the policy is too long or empty.
    """
    name = learner.strip()
    if not name or len(name) > NAME_LIMIT:
        raise UserError("bad-name", f"a name has 1 to {NAME_LIMIT} characters")
    if not policy_text.strip() or len(policy_text.encode()) > POLICY_LIMIT:
        raise UserError("bad-policy", f"a policy of at most {POLICY_LIMIT >> 10} KiB is needed")
    digest = hashlib.sha256(policy_text.encode()).hexdigest()
    said = HalfDay(
        learner=name,
        made=made,
        software=software,
        bank=bank,
        done=[step.key for step in STEPS if step.key in done],
        policy=Policy(text=policy_text, sha256=digest, replay=replayed),
        evidence=evidence,
        answers=pick_answers(answers),
        public_key=write_public_key(key.public_key()).decode(),
        claims=list(CLAIMS),
    )
    statement = WorkshopStatement(subject=list_subjects(said), predicate=said)
    return sign(msgspec.json.encode(statement, order="sorted"), key)


def list_subjects(said: HalfDay) -> list[Descriptor]:
    """What the statement is about: the policy and the evidence, by digest."""
    digests = {"policy": said.policy.sha256, "evidence": said.evidence.statement_sha256}
    return [Descriptor(name=name, digest={"sha256": digest}) for name, digest in digests.items()]
