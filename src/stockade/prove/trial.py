"""What was seen of one technique: the values that lane, judge and evidence hand on."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stockade.vocabulary import Word

EXPECTATION_NAME = "expectation.json"
"""In the evidence's folder before the first order: what is expected of each technique."""


class Order(Struct, frozen=True, kw_only=True):
    """What a lane is asked to do.

    Attributes:
        id: The technique.
        layers_off: `--without-layer` of the contained execution.
        has_control: False where an ablation has the control already.
        evidence: Folder into which ledgers and screenshots go.
    """

    id: str
    evidence: str
    layers_off: tuple[str, ...] = ()
    has_control: bool = True


class Try(Struct, frozen=True, kw_only=True):
    """One execution of a technique, in the open or contained.

    Attributes:
        said: What the payload said of each step, in order (JSON objects; foreign text).
        is_done: The payload reached its end and said so.
        allowed_before: The permitted request just before it worked, and the world saw it.
        allowed_after: The same just after.
        arrived: What witnesses saw of the attack.
        stray: What arrived besides, and is neither the attack nor permitted.
        denials: The ledger's refusals while it ran (records, shortened).
        closing: The ledger's last record: counts, and whether the kernel's counters agree.
        exit_code: Of `stockade run`, or of the payload in the open.
        problem: Why this execution says nothing, if it does not.
        seconds: How long it took.
        run: The run's name in the ledger of the evidence; empty in the open.
        files: Screenshots and transcripts, by what they are, relative to the evidence's folder.
    """

    said: tuple[dict[str, Any], ...] = ()
    is_done: bool = False
    allowed_before: bool = False
    allowed_after: bool = False
    arrived: tuple[dict[str, Any], ...] = ()
    stray: tuple[dict[str, Any], ...] = ()
    denials: tuple[dict[str, Any], ...] = ()
    closing: dict[str, Any] = {}
    exit_code: int | None = None
    problem: str | None = None
    seconds: float = 0.0
    run: str = ""
    files: dict[str, str] = {}


class Trial(Struct, frozen=True, kw_only=True):
    """A technique tried twice: without enforcement, and with it."""

    id: str
    control: Try
    attempt: Try
    layers_off: tuple[str, ...] = ()
    not_supported: str | None = None


class Result(Word):
    """The judge's word. Only `blocked` is a pass."""

    BLOCKED = "blocked"
    LEAKED = "leaked"
    INCONCLUSIVE = "inconclusive"
    NOT_SUPPORTED = "not-supported"


class Judgement(Struct, frozen=True, kw_only=True):
    """One technique judged.

    Attributes:
        why: One sentence.
        stopped_by: Who refused it, as the ledger says: `gateway: metadata-address`, `seccomp: …`.
    """

    id: str
    result: Result
    why: str
    stopped_by: str = ""


class Judged(Struct, frozen=True, kw_only=True):
    """What the evidence is made of, one for each technique."""

    trial: Trial
    judgement: Judgement
