"""What a live try is asked, and what it answers: the values that cross between bench and server."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.vocabulary import Entry, Identity, Phase, Word

Seen = dict[str, Any]


class State(Word):
    """How a try ended."""

    DONE = "done"
    WAITS = "waits"
    """Its control is not built yet, or nothing leaves: nothing was tried."""
    UNAVAILABLE = "unavailable"
    """This host, or this bench, could not try it."""
    FAILED = "failed"
    """It was tried, and what came of it says nothing: no record, a ledger that was not closed."""


class Order(Struct, frozen=True, kw_only=True):
    """One scenario to try, as plain values."""

    id: str
    phase: Phase
    identity: Identity
    entry: Entry
    attempt: str
    answers: tuple[str, ...] = ()
    came_from: str | None = None
    sni: str | None = None
    live: Live = Live.YES
    technique: str = "none"
    why: str = ""
    key: Key


class LiveResult(Struct, frozen=True, kw_only=True):
    """What really happened.

    Attributes:
        why: One sentence, where nothing was tried or it says nothing; else empty.
        note: How the record goes with the engine's call of the line, where they speak of different things.
        scenario: Its number.
        saw: What the worker saw, step by step in plain words: `{"step": …, "text": …}`.
        record: The ledger's record that decided the attempt.
        records: All records of the run, the first and the last among them.
        arrived: What reached the target's side, but for the page that the attempt came from.
        asked: Names that were asked for outside of the machine.
        ran: The program ran, the question was answered: for attempts by which nothing leaves the room.
        leaked: A sentence for each thing that happened though the ledger says that it was refused.
        agrees: Whether verdict, risk, control and class of the record are the key's; None where a live
            try cannot show how the attempt came about.
        closing: `{"complete": …}` and the counts of the ledger's last record.
        run: The run's name.
        ms: From the order to the closed ledger.
    """

    state: State
    why: str = ""
    note: str = ""
    scenario: str
    saw: tuple[Seen, ...] = ()
    record: Seen | None = None
    records: tuple[Seen, ...] = ()
    arrived: tuple[Seen, ...] = ()
    asked: tuple[str, ...] = ()
    ran: bool | None = None
    leaked: tuple[str, ...] = ()
    agrees: dict[str, bool | None] = {}
    closing: Seen = {}
    run: str = ""
    ms: int = 0

    @property
    def has_effect(self) -> bool:
        """Something arrived, a program ran, or a question was answered."""
        return bool(self.arrived) or self.ran is True

    @property
    def is_as_keyed(self) -> bool:
        """It was tried to the end, and nothing in it differs from the key."""
        return self.state is State.DONE and False not in self.agrees.values() and not self.leaked


def order_for(scenario: Scenario) -> Order:
    """The order to try a scenario."""
    return Order(
        id=scenario.id,
        phase=scenario.phase,
        identity=scenario.identity,
        entry=scenario.entry,
        attempt=scenario.attempt,
        answers=tuple(map(str, scenario.answers)),
        came_from=scenario.came_from,
        sni=scenario.sni,
        live=scenario.live,
        technique=scenario.technique,
        why=scenario.why,
        key=scenario.key,
    )
