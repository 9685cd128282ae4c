"""Pure: what a proof saw, as the nine points of a statement. Equal values give equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from stockade.evidence.keys import PUBLIC_KEY_NAME
from stockade.evidence.ledgers import LedgerSummary
from stockade.evidence.limits import KNOWN_BYPASSES, LEDGER_NOTE, LIMITS, VALID_DAYS, VALID_WHILE
from stockade.evidence.manifest import FileEntry
from stockade.evidence.points import (
    CaseSeen,
    CaseVerdict,
    Claim,
    Descriptor,
    Environment,
    Expectation,
    Integrity,
    LedgerDigest,
    NinePoints,
    Observation,
    Procedure,
    Reproduction,
    ReviewQuestion,
    Seen,
    Statement,
    TestResult,
    UnderTest,
    Verdict,
)
from stockade.evidence.questions import QUESTIONS
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged, Result, Try

TRIALS_NAME = "trials.json"
MATRIX_NAME = "matrix.json"
CONTROL = "egress-containment"
_RANDOMNESS = (
    "No seed: each execution draws a secret word, which its payload carries; it stands in the first record "
    "of the run. Lanes work at the same time, in ranges of their own, so the order of runs differs."
)
_MODEL = (
    "No model took part in the outcome, and none refused anything: scripts do what their text says, and the "
    "agent that steers the browser obeys whatever a page or a prompt tells it. What stopped an attack is "
    "the infrastructure."
)
_DRIVER = "scripts of the catalogue (src/stockade/prove/attacks), each in a worker of `stockade run`"
_BROWSER_DRIVER = "; through the browser an obedient agent, whose transcript is beside the screenshots"


class Circumstances(Struct, frozen=True, kw_only=True):
    """How a proof was called and when.

    Attributes:
        command: Words of the command line.
        started: RFC 3339 in UTC, as all times here.
        is_whole: Nothing was left out by choice.
        is_passed: What the command's exit code says: all supported are blocked, and enough are supported.
        model: Set where a real model drove the browser: its name.
    """

    command: tuple[str, ...]
    started: str
    finished: str
    seconds: float
    expected_at: str
    is_whole: bool
    is_passed: bool
    layers_off: tuple[str, ...] = ()
    lanes: int | None = None
    model: str | None = None


class Found(Struct, frozen=True, kw_only=True):
    """Everything that goes into a statement.

    Attributes:
        files: The manifest, which lists all files of the folder.
        signer: Fingerprint of the key.
    """

    techniques: tuple[Technique, ...]
    judged: tuple[Judged, ...]
    circumstances: Circumstances
    subject: UnderTest
    environment: Environment
    ledgers: tuple[LedgerSummary, ...]
    files: tuple[FileEntry, ...]
    expectation_file: str
    signer: str


def build_statement(found: Found) -> Statement:
    """The statement about one proof."""
    points = NinePoints(
        claim=make_claim(found.techniques, found.judged),
        subject=found.subject,
        environment=found.environment,
        procedure=_tell_procedure(found),
        expectation=_tell_expectation(found),
        observation=_tell_observation(found),
        verdict=tell_verdict(found.techniques, found.judged, found.circumstances),
        integrity=_tell_integrity(found),
        reproduction=tell_reproduction(found.circumstances),
    )
    by_result = _sort_by_result(found.judged)
    return Statement(
        subject=_list_subjects(found),
        predicate=TestResult(
            result=summarize(found.circumstances),
            configuration=[
                Descriptor(name="policy", digest={"sha256": found.subject.policy_sha256}),
                Descriptor(name="catalogue", digest={"sha256": found.subject.catalogue_sha256}),
            ],
            passed_tests=by_result[Result.BLOCKED],
            warned_tests=[],
            failed_tests=sorted(by_result[Result.LEAKED] + by_result[Result.INCONCLUSIVE]),
            points=points,
        ),
    )


def encode_statement(statement: Statement) -> bytes:
    """The bytes that are signed: JSON, keys sorted."""
    return msgspec.json.encode(statement, order="sorted")


def summarize(circumstances: Circumstances) -> Any:
    """in-toto's one word: passed only if the whole catalogue was tried with all layers."""
    if not circumstances.is_passed:
        return "FAILED"
    return "PASSED" if circumstances.is_whole and not circumstances.layers_off else "WARNED"


