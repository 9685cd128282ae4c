"""What the engine says of a scenario, under the pack's policy or under a learner's."""

from __future__ import annotations

from stockade.decision.attempt_line import parse_attempt_line
from stockade.decision.engine import Engine
from stockade.decision.request import Decision
from stockade.lab.pack.scenario import Scenario
from stockade.policy.model import Policy
from stockade.vocabulary import Identity, Phase


class Caller:
    """Decides scenarios under one policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._engines: dict[tuple[Phase, Identity], Engine] = {}

    def decide(self, scenario: Scenario) -> Decision:
        """The engine's decision, as far as the scenario's line shows what decides."""
        attempt = parse_attempt_line(
            scenario.words, entry=scenario.entry, sni=scenario.sni, came_from=scenario.came_from
        )
        return self._engine(scenario.phase, scenario.identity).decide(attempt, scenario.answers or None)

    def _engine(self, phase: Phase, identity: Identity) -> Engine:
        if (phase, identity) not in self._engines:
            self._engines[phase, identity] = Engine(self.policy, phase, identity)
        return self._engines[phase, identity]
