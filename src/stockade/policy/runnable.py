"""What `stockade run` cannot hold yet, though the policy loads and can be shown and decided with.

A run with another meaning than the file's is the fault this project exists against, so
the run stops with 102 instead. Delete a check here when the thing is built.
"""

from __future__ import annotations

from collections.abc import Iterator

from stockade.policy.model import Finding, Policy, Rule
from stockade.policy.problems import PolicyError
from stockade.vocabulary import Verdict


def run_refusals(policy: Policy) -> list[PolicyError]:
    """What a run could not hold: empty if it can start, else one error that names every line.

    The error's code is `inspection-not-available`. Whether this host can hold the limits is found out by
    trying, when the sandbox is built.
    """
    problems = (*_refuse_rules(policy),)
    return [PolicyError(problems)] if problems else []


def _refuse_rules(policy: Policy) -> Iterator[Finding]:
    for rule in policy.rules:
        missing = _missing_ability(rule)
        if missing is not None:
            yield Finding(
                code="inspection-not-available",
                severity="error",
                origin=rule.origin,
                message=f"proxy {rule.host.text} {missing[0]}, which this version cannot do",
                better=missing[1],
            )


def _missing_ability(rule: Rule) -> tuple[str, str] | None:
    if rule.level is not Verdict.PROXY:
        return None
    if rule.needs_inspection:
        return "looks inside TLS", "leave the conditions out: then the rule tunnels and records"
    return None
