"""Short ways to write a policy in a test."""

from __future__ import annotations

import textwrap

import pytest

from stockade.policy.load import load_policy_text
from stockade.policy.model import Policy, Rule
from stockade.policy.problems import PolicyError


def load(text: str) -> Policy:
    return load_policy_text(text, "policy.yaml")


def rules_text(rules: str) -> str:
    """A policy whose first rule stands on line 3."""
    return f"version: 1\nrules:\n{textwrap.indent(rules, '  ')}\n"


def load_rules(rules: str) -> tuple[Rule, ...]:
    return load(rules_text(rules)).rules


def refused(rules: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        load(rules_text(rules))
    return caught.value