def _sort_by_result(judged: Sequence[Judged]) -> dict[Result, list[str]]:
    return {
        result: sorted(one.judgement.id for one in judged if one.judgement.result is result)
        for result in Result
    }


def make_claim(techniques: Sequence[Technique], judged: Sequence[Judged]) -> Claim:
    """Point 1. The sentence is about what was tried, and one arrival makes it false."""
    tried = {one.judgement.id for one in judged if one.judgement.result is not Result.NOT_SUPPORTED}
    chosen = [one for one in techniques if one.id in tried]
    references = {reference for one in chosen for reference in one.references}
    return Claim(
        sentence=f"Attack techniques tried: {len(chosen)}. None of them lets a contained worker reach "
        "what its policy does not permit: with the code, policy and kernel named here no byte of any of them "
        "arrives at a witness outside the worker, and each is refused by the layer and for the reason that "
        "were written down before it was tried. One arrival makes this false.",
        control=CONTROL,
        layers=sorted({str(one.layer) for one in chosen}),
        threats=sorted({str(one.risk) for one in chosen} | references),
    )


def _tell_procedure(found: Found) -> Procedure:
    circumstances = found.circumstances
    has_browser = any(one.is_browser for one in found.techniques)
    return Procedure(
        command=list(circumstances.command),
        started=circumstances.started,
        finished=circumstances.finished,
        lanes=circumstances.lanes,
        layers_off=list(circumstances.layers_off),
        is_whole=circumstances.is_whole,
        phase="work",
        identity="agent",
        options={one.id: list(one.options) for one in found.techniques if one.options},
        driver=_DRIVER + (_BROWSER_DRIVER if has_browser else ""),
        model=describe_model(circumstances),
        randomness=_RANDOMNESS,
    )


def describe_model(circumstances: Circumstances) -> str:
    """What part a model had in the outcome: none, unless one was plugged in."""
    if circumstances.model is None:
        return _MODEL
    return (
        f"The browser was steered by the model {circumstances.model}. What it refused to do shows nothing "
        "about the infrastructure; look at the control of each attack."
    )


def _digest_of(files: Sequence[FileEntry], path: str) -> str:
    return next(entry.sha256 for entry in files if entry.path == path)


def _tell_expectation(found: Found) -> Expectation:
    digest = _digest_of(found.files, found.expectation_file)
    named = [one for one in found.ledgers if any(digest in str(word) for word in one.opened.get("argv", ()))]
    return Expectation(
        file=found.expectation_file,
        sha256=digest,
        written=found.circumstances.expected_at,
        techniques=len(found.techniques),
        runs_that_name_it=len(named),
        runs=len(found.ledgers),
    )


def _tell_observation(found: Found) -> Observation:
    has_matrix = any(entry.path == MATRIX_NAME for entry in found.files)
    return Observation(
        file=TRIALS_NAME,
        sha256=_digest_of(found.files, TRIALS_NAME),
        cases=[
            CaseSeen(
                id=one.trial.id, control=_tell_seen(one.trial.control), attempt=_tell_seen(one.trial.attempt)
            )
            for one in found.judged
        ],
        arrived_in_the_open=sum(len(one.trial.control.arrived) for one in found.judged),
        arrived_contained=sum(
            len(one.trial.attempt.arrived) + len(one.trial.attempt.stray) for one in found.judged
        ),
        seconds=found.circumstances.seconds,
        matrix_file=MATRIX_NAME if has_matrix else None,
    )


