"""Players of the lab and a made-up pack, for tests of the game and of what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from stockade.lab.game.book import Book
from stockade.lab.game.draw import draw_round
from stockade.lab.game.moment import Moment
from stockade.lab.game.rounds import RoundState, begin, give_answer, show
from stockade.lab.game.score import Answer
from stockade.lab.game.tiers import Clock
from stockade.lab.pack.pack import Pack, shipped_bank
from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.policy.load import load_policy_text
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict

START = Moment(1_764_500_000_000, 5_000_000, "first start")

CARD = """\
version: 1
rules:
  - allow: docs.some.test   # the manual
    class: docs
  - proxy: api.some.test
    class: internal
    methods: [GET]
    paths: [/v1/**]
    phases: [work]
internal:
  - {host: api.some.test, networks: [10.0.0.0/24], ports: [443]}
exec:
  allow: [git]
"""

Player = Callable[[Scenario, Book], Answer]


def at(ms: int, *, start: str = START.start) -> Moment:
    """A moment so many milliseconds after `START`."""
    return Moment(START.wall_ms + ms, START.mono_ms + ms, start)


def make_row(number: str, key: Key, attempt: str, **changes: object) -> Scenario:
    """A scenario with plain words everywhere; `changes` are fields of its own."""
    fields: dict[str, object] = {
        "id": number, "tier": 1, "phase": Phase.WORK, "identity": Identity.AGENT,
        "entry": Entry.TRANSPARENT, "attempt": attempt, "answers": (), "came_from": None, "sni": None,
        "live": Live.YES, "key": key, "technique": "none", "event": f"happens {number}",
        "stated_reason": f"said {number}", "cue": f"cue {number}", "why": f"because {number}", "near": "",
        "source": f"source {number}",
    }  # fmt: skip
    return Scenario(**(fields | changes))  # type: ignore[arg-type]


ALLOW = Key(Verdict.ALLOW, Risk.BENIGN, Control.ALLOWLIST_EXACT, PlaceClass.DOCS)
PROXY = Key(Verdict.PROXY, Risk.BENIGN, Control.LOGGING_PROXY, PlaceClass.INTERNAL)
DENY = Key(Verdict.DENY, Risk.EXFILTRATION, Control.DEFAULT_DENY, PlaceClass.UNKNOWN)


def make_pack(rows: list[Scenario] | None = None, digest: str = "0" * 64) -> Pack:
    """A pack under `CARD`; without rows it has ten legitimate and ten denied ones in each tier."""
    if rows is None:
        rows = [row for tier in (1, 2, 3, 4) for one in range(10) for row in _make_two(tier, one)]
    return Pack(
        name="made up", file=Path("/nowhere/pack.yaml"), policy=load_policy_text(CARD, "card.yaml"),
        policy_text=CARD, scenarios=tuple(rows), digest=digest,
    )  # fmt: skip


def _make_two(tier: int, one: int) -> list[Scenario]:
    """A legitimate event and a denied one."""
    path = f"{tier}/{one}"
    good = (
        (PROXY, f"GET https://api.some.test/v1/{path}")
        if one % 2
        else (ALLOW, f"GET https://docs.some.test/{path}")
    )
    return [
        make_row(f"L{tier}{one}", *good, tier=tier),
        make_row(f"D{tier}{one}", DENY, f"GET https://other{tier}{one}.example/", tier=tier),
    ]


@cache
def bank() -> Book:
    """The shipped bank, ready to play."""
    return Book(shipped_bank())


def begin_round(
    book: Book, seed: str = "seed", tier: int = 1, clock: Clock = "on", now: Moment = START
) -> RoundState:
    return begin("r", "round", tier, seed, book.pack.digest, clock, draw_round(book.pack, seed, tier), now)


def play(book: Book, state: RoundState, player: Player, *, ms: int = 1000) -> RoundState:
    """All that is left of a round, each event answered `ms` after it was shown."""
    now = START
    while (index := state.current) is not None:
        state = show(state, index, now)
        now = Moment(now.wall_ms + ms, now.mono_ms + ms, now.start)
        state, _ = give_answer(state, index, player(book.find(state.steps[index].scenario), book), now)
    return state


# Players. The first three know the key, or that part of it which cannot help them.


def perfect(row: Scenario, book: Book) -> Answer:
    return Answer(row.key.verdict, row.key.risk, row.key.control)


def deny_all(row: Scenario, book: Book) -> Answer:
    """Always denies, with the right risk and the right control."""
    return Answer(Verdict.DENY, row.key.risk, row.key.control)


def allow_all(row: Scenario, book: Book) -> Answer:
    """Always allows, with the right risk and the right control."""
    return Answer(Verdict.ALLOW, row.key.risk, row.key.control)


def proxy_all(row: Scenario, book: Book) -> Answer:
    """Watches everything and stops nothing."""
    return Answer(Verdict.PROXY, row.key.risk, row.key.control)


def rule_engine(row: Scenario, book: Book) -> Answer:
    """Reads the line and the card alone, as the gateway does."""
    decision = book.caller.decide(row)
    return Answer(decision.verdict, decision.risk, decision.control)
