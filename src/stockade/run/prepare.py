"""What happens before anything starts: load the policy, refuse what cannot be kept, plan."""

from __future__ import annotations

from pathlib import Path

from stockade.policy.model import DENY_ALL, Policy
from stockade.run.options import RunOptions


def load_run_policy(options: RunOptions) -> Policy:
    """Load the policy of the command line, or the one that denies everything."""
    return DENY_ALL if options.policy_file is None else load_runnable(options.policy_file)


def load_runnable(file: Path) -> Policy:
    """Load a policy that a run can keep to the letter.

    Raises:
        UserError: The file does not load, or asks for what `run` cannot enforce yet.
    """
    from stockade.policy.load import load_policy
    from stockade.policy.runnable import run_refusals

    policy = load_policy(file)
    refusals = run_refusals(policy)
    if refusals:
        raise refusals[0]
    return policy
