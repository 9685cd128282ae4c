"""The nine points of an evidence record, as values. The list is ours; the form around it is in-toto's.

The predicate is a test result (`https://in-toto.io/attestation/test-result/v0.1`), so that tools which
know that type read the outcome; the nine points are an extension of it under a type of their own. The
JSON Schema is made from these classes (`schema.py`). Times are UTC in RFC 3339, digests are in hex.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from stockade.evidence.manifest import FileEntry

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
POINTS_KEY = "urn:stockade:evidence:v1"


class Point(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Keys are camelCase, as in in-toto; one that is not known is an error."""


class Claim(Point, frozen=True):
    """1. What is claimed, in a sentence that one observation would refute.

    Attributes:
        threats: Risks of our vocabulary, and CWE, RFC and other references of the attacks.
    """

    sentence: str
    control: str
    layers: list[str]
    threats: list[str]


class UnderTest(Point, frozen=True):
    """2. What the claim is about, by digest."""

    version: str
    code_sha256: str
    policy_file: str
    policy_sha256: str
    catalogue_sha256: str
    techniques: int
    lock_sha256: str | None = None
    packages: dict[str, str] = {}
    git_commit: str | None = None
    git_is_changed: bool | None = None


class TrialFact(Point, frozen=True):
    """What `stockade doctor` found by trying one thing that containment needs or uses."""

    name: str
    works: bool
    is_needed: bool
    detail: str
    lost: str = ""
    remedy: str = ""


class Clock(Point, frozen=True):
    """By which clock times are given. Nobody else vouches for them."""

    source: str
    is_synchronized: bool | None
    boot_id: str


class Environment(Point, frozen=True):
    """3. Where it was tried, and what that place lacks.

    Attributes:
        capabilities: Of the process that started the proof, as hexadecimal mask (`CapEff`).
        worker: What the runs said of themselves: each set of enforcement facts, and of how many runs.
    """

    kernel: str
    machine: str
    system: str
    python: str
    processors: int
    started_as_root: bool
    capabilities: str
    landlock_abi: int
    seccomp: str
    user_namespaces: str
    cgroup: str
    clock: Clock
    trials: list[TrialFact]
    missing: list[str]
    browser: str | None = None
    worker: list[dict[str, Any]] = []


class Procedure(Point, frozen=True):
    """4. What was done, exactly, and who or what drove it.

    Attributes:
        driver: Who did the attacking.
        model: What part a model had in the outcome.
        randomness: What is not the same in another run.
        options: Of techniques that are not run in phase `work` as identity `agent`: their own options.
    """

    command: list[str]
    started: str
    finished: str
    lanes: int | None
    layers_off: list[str]
    is_whole: bool
    phase: str
    identity: str
    options: dict[str, list[str]]
    driver: str
    model: str
    randomness: str


class Expectation(Point, frozen=True):
    """5. What was expected, written before the first attack; the file says it for each technique.

    Attributes:
        runs_that_name_it: Ledgers whose first record holds the digest: it stood before their first attempt.
        runs: Ledgers in all.
    """

    file: str
    sha256: str
    written: str
    techniques: int
    runs_that_name_it: int
    runs: int


class Seen(Point, frozen=True):
    """6. What one execution of a technique came to; `trials.json` has all of it.

    Attributes:
        arrived: How many things of the attack the witnesses saw.
        stray: How many they saw that are neither the attack nor permitted.
        refusals: Records of the ledger that deny, equal ones counted.
        kernel_agrees: Whether the kernel's counters and the ledger agree; null without a ledger.
        counters: How they were compared.
    """

    ran_to_end: bool
    arrived: int
    stray: int
    permitted_before: bool
    permitted_after: bool
    refusals: int
    exit_code: int | None
    seconds: float
    run: str = ""
    kernel_agrees: bool | None = None
    counters: str = ""
    problem: str | None = None


class CaseSeen(Point, frozen=True):
    """6. Both executions of one technique."""

    id: str
    control: Seen
    attempt: Seen


class Observation(Point, frozen=True):
    """6. What was seen, raw in a file and counted here."""

    file: str
    sha256: str
    cases: list[CaseSeen]
    arrived_in_the_open: int
    arrived_contained: int
    seconds: float
    matrix_file: str | None = None


class CaseVerdict(Point, frozen=True):
    """7. The judge's word about one technique, and what it does not show."""

    id: str
    title: str
    group: str
    layer: str
    risk: str
    result: Literal["blocked", "leaked", "inconclusive", "not-supported"]
    why: str
    stopped_by: str
    not_covered: str


class Verdict(Point, frozen=True):
    """7. The outcome, its limits, and until when it is worth something."""

    cases: list[CaseVerdict]
    counts: dict[str, int]
    limits: list[str]
    known_bypasses: list[str]
    valid_until: str
    valid_while: str


class LedgerDigest(Point, frozen=True):
    """8. One run's ledger file. Until the ledger is signed itself, its digest stands here."""

    run: str
    file: str
    sha256: str
    records: int
    is_closed: bool


class Integrity(Point, frozen=True):
    """8. What holds the record together.

    Attributes:
        files: Every file of the folder but the two that are outside (`manifest.OUTSIDE`).
        signer: Fingerprint of the key: SHA-256 of the 32 bytes of the public key, in hex.
    """

    files: list[FileEntry]
    ledgers: list[LedgerDigest]
    ledger_is_signed: bool
    note: str
    signer: str
    public_key_file: str


class ReviewQuestion(Point, frozen=True):
    """9. A question for whoever reviews the record; the answers go to `review.json`."""

    key: str
    text: str
    help: str


class Reproduction(Point, frozen=True):
    """9. One command to do it again, one to verify it offline, and the review."""

    again: list[str]
    verify: list[str]
    review: list[str]
    questions: list[ReviewQuestion]


class NinePoints(Point, frozen=True):
    """The nine points, in order."""

    claim: Claim
    subject: UnderTest
    environment: Environment
    procedure: Procedure
    expectation: Expectation
    observation: Observation
    verdict: Verdict
    integrity: Integrity
    reproduction: Reproduction


class Descriptor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """in-toto's ResourceDescriptor, as far as we use it."""

    name: str
    digest: dict[str, str]


class TestResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """in-toto's test result, with the nine points as an extension.

    Attributes:
        result: `WARNED` where all that was tried held, and it was not the whole catalogue with all layers.
        failed_tests: What leaked or was inconclusive. What could not be tried is in no list, and in point 7.
    """

    __test__ = False  # no test case of pytest

    result: Literal["PASSED", "WARNED", "FAILED"]
    configuration: list[Descriptor]
    passed_tests: list[str]
    warned_tests: list[str]
    failed_tests: list[str]
    points: NinePoints = field(name=POINTS_KEY)


class Statement(Struct, frozen=True, kw_only=True):
    """in-toto Statement v1: a predicate about things that are named by digest."""

    subject: list[Descriptor]
    predicate: TestResult
    type: str = field(name="_type", default=STATEMENT_TYPE)
    predicate_type: str = field(name="predicateType", default=TEST_RESULT)
