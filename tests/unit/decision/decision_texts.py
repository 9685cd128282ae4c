"""Short ways to ask an engine in a test."""

from __future__ import annotations

import shlex
from ipaddress import ip_address
from typing import Any

from stockade.decision.attempt_line import parse_attempt_line
from stockade.decision.engine import Engine
from stockade.decision.request import Attempt, Decision
from stockade.policy.load import load_policy_text
from stockade.vocabulary import Identity, Phase


def engine_of(text: str, phase: str = "work", identity: str = "agent", **more: Any) -> Engine:
    policy = load_policy_text(f"version: 1\n{text}", "policy.yaml")
    return Engine(policy, Phase(phase), Identity(identity), **more)


def attempt_of(line: str, **more: Any) -> Attempt:
    return parse_attempt_line(shlex.split(line), **more)


def decide(engine: Engine | str, line: str, *answers: str, **more: Any) -> Decision:
    """Decide one line; with answers they are judged as well."""
    if isinstance(engine, str):
        engine = engine_of(engine)
    addresses = tuple(map(ip_address, answers)) if answers else None
    return engine.decide(attempt_of(line, **more), addresses)


def words(decision: Decision) -> tuple[str, str, str]:
    """Verdict, risk and reason, as in a record."""
    return decision.verdict.word, str(decision.risk), str(decision.reason)
