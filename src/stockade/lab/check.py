"""Is each key of a pack what the engine says, and what really happens? For `stockade lab check`.

Two opinions that do not know of each other are compared with the key: the engine's, from the line alone,
and a ledger's, from a real attempt in a contained worker. A row that differs is wrong, or shows a fault of
ours; which of the two, a person has to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from stockade.decision.request import Decision
from stockade.errors import UserError
from stockade.lab.live.result import LiveResult, State
from stockade.lab.live.waiting import list_conditions, why_it_waits
from stockade.lab.pack.call import Caller
from stockade.lab.pack.pack import Pack
from stockade.lab.pack.scenario import Live, Scenario
from stockade.policy.model import Policy
from stockade.policy.problems import nearest
from stockade.vocabulary import Verdict, Word

# Techniques whose control shows in how the attempt came about, and the key that says it.
ORIGIN_OF = {"redirect": "from", "shared-address": "sni"}


class Bench(Protocol):
    """What tries a scenario for real (`live.client.LiveBench`)."""

    def try_scenario(self, scenario: Scenario) -> LiveResult: ...


class Standing(Word):
    """How a row came out. The order is that of badness."""

    AGREES = "agrees"
    WAITS = "waits"
    """The engine agrees; the rest waits for a control that is not built."""
    NOT_TRIED = "not-tried"
    """This host cannot try it."""
    DIFFERS = "differs"
    LEAKED = "leaked"
    """What was refused arrived all the same: not the row is wrong, but the containment."""


class Waiting(Struct, frozen=True):
    """The control that a row waits for, and what it cannot be held to yet."""

    control: str
    why: str


class RowCheck(Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        problems: A sentence for each difference.
        waiting: What it waits for; None for a row that can be tried.
        live: What a real try showed; None where none was made.
    """

    id: str
    attempt: str
    standing: Standing
    problems: tuple[str, ...] = ()
    waiting: Waiting | None = None
    live: LiveResult | None = None


def choose_rows(pack: Pack, only: Sequence[str]) -> list[Scenario]:
    """The scenarios to check.

    Raises:
        UserError: The pack has no scenario of that number.
    """
    for number in only:
        if pack.find(number) is None:
            near = nearest(number, [one.id for one in pack.scenarios])
            raise UserError(
                "no-such-scenario", f"the pack has no scenario {number}", near and f"the nearest is {near}"
            )
    return [one for one in pack.scenarios if not only or one.id in only]


def check_rows(
    pack: Pack,
    rows: Iterable[Scenario],
    live_card: Policy,
    bench: Bench | None,
    tell: Callable[[RowCheck], None] = lambda _: None,
) -> list[RowCheck]:
    """Check rows, each by the engine and then, if there is a bench, for real.

    Args:
        live_card: The policy that a real try holds (`live.card`).
        tell: Hears of each row that is done.
    """
    caller, on_live_card = Caller(pack.policy), Caller(live_card)
    checked = []
    for scenario in rows:
        row = _check_row(scenario, caller, on_live_card, bench)
        tell(row)
        checked.append(row)
    return checked


def _check_row(scenario: Scenario, caller: Caller, on_live_card: Caller, bench: Bench | None) -> RowCheck:
    decision = caller.decide(scenario)
    problems = [*_engine_problems(scenario, decision)]
    if scenario.live is Live.YES:
        problems += _card_problems(decision, on_live_card.decide(scenario))
    waiting = None
    if scenario.live is not Live.YES:
        conditions = list_conditions(scenario, caller)
        if scenario.live is Live.CONTENT and scenario.is_seen_by_the_line and not conditions:
            problems.append("nothing of it needs a look inside TLS, so `live` has to be yes")
        waiting = Waiting(scenario.key.control.value, conditions or why_it_waits(scenario, caller))
    live = bench.try_scenario(scenario) if bench is not None and scenario.live is Live.YES else None
    problems += [] if live is None else _live_problems(scenario, live)
    return RowCheck(
        id=scenario.id,
        attempt=scenario.attempt,
        standing=_stand(problems, waiting, live),
        problems=tuple(problems),
        waiting=waiting,
        live=live,
    )


def _stand(problems: Sequence[str], waiting: Waiting | None, live: LiveResult | None) -> Standing:
    if live is not None and live.leaked:
        return Standing.LEAKED
    if problems:
        return Standing.DIFFERS
    if live is not None and live.state is State.UNAVAILABLE:
        return Standing.NOT_TRIED
    return Standing.AGREES if waiting is None else Standing.WAITS


def _engine_problems(scenario: Scenario, decision: Decision) -> Iterable[str]:
    """Where the engine says otherwise, as far as the line shows what decides."""
    key = scenario.key
    parts = [("class", decision.place.value, key.place.value)]
    if scenario.is_seen_by_the_line:
        parts.append(("verdict", decision.verdict.word, key.verdict.word))
        parts.append(("risk", decision.risk.value, key.risk.value))
        if scenario.is_control_in_the_line:
            parts.append(("control", decision.control.value, key.control.value))
        elif scenario.technique in ORIGIN_OF:
            missing = ORIGIN_OF[scenario.technique]
            yield f"nothing shows its control: say `{missing}`, by which a {scenario.technique} came about"
        elif scenario.live is not Live.YES:
            yield f"nothing shows the control of a {scenario.technique} but a try, so `live` has to be yes"
    elif scenario.live is Live.YES:
        yield "its key needs a look inside (its `why` says so), so `live` has to be content"
    elif decision.verdict is not Verdict.PROXY or key.verdict is Verdict.ALLOW:
        yield (
            f"the engine calls the verdict {decision.verdict.word}, the key {key.verdict.word}: a look "
            f"inside decides only what the card proxies, and can only refuse it ({decision.why})"
        )
    for part, said, wanted in parts:
        if said != wanted:
            yield f"the engine calls the {part} {said}, the key {wanted} ({decision.why})"


def _card_problems(card: Decision, live: Decision) -> list[str]:
    """A row that only a look inside TLS decides is no row to try."""
    differs = [
        part for part in ("verdict", "risk", "control", "place") if getattr(card, part) != getattr(live, part)
    ]
    return (
        [f"without a look inside TLS its {differs[0]} is another one, so `live` has to be content"]
        if differs
        else []
    )


def _live_problems(scenario: Scenario, live: LiveResult) -> list[str]:
    if live.state is State.UNAVAILABLE:
        return []
    if live.state is not State.DONE:
        return [f"live: {live.why}", *(f"live: {sentence}" for sentence in live.leaked)]
    record, key = live.record or {}, scenario.key
    wanted = {"verdict": key.verdict.word, "risk": key.risk, "control": key.control, "class": key.place}
    problems = [
        f"live: the ledger calls the {part} {record.get(part)}, the key {wanted[part]} ({record.get('why')})"
        for part, agrees in live.agrees.items()
        if agrees is False
    ]
    problems += [f"live: refused, and yet {sentence}" for sentence in live.leaked]
    if record.get("verdict") != "deny" and not live.has_effect:
        problems.append("live: let through, and nothing arrived")
    return problems


def exit_code(rows: Iterable[RowCheck]) -> int:
    """0 all agree; 2 a row differs; 3 this host could not try one; 4 something refused arrived."""
    standings = {row.standing for row in rows}
    for standing, code in ((Standing.LEAKED, 4), (Standing.DIFFERS, 2), (Standing.NOT_TRIED, 3)):
        if standing in standings:
            return code
    return 0