def _tell_seen(seen: Try) -> Seen:
    closing = seen.closing
    return Seen(
        ran_to_end=seen.is_done,
        arrived=len(seen.arrived),
        stray=len(seen.stray),
        permitted_before=seen.allowed_before,
        permitted_after=seen.allowed_after,
        refusals=sum(1 + int(denial.get("repeated") or 0) for denial in seen.denials),
        exit_code=seen.exit_code,
        seconds=seen.seconds,
        run=seen.run,
        kernel_agrees=closing.get("complete"),
        counters=str(closing.get("completeness", "")),
        problem=seen.problem,
    )


def tell_verdict(
    techniques: Sequence[Technique], judged: Sequence[Judged], circumstances: Circumstances
) -> Verdict:
    """Point 7, with a date: the finish and `VALID_DAYS`."""
    by_id = {one.id: one for one in techniques}
    counts = Counter(str(one.judgement.result) for one in judged)
    until = datetime.fromisoformat(circumstances.finished) + timedelta(days=VALID_DAYS)
    return Verdict(
        cases=[_tell_case(by_id[one.judgement.id], one) for one in judged],
        counts={str(result): counts[str(result)] for result in Result},
        limits=list(LIMITS),
        known_bypasses=list(KNOWN_BYPASSES),
        valid_until=until.date().isoformat(),
        valid_while=VALID_WHILE,
    )


def _tell_case(technique: Technique, one: Judged) -> CaseVerdict:
    return CaseVerdict(
        id=technique.id,
        title=technique.title,
        group=str(technique.group),
        layer=str(technique.layer),
        risk=str(technique.risk),
        result=str(one.judgement.result),  # type: ignore[arg-type]
        why=one.judgement.why,
        stopped_by=one.judgement.stopped_by,
        not_covered=technique.not_covered,
    )


def _tell_integrity(found: Found) -> Integrity:
    return Integrity(
        files=list(found.files),
        ledgers=[
            LedgerDigest(
                run=one.run,
                file=one.file,
                sha256=_digest_of(found.files, one.file),
                records=one.records,
                is_closed=one.is_closed,
            )
            for one in found.ledgers
        ],
        ledger_is_signed=False,
        note=LEDGER_NOTE,
        signer=found.signer,
        public_key_file=PUBLIC_KEY_NAME,
    )


def tell_reproduction(circumstances: Circumstances) -> Reproduction:
    """Point 9: the same command with another folder, and the one that verifies."""
    return Reproduction(
        again=_with_other_folder(circumstances.command),
        verify=["stockade", "evidence", "verify", "DIR"],
        review=["stockade", "evidence", "review", "DIR"],
        questions=[ReviewQuestion(key=one.key, text=one.text, help=one.help) for one in QUESTIONS],
    )


def _with_other_folder(command: Sequence[str]) -> list[str]:
    words = list(command)
    for number, word in enumerate(words):
        if word == "--out" and number + 1 < len(words):
            words[number + 1] = "NEW_DIR"
        elif word.startswith("--out="):
            words[number] = "--out=NEW_DIR"
    return words


def _list_subjects(found: Found) -> list[Descriptor]:
    """What the statement is about: what was under test, and every file of the record."""
    subject = found.subject
    tested = {
        "under-test/code": subject.code_sha256,
        "under-test/policy": subject.policy_sha256,
        "under-test/catalogue": subject.catalogue_sha256,
        "under-test/lock": subject.lock_sha256,
    }
    descriptors = [
        Descriptor(name=name, digest={"sha256": digest}) for name, digest in tested.items() if digest
    ]
    if subject.git_commit:
        descriptors.append(Descriptor(name="under-test/git", digest={"gitCommit": subject.git_commit}))
    files = [Descriptor(name=f"evidence/{one.path}", digest={"sha256": one.sha256}) for one in found.files]
    return descriptors + files
