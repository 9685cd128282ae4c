"""The live card: a pack's policy without what would need TLS opened, on the same lines.

A real run refuses a policy that it cannot hold to the letter (`policy.runnable`). For a live try the
conditions that wait for that are taken out. Each blanked key leaves spaces behind, so
`bank-policy.yaml:37` in the ledger is line 37 of the card that the learner reads. What the card then
says otherwise about a row is exactly what such a row waits for (`live: content`).

Taken out too are the limits that the sandbox holds (memory, processes, files, time): not every user of a
machine can hold them, a try of a moment is not about them, and a worker that waits for its try would
run into the last. The limits that the gateway holds stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stockade.errors import UserError
from stockade.policy.load import load_policy
from stockade.policy.model import Policy
from stockade.policy.runnable import run_refusals

# The keys of a proxy rule that look inside a request (`policy.model.Rule.has_conditions`).
CONDITIONS = frozenset({"methods", "paths", "credential", "body", "max-body", "max-query", "rate"})
SANDBOX_LIMITS = frozenset({"memory", "processes", "open-files", "file-size", "time"})


def write_live_card(policy: Policy, folder: Path, into: Path) -> Path:
    """Write the files of a policy into a folder, without what a run could not hold; the main one's path.

    Args:
        policy: As `load_policy` has read it.
        folder: The real path of the folder of its main file, below which its includes lie.

    Raises:
        UserError: What is left could not be run either (a preset asks for it).
    """
    for path in map(Path, policy.paths):
        written = into / path.relative_to(folder)
        written.parent.mkdir(parents=True, exist_ok=True)
        lines = frozenset(line for name, line in _unheld(policy) if (folder / name).resolve() == path)
        written.write_text(blank_conditions(path.read_text(encoding="utf-8-sig"), lines))
    card = into / policy.source
    refusals = run_refusals(load_policy(card))
    if refusals:
        hint = "a rule of a preset cannot be changed from here; write it into the pack's own policy"
        raise UserError("card-not-runnable", f"no live run can hold this policy: {refusals[0]}", hint)
    return card


def _unheld(policy: Policy) -> Iterator[tuple[str, int]]:
    """File and line where each rule begins that looks inside TLS."""
    for rule in policy.rules:
        if rule.needs_inspection:
            name, _, line = rule.origin.rpartition(":")
            yield name, int(line)


def blank_conditions(text: str, lines: frozenset[int]) -> str:
    """The text with the conditions of the rules that begin on these lines turned into spaces."""
    letters = list(text)
    for start, end in _spans(text, lines):
        for place in range(start, end):
            if letters[place] not in "\r\n":
                letters[place] = " "
    return "".join(letters)


def _spans(text: str, lines: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Where each of the keys stands, from its first letter to the end of its value."""
    import yaml

    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in root.value:
        if key.value == "rules":
            for rule in value.value:
                if any(name.start_mark.line + 1 in lines for name, _ in rule.value):
                    yield from _spans_of(text, rule, CONDITIONS)
        elif key.value == "limits":
            if all(name.value in SANDBOX_LIMITS for name, _ in value.value):
                yield key.start_mark.index, value.end_mark.index
            else:
                yield from _spans_of(text, value, SANDBOX_LIMITS)


def _spans_of(text: str, mapping: Any, names: frozenset[str]) -> Iterator[tuple[int, int]]:
    for key, value in mapping.value:
        if key.value in names:
            start, end = key.start_mark.index, value.end_mark.index
            yield (start, _past_comma(text, end) if mapping.flow_style else end)


def _past_comma(text: str, end: int) -> int:
    """In `{a: b, c: d}` the comma after a value goes with it; a last comma that is left harms nobody."""
    rest = text[end:]
    between = len(rest) - len(rest.lstrip())
    return end + between + 1 if rest[between : between + 1] == "," else end
