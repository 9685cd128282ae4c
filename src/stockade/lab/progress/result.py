"""The signed result of a round: an in-toto statement in a DSSE envelope, checked by counting again.

The signature says which key wrote it. It does not say that the player played: so whoever verifies it draws
the round from its seed again and counts the points of its answers again, and a number that does not follow
from them is refused, however well it is signed. What cannot be checked is who answered, and how fast.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field

from stockade.errors import IntegrityError, UserError
from stockade.evidence.points import STATEMENT_TYPE, Descriptor
from stockade.lab.game.book import Book
from stockade.lab.game.draw import draw_round, parse_seed
from stockade.lab.game.present import tell_time
from stockade.lab.game.rounds import Conflict, Given, RoundState, Step
from stockade.lab.game.score import HINT_COSTS, parse_answer
from stockade.lab.game.standing import add_up, points_of
from stockade.lab.game.tiers import Clock
from stockade.lab.pack.pack import Pack
from stockade.lab.progress.people import LONGEST_NAME

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

RESULT_TYPE = "urn:stockade:lab-result:v1"
RULES = 1
"""Version of draw, points and grade; a result is counted by the rules that it was played under."""

LONGEST_MS = 366 * 86_400_000
"""For one event. A round may lie open for long, and a clock may be set: whatever is longer is not told."""


class ResultEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event: what was asked, answered, and what it brought."""

    scenario: str
    decision: str
    risk: str
    control: str
    ms: int | None
    hints: int
    points: int


