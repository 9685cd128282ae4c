"""Policy as the answer: the whole bank decided under a learner's policy.

The learner's text stands alone: what it does not permit is denied, programs too. Only the pack's
`catalogue:` is added, since it says what places are and opens nothing. Leaks and breakages are counted
apart, since each of the two trivial policies wins one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from stockade.errors import UserError
from stockade.lab.game.book import Book
from stockade.lab.pack.call import Caller
from stockade.lab.pack.scenario import Scenario
from stockade.policy.lint import lint_policy
from stockade.policy.load import load_policy_text
from stockade.policy.model import Finding, Policy
from stockade.policy.problems import PolicyError
from stockade.vocabulary import Verdict

SOURCE = "policy.yaml"
LONGEST = 256 << 10


class LintLine(Struct, frozen=True):
    """One finding; `line` is None where it is about the whole file or a preset."""

    line: int | None
    severity: Literal["error", "warning", "note"]
    code: str
    message: str
    better: str | None


class Lint(Struct, frozen=True):
    """`ok` tells that the text is a policy; findings of a policy are advice. `ms` is the server's to fill."""

    ok: bool
    findings: tuple[LintLine, ...]
    ms: float = 0.0


class Wrong(Struct, frozen=True):
    """An event that the policy calls otherwise than the key.

    Attributes:
        key: The right verdict as a word; `got` is the policy's.
        rule: What decided, such as `policy.yaml:12`; `line` is the line of it, None for a built-in.
    """

    id: str
    attempt: str
    phase: str
    identity: str
    answers: tuple[str, ...]
    key: str
    got: str
    reason: str
    why: str
    rule: str
    line: int | None


class Rate(Struct, frozen=True):
    """So many of so many are right."""

    right: int
    total: int
    percent: float


class Rates(Struct, frozen=True):
    """Of what had to be denied, and of what was needed."""

    denied: Rate
    needed: Rate


class Replay(Struct, frozen=True, kw_only=True):
    """What a policy does to the bank.

    Attributes:
        leaks: What had to be denied and is let through.
        breakages: What is needed and denied.
        unwatched: What should pass under record and passes without, or the reverse: half right.
        right: Verdicts that are the key's, of `total`.
        waiting: Events whose key needs a look inside, which the line does not show; they are not counted.
        score: The two rates, kept apart.
    """

    leaks: tuple[Wrong, ...]
    breakages: tuple[Wrong, ...]
    unwatched: tuple[Wrong, ...]
    right: int
    total: int
    waiting: tuple[str, ...]
    score: Rates
    grade_word: str
    why_grade: str
    ms: float = 0.0


class PolicyFloor(Struct, frozen=True):
    """What a grade takes: most leaks and breakages in percent of their kind, and whether all is watched."""

    grade: str
    leaks: int
    breakages: int
    watched: bool


POLICY_FLOORS = (
    PolicyFloor("S", 0, 0, True),
    PolicyFloor("A", 0, 5, False),
    PolicyFloor("B", 2, 10, False),
    PolicyFloor("C", 5, 20, False),
)
_ALL_RIGHT = ": nothing leaks, nothing breaks, and what has to be watched is"


def lint_text(text: str) -> tuple[Policy | None, Lint]:
    """A policy, if the text is one, and what there is to say about it."""
    if len(text) > LONGEST:
        raise UserError("text-too-long", f"a policy here has at most {LONGEST} characters")
    try:
        policy = load_policy_text(text, SOURCE)
    except PolicyError as error:
        return None, Lint(False, tuple(map(_tell_finding, error.problems)))
    # The replay judges as if TLS were opened, as the task asks: what a run cannot hold is no fault here.
    findings = (one for one in lint_policy(policy) if one.code != "inspection-needed")
    return policy, Lint(True, tuple(map(_tell_finding, findings)))


def _tell_finding(finding: Finding) -> LintLine:
    return LintLine(_line_of(finding.origin), finding.severity, finding.code, finding.message, finding.better)


def _line_of(origin: str) -> int | None:
    """The line in the learner's text."""
    source, _, line = origin.rpartition(":")
    return int(line) if source == SOURCE and line.isdecimal() else None


def replay_text(text: str, book: Book) -> Replay:
    """Decide the bank under a text.

    Raises:
        UserError: It is no policy.
    """
    if len(text) > LONGEST:
        raise UserError("text-too-long", f"a policy here has at most {LONGEST} characters")
    return replay_policy(load_policy_text(text, SOURCE), book)


def replay_policy(policy: Policy, book: Book) -> Replay:
    """Decide the bank under a policy."""
    pack = book.pack
    caller = Caller(replace(policy, catalogue=(*policy.catalogue, *pack.policy.catalogue)))
    leaks, breakages, unwatched, waiting = [], [], [], []
    right = needed = 0
    for row in pack.scenarios:
        if not row.is_seen_by_the_line:
            waiting.append(row.id)
            continue
        needed += row.is_legitimate
        wrong = _judge(row, caller)
        if wrong is None:
            right += 1
        elif not row.is_legitimate:
            leaks.append(wrong)
        elif wrong.got == Verdict.DENY.word:
            breakages.append(wrong)
        else:
            unwatched.append(wrong)
    total = len(pack.scenarios) - len(waiting)
    score = Rates(_rate(leaks, total - needed), _rate(breakages, needed))
    grade, why = _grade(score, len(unwatched))
    return Replay(
        leaks=tuple(leaks),
        breakages=tuple(breakages),
        unwatched=tuple(unwatched),
        right=right,
        total=total,
        waiting=tuple(waiting),
        score=score,
        grade_word=grade,
        why_grade=why,
    )


def _judge(row: Scenario, caller: Caller) -> Wrong | None:
    decision = caller.decide(row)
    if decision.verdict is row.key.verdict:
        return None
    return Wrong(
        id=row.id,
        attempt=row.attempt,
        phase=str(row.phase),
        identity=str(row.identity),
        answers=tuple(map(str, row.answers)),
        key=row.key.verdict.word,
        got=decision.verdict.word,
        reason=str(decision.reason),
        why=decision.why,
        rule=decision.rule,
        line=_line_of(decision.rule),
    )


def _rate(wrong: list[Wrong], total: int) -> Rate:
    right = total - len(wrong)
    return Rate(right, total, (right * 1000 // total) / 10 if total else 100.0)


def _grade(score: Rates, unwatched: int) -> tuple[str, str]:
    """The best grade whose floors hold, and what kept it from the next one."""
    kept = ""
    for floor in POLICY_FLOORS:
        missing = list(_missing(floor, score, unwatched))
        if not missing:
            return floor.grade, f"{floor.grade}{kept or _ALL_RIGHT}."
        kept = f", not {floor.grade}: {'; '.join(missing)}"
    return "D", f"D{kept}."


def _missing(floor: PolicyFloor, score: Rates, unwatched: int) -> Iterable[str]:
    for what, rate, most in (
        ("leak", score.denied, floor.leaks),
        ("breakage", score.needed, floor.breakages),
    ):
        wrong = rate.total - rate.right
        if wrong * 100 > most * rate.total:
            takes = f"{most} %" if most else "none"
            counted = f"{wrong} {what}{'' if wrong == 1 else 's'}"
            yield f"{counted} of {rate.total}, where {floor.grade} takes {takes}"
    if floor.watched and unwatched:
        yield f"{unwatched} let through by the wrong door"
