"""Pure: what was seen of a technique, and what that shows.

All three are needed for `blocked`: the same attack arrived without enforcement (control), it
ran to its end with enforcement (attempt), and nothing arrived while the ledger says that it was
refused for an expected reason (attribution). A permitted request has to work just before and
just after, in the open and contained, else a dead network would pass; and the kernel's counters
have to agree with the ledger, else something may have gone unrecorded. Everything else is not a pass.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import Any

from stockade.ledger.record import clean_text
from stockade.prove.technique import Layer, Stopped, Technique
from stockade.prove.trial import Judgement, Result, Trial, Try

_SHOWN = 120
NO_CONTROL = Try()


def judge(technique: Technique, trial: Trial) -> Judgement:
    """Judge one technique by what was seen of it."""
    if trial.not_supported is not None:
        return _say(technique, Result.NOT_SUPPORTED, trial.not_supported)
    if leak := trial.attempt.arrived or trial.attempt.stray:
        return _say(technique, Result.LEAKED, f"it arrived: {describe_arrival(leak[0])}")
    if problem := find_problem(technique, trial):
        return _say(technique, Result.INCONCLUSIVE, problem)
    found = find_refusal(technique, trial.attempt, trial.control)
    if found is None:
        wanted = "; ".join(map(describe_stopped, technique.stopped))
        return _say(
            technique, Result.INCONCLUSIVE, f"nothing arrived, and nobody says why: expected was {wanted}"
        )
    return _say(technique, Result.BLOCKED, f"nothing arrived; refused by {found}", found)


def find_problem(technique: Technique, trial: Trial) -> str:
    """Why the trial shows nothing, whoever may have refused the attack; empty if it does."""
    control, attempt = trial.control, trial.attempt
    for name, one in (("control", control), ("attempt", attempt)):
        if one.problem:
            return f"the {name} says nothing: {one.problem}"
        if not one.is_done:
            return f"the {name} did not run to its end"
        if not one.allowed_before:
            return f"the permitted request before it did not work ({name})"
        is_used_up = technique.uses_up and one is attempt
        if is_used_up and one.allowed_after:
            return f"the permitted request after it worked, although the run should be used up ({name})"
        if not is_used_up and not one.allowed_after:
            return f"the permitted request after it did not work ({name})"
    if not control.arrived:
        return "the control did not arrive: without enforcement this attack does nothing here"
    if attempt.exit_code != 0:
        return f"the run that held the attempt ended with code {attempt.exit_code}"
    return _find_gap(trial)


def _find_gap(trial: Trial) -> str:
    """Whether the ledger may lack something; without the room there are no counters to compare it with."""
    closing = trial.attempt.closing
    if not closing and not trial.attempt.run:
        return "no ledger of the contained run was found: something may be unrecorded"
    if not closing:
        return "the ledger has no last record: something may be unrecorded"
    if closing.get("complete") is not True and Layer.ROOM not in trial.layers_off:
        detail = closing.get("completeness") or "they could not be read"
        return f"the kernel's counters and the ledger do not agree, something may be unrecorded: {detail}"
    return ""


def find_refusal(technique: Technique, attempt: Try, control: Try = NO_CONTROL) -> str | None:
    """Who refused it for one of the expected reasons; None if nobody did."""
    for stopped in technique.stopped:
        if stopped.silent:
            if word := _find_silent(stopped, attempt, control):
                return f"{technique.layer}: {word}"
            continue
        if stopped.seen and not any(_count_words(attempt)[word] for word in stopped.seen):
            continue
        for denial in attempt.denials:
            if fits_refusal(stopped, denial):
                return f"{layer_of(denial)}: {denial['reason']}"
    return None


def layer_of(denial: dict[str, Any]) -> str:
    """Who gave this refusal. The seal's layers sign with their name; the rest is told by the door."""
    if denial.get("layer"):
        return str(denial["layer"])
    return Layer.ROOM if denial.get("entry") == "udp" else Layer.GATEWAY


def fits_refusal(stopped: Stopped, denial: dict[str, Any]) -> bool:
    """Whether a record is this refusal: one word of each list that is not empty."""
    return all(
        not wanted or found in wanted
        for found, wanted in (
            (denial.get("reason"), stopped.reason),
            (denial.get("entry"), stopped.entry),
            (layer_of(denial), stopped.layer),
        )
    ) and all(fnmatchcase(str(denial.get(key)), wanted) for key, wanted in stopped.where.items())


def _find_silent(stopped: Stopped, attempt: Try, control: Try) -> str | None:
    """An error that the worker met more often than the control did: in the open it proves no refusal."""
    contained, in_the_open = _count_words(attempt), _count_words(control)
    return next((word for word in stopped.silent if contained[word] > in_the_open[word]), None)


def _count_words(one: Try) -> Counter[str]:
    """The errors of the attack's own steps; those of the permitted requests say nothing about it."""
    steps = [said for said in one.said if "allowed" not in said]
    return Counter(str(said[key]) for said in steps for key in ("errno", "error", "word") if key in said)


def describe_stopped(stopped: Stopped) -> str:
    """One expected refusal in words."""
    if stopped.silent:
        return f"the worker sees {' or '.join(stopped.silent)}, which it does not see in the open"
    parts = (("reason", stopped.reason), ("entry", stopped.entry), ("layer", stopped.layer))
    said = [f"{name} {' or '.join(words)}" for name, words in parts if words]
    said += [f"{name} {wanted}" for name, wanted in stopped.where.items()]
    return ", ".join(said + [f"and inside {' or '.join(stopped.seen)}"] * bool(stopped.seen))


_SAID_AS = {"what": "", "address": "at ", "name": "named "}


def describe_arrival(arrival: dict[str, Any]) -> str:
    """One arrival in words; what it carried is foreign text."""
    return ", ".join(
        f"{_SAID_AS.get(key, f'{key} ')}{clean_text(str(value), _SHOWN)}"
        for key, value in arrival.items()
        if value not in (None, "") and not isinstance(value, (list, tuple, dict))
    )


def _say(technique: Technique, result: Result, why: str, stopped_by: str = "") -> Judgement:
    return Judgement(id=technique.id, result=result, why=clean_text(why, 1000), stopped_by=stopped_by)
