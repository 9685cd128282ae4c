"""Pure: why a scenario is not tried live, and for which control it waits."""

from __future__ import annotations

from stockade.lab.pack.call import Caller
from stockade.lab.pack.scenario import Live, Scenario
from stockade.policy.model import Rule


def why_it_waits(scenario: Scenario, caller: Caller) -> str:
    """One sentence; empty for a scenario that can be tried."""
    if scenario.live is Live.YES:
        return ""
    if scenario.live is Live.NO:
        return "Nothing leaves here; this event is for learners only."
    control = scenario.key.control
    waits = f"Not tried: its control, {control}, has to look inside TLS, which the gateway does not yet"
    conditions = list_conditions(scenario, caller)
    return f"{waits} ({conditions})." if conditions else f"{waits}."


def list_conditions(scenario: Scenario, caller: Caller) -> str:
    """What in the policy cannot be held for this attempt: `card.yaml:42 limits methods, paths`."""
    origin = caller.decide(scenario).rule
    held = [rule for rule in caller.policy.rules if rule.origin == origin and rule.needs_inspection]
    conditions = dict.fromkeys(name for rule in held for name in _conditions_of(rule))
    return f"{origin} limits {', '.join(conditions)}" if conditions else ""


def _conditions_of(rule: Rule) -> list[str]:
    said = {
        "methods": rule.methods,
        "paths": rule.paths,
        "the account": rule.credential,
        "the body's content": rule.body,
        "the body's size": rule.max_body_bytes,
        "the query's length": rule.max_query_bytes,
        "the rate": rule.rate_per_s,
    }
    return [name for name, value in said.items() if value not in (None, ())]