class RoundResult(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The predicate. `started` and `ended` are the clock of the machine that signed."""

    rules: int
    kind: Literal["round"]
    seed: str
    tier: int
    clock: Clock
    learner: str
    started: str
    ended: str
    events: tuple[ResultEvent, ...]
    points: int
    percent: float
    grade: str
    leaks: int
    blocks: int
    public_key: str


class ResultStatement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """in-toto Statement v1 about the pack that was played."""

    subject: tuple[Descriptor, ...]
    predicate: RoundResult
    type: str = field(name="_type", default=STATEMENT_TYPE)
    predicate_type: str = field(name="predicateType", default=RESULT_TYPE)


class Verified(Struct, frozen=True, kw_only=True):
    """A result that follows from its own answers.

    Attributes:
        sha256: Digest of the file, by which a share card names it.
        is_pinned: The key is the one that was asked for.
    """

    result: RoundResult
    bank: str
    bank_digest: str
    signed_by: str
    is_pinned: bool
    sha256: str


def sign_result(book: Book, state: RoundState, learner: str, key: Ed25519PrivateKey) -> bytes:
    """The result of a finished round as a file; the same round and key give the same bytes.

    Raises:
        Conflict: The round is not finished, or it is a drill.
    """
    from stockade.evidence.envelope import sign
    from stockade.evidence.keys import write_public_key

    if state.kind != "round" or state.status != "done" or state.tier is None or state.ended_ms is None:
        raise Conflict("no-result", "only a round that was played to its end has a result")
    standing = add_up(book, state)
    result = RoundResult(
        rules=RULES,
        kind="round",
        seed=state.seed,
        tier=state.tier,
        clock=state.clock,
        learner=learner,
        started=tell_time(state.started_ms),
        ended=tell_time(state.ended_ms),
        events=tuple(_tell_event(book, state, index) for index in range(len(state.steps))),
        points=standing.points,
        percent=standing.percent,
        grade=str(standing.grade),
        leaks=len(standing.leaks),
        blocks=len(standing.blocks),
        public_key=write_public_key(key.public_key()).decode(),
    )
    subject = (Descriptor(name=book.pack.name, digest={"sha256": book.pack.digest}),)
    return sign(msgspec.json.encode(ResultStatement(subject=subject, predicate=result), order="sorted"), key)


def _tell_event(book: Book, state: RoundState, index: int) -> ResultEvent:
    step, points = state.steps[index], points_of(book, state, index)
    assert step.given is not None
    assert points is not None
    answer, ms = step.given.answer, step.given.ms
    return ResultEvent(
        scenario=step.scenario,
        decision=answer.decision.word,
        risk=str(answer.risk),
        control=str(answer.control),
        ms=None if ms is not None and ms > LONGEST_MS else ms,  # neither brings a bonus
        hints=step.hints,
        points=points.total,
    )


def verify_result(data: bytes, pack: Pack, key: str | None = None) -> Verified:
    """A result, if it is signed and everything in it follows from its seed and its answers.

    Args:
        key: Fingerprint of the key that must have signed; None takes the one that the result names.

    Raises:
        IntegrityError: It is not; the message names the first event that does not fit.
    """
    from stockade.evidence.envelope import parse_envelope, verify_by_named_key

    envelope = parse_envelope(data)
    try:
        statement = msgspec.json.decode(envelope.payload, type=ResultStatement)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError("bad-result", f"this is no result of a round: {error}") from error
    if msgspec.json.encode(statement, order="sorted") != envelope.payload:  # a key twice, say: readers differ
        raise IntegrityError("bad-result", "this result is not written as we write it")
    result = statement.predicate
    signed_by = verify_by_named_key(envelope, result.public_key, key)
    if len(result.learner) > LONGEST_NAME:
        raise IntegrityError("bad-result", f"a learner's name has at most {LONGEST_NAME} characters")
    _verify_subject(statement, pack)
    _count_again(result, Book(pack))
    return Verified(
        result=result,
        bank=pack.name,
        bank_digest=pack.digest,
        signed_by=signed_by,
        is_pinned=key is not None,
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _verify_subject(statement: ResultStatement, pack: Pack) -> None:
    if (statement.type, statement.predicate_type) != (STATEMENT_TYPE, RESULT_TYPE):
        raise IntegrityError(
            "bad-result", f"this is no result of a round but {statement.predicate_type[:80]!r}"
        )
    if statement.predicate.rules != RULES:
        raise IntegrityError("other-rules", f"played under rules {statement.predicate.rules}, not {RULES}")
    if [one.digest for one in statement.subject] != [{"sha256": pack.digest}]:
        raise IntegrityError(
            "other-bank",
            "this result is about other scenarios, or another version of them",
            f"it was compared with {pack.name!r}, sha256 {pack.digest}; --pack PACK compares it with another",
        )


def _count_again(result: RoundResult, book: Book) -> None:
    """Draw, points and grade from seed and answers; whatever differs is named."""
    try:
        seed = parse_seed(result.seed)
        drawn = draw_round(book.pack, seed, result.tier)
    except UserError as error:
        raise IntegrityError("bad-result", f"no round can be drawn: {error.message}") from error
    if seed != result.seed:
        raise IntegrityError("bad-result", "the seed is not written as we write it")
    if len(result.events) != len(drawn):
        raise IntegrityError("bad-result", f"a round has {len(drawn)} events, not {len(result.events)}")
    steps = []
    for number, (event, scenario) in enumerate(zip(result.events, drawn, strict=True), 1):
        if event.scenario != scenario:
            raise IntegrityError(
                "other-draw", f"event {number} of this seed is {scenario}, not {event.scenario[:20]!r}"
            )
        steps.append(_read_step(event, number))
    state = RoundState(
        id="", kind="round", tier=result.tier, seed=result.seed, bank=book.pack.digest, clock=result.clock,
        steps=tuple(steps), started_ms=_read_time(result.started), ended_ms=_read_time(result.ended),
    )  # fmt: skip
    _compare(result, book, state)


def _read_step(event: ResultEvent, number: int) -> Step:
    try:
        answer = parse_answer(event.decision, event.risk, event.control)
    except UserError as error:
        raise IntegrityError("bad-result", f"event {number}: {error.message}") from error
    if not 0 <= event.hints <= len(HINT_COSTS) or not 0 <= (event.ms or 0) <= LONGEST_MS:
        raise IntegrityError("bad-result", f"event {number}: hints or time that cannot be")
    return Step(event.scenario, None, event.hints, Given(answer, event.ms))


def _compare(result: RoundResult, book: Book, state: RoundState) -> None:
    for index, event in enumerate(result.events):
        points = points_of(book, state, index)
        assert points is not None  # each step has an answer
        if points.total != event.points:
            raise IntegrityError(
                "wrong-points",
                f"event {index + 1} ({event.scenario}) brings {points.total} points, not {event.points}",
            )
    standing = add_up(book, state)
    counted: dict[str, object] = {
        "points": standing.points,
        "percent": standing.percent,
        "grade": standing.grade,
        "leaks": len(standing.leaks),
        "blocks": len(standing.blocks),
    }
    for name, value in counted.items():
        said = getattr(result, name)
        if said != value:
            raise IntegrityError(
                "wrong-result", f"the answers give {name} {value}, and it says {str(said)[:20]!r}"
            )
    if state.ended_ms is not None and state.ended_ms < state.started_ms:
        raise IntegrityError("bad-result", "it ended before it started")


def _read_time(text: str) -> int:
    """RFC 3339 as we write it; any other text is refused, so that one moment has one spelling."""
    try:
        ms = int(datetime.fromisoformat(text).timestamp()) * 1000
        is_ours = tell_time(ms) == text
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise IntegrityError("bad-result", f"this is no time: {text[:40]!r}") from error
    if not is_ours:
        raise IntegrityError("bad-result", f"this time is not written as we write it: {text[:40]!r}")
    return ms
