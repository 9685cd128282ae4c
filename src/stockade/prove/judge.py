"""Pure: what was seen of a technique, and what that shows.

All three are needed for `blocked`: the same attack arrived without enforcement (control), it
ran to its end with enforcement (attempt), and nothing arrived while the ledger says that the
right layer refused it for the right reason (attribution). A permitted request has to work just
before and just after, else a dead network would pass. Everything else is not a pass.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from stockade.prove.technique import Stopped, Technique
from stockade.prove.trial import Judgement, Result, Trial, Try


def judge(technique: Technique, trial: Trial) -> Judgement:
    """Judge one technique by what was seen of it."""
    if trial.not_supported is not None:
        return _say(technique, Result.NOT_SUPPORTED, trial.not_supported)
    if leak := trial.attempt.arrived or trial.attempt.stray:
        return _say(technique, Result.LEAKED, f"it arrived: {describe_arrival(leak[0])}")
    if problem := _find_problem(trial):
        return _say(technique, Result.INCONCLUSIVE, problem)
    found = find_refusal(technique, trial.attempt)
    if found is None:
        wanted = "; ".join(map(describe_stopped, technique.stopped))
        return _say(
            technique, Result.INCONCLUSIVE, f"nothing arrived, and nobody says why: expected was {wanted}"
        )
    return _say(technique, Result.BLOCKED, f"nothing arrived; refused by {found}", found)


def _find_problem(trial: Trial) -> str:
    """Why the trial shows nothing; empty if it does."""
    control, attempt = trial.control, trial.attempt
    if control.problem:
        return f"the control says nothing: {control.problem}"
    if not control.is_done:
        return "the control did not run to its end"
    if not control.arrived:
        return "the control did not arrive: without enforcement this attack does nothing here"
    if attempt.problem:
        return f"the attempt says nothing: {attempt.problem}"
    if not attempt.is_done:
        return "the attempt did not run to its end"
    if not attempt.allowed_before:
        return "the permitted request before it did not work"
    if not attempt.allowed_after:
        return "the permitted request after it did not work"
    if attempt.closing.get("complete") is False:
        return "the kernel's counters and the ledger do not agree: something may be unrecorded"
    return ""


def find_refusal(technique: Technique, attempt: Try) -> str | None:
    """Who refused it for one of the expected reasons; None if nobody did."""
    for stopped in technique.stopped:
        if stopped.silent:
            words = [word for said in attempt.said for word in _words(said)]
            match = next((word for word in stopped.silent if word in words), None)
            if match is not None:
                return f"{technique.layer}: {match}"
            continue
        if stopped.seen and not any(word in stopped.seen for said in attempt.said for word in _words(said)):
            continue
        for denial in attempt.denials:
            if _fits(stopped, denial):
                layer = denial.get("layer") or technique.layer
                return f"{layer}: {denial['reason']}"
    return None


def _fits(stopped: Stopped, denial: dict[str, Any]) -> bool:
    return all(
        not wanted or denial.get(key) in wanted
        for key, wanted in (
            ("reason", stopped.reason),
            ("entry", stopped.entry),
            ("layer", stopped.layer),
        )
    ) and all(fnmatchcase(str(denial.get(key)), wanted) for key, wanted in stopped.where.items())


def _words(said: dict[str, Any]) -> list[str]:
    return [str(said[key]) for key in ("errno", "error", "word") if key in said]


def describe_stopped(stopped: Stopped) -> str:
    """One expected refusal in words."""
    if stopped.silent:
        return f"the worker sees {' or '.join(stopped.silent)}"
    parts = (("reason", stopped.reason), ("entry", stopped.entry), ("layer", stopped.layer))
    said = [f"{name} {' or '.join(words)}" for name, words in parts if words]
    said += [f"{name} {wanted}" for name, wanted in stopped.where.items()]
    return ", ".join(said + [f"and inside {' or '.join(stopped.seen)}"] * bool(stopped.seen))


def describe_arrival(arrival: dict[str, Any]) -> str:
    """One arrival in words."""
    return ", ".join(f"{key} {value}" for key, value in arrival.items() if value not in (None, "", []))


def _say(technique: Technique, result: Result, why: str, stopped_by: str = "") -> Judgement:
    return Judgement(id=technique.id, result=result, why=why, stopped_by=stopped_by)
