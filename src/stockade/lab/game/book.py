"""A pack made ready to play with: scenarios by number, the engine's decisions, the lines of the card."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from stockade.decision.attempt_line import parse_attempt_line
from stockade.decision.request import Decision
from stockade.lab.pack.call import Caller
from stockade.lab.pack.pack import Pack
from stockade.lab.pack.scenario import Scenario
from stockade.net.host import Host
from stockade.vocabulary import REASONS, Verdict

_ORIGIN = re.compile(r"[^:]+:(?P<line>\d+)")


class RestsOn(Struct, frozen=True):
    """What a decision rests on.

    Attributes:
        rule: As the ledger names it: `bank-policy.yaml:36`, or a built-in such as `builtin:addresses`.
        line: The line of the card, None for what is built in.
        last_line: Where the entry that begins on `line` ends.
        text: That entry as its author wrote it, and the one under `internal:` that opens a private answer;
            for what is built in, the reason's sentence.
    """

    rule: str
    line: int | None
    last_line: int | None
    text: str


class Book:
    """One pack; decisions are worked out once."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.caller = Caller(pack.policy)
        self.card = pack.policy_text.splitlines()
        self._by_id = {row.id: row for row in pack.scenarios}
        self._decisions: dict[str, Decision] = {}

    def find(self, number: str) -> Scenario:
        return self._by_id[number]

    def knows(self, number: str) -> bool:
        return number in self._by_id

    def decide(self, scenario: Scenario) -> Decision:
        if scenario.id not in self._decisions:
            self._decisions[scenario.id] = self.caller.decide(scenario)
        return self._decisions[scenario.id]

    def near(self, scenario: Scenario) -> Scenario | None:
        return self._by_id.get(scenario.near)

    def rests_on(self, scenario: Scenario) -> RestsOn:
        """The entry of the card, or the built-in, that the engine's decision names."""
        decision = self.decide(scenario)
        line = self.line_of(decision.rule)
        if line is None:
            return RestsOn(decision.rule, None, None, REASONS[decision.reason])
        last = _last_line(self.card, line)
        text = "\n".join([_outdent(self.card[line - 1 : last]), *self._opened(scenario, decision)])
        return RestsOn(decision.rule, line, last, text)

    def _opened(self, scenario: Scenario, decision: Decision) -> Iterator[str]:
        """The entries under `internal:` that let the answers of a permitted name be private ones."""
        attempt = parse_attempt_line(scenario.words)
        if decision.verdict is Verdict.DENY or not isinstance(attempt.host, Host):
            return
        for entry in self.pack.policy.internal:
            line = self.line_of(entry.origin)
            is_it = entry.host == attempt.host.name and attempt.port in entry.ports
            if is_it and line and any(one in net for one in scenario.answers for net in entry.networks):
                yield f"# and line {line}, under internal:"
                yield _outdent(self.card[line - 1 : _last_line(self.card, line)])

    def line_of(self, origin: str) -> int | None:
        """The line of the card that an origin names; None for what is built in or comes from a preset."""
        match = _ORIGIN.fullmatch(origin)
        line = int(match["line"]) if match else 0
        return line if 0 < line <= len(self.card) else None


def _last_line(card: list[str], line: int) -> int:
    """Where an entry ends: before the next line that is indented no further than its own."""
    own = _indent(card[line - 1])
    last = line
    for number in range(line + 1, len(card) + 1):
        text = card[number - 1]
        if not text.strip() or _indent(text) <= own:
            break
        last = number
    return last


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _outdent(lines: list[str]) -> str:
    own = _indent(lines[0])
    return "\n".join(line[own:].rstrip() for line in lines)
