"""Pure: one technique's trial as the lines that the page shows.

Foreign text stays text here; it is cut, never marked up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from stockade.prove.judge import describe_arrival, describe_stopped
from stockade.prove.technique import Stopped, Technique, Witness
from stockade.prove.trial import Judged, Try

_TEXT_LIMIT = 600
_LINES_LIMIT = 60
_RESULT_WORDS = {
    "blocked": "blocked",
    "leaked": "leaked",
    "inconclusive": "inconclusive",
    "not-supported": "not supported",
}


# What the line about a step shows elsewhere or not at all.
_NOT_SHOWN = frozenset(
    ("do", "ms", "allowed", "argv", "reply", "ended", "action", "to", "url", "address", "came", "error")
)


class Step(Struct, frozen=True):
    """One thing that the payload did, and what it was told: `refused`, `answered`, `note` or `agent`."""

    kind: str
    did: str
    came: str


class Refusal(Struct, frozen=True):
    """One record of the ledger that denies."""

    reason: str
    what: str
    entry: str
    layer: str
    rule: str
    why: str
    count: int
    is_expected: bool


class AttackView(Struct, frozen=True, kw_only=True):
    """Everything about one technique on the page."""

    id: str
    title: str
    group: str
    layer: str
    risk: str
    references: tuple[str, ...]
    about: tuple[str, ...]
    not_covered: str
    result: str
    word: str
    why: str
    stopped_by: str
    is_browser: bool
    worked_if: tuple[str, ...]
    expected: tuple[str, ...]
    control: Try
    attempt: Try
    control_arrived: tuple[str, ...]
    attempt_arrived: tuple[str, ...]
    control_steps: tuple[Step, ...]
    attempt_steps: tuple[Step, ...]
    refusals: tuple[Refusal, ...]
    counters: str


def view_attack(technique: Technique, one: Judged) -> AttackView:
    """The lines of one technique."""
    control, attempt = one.trial.control, one.trial.attempt
    result = str(one.judgement.result)
    return AttackView(
        id=technique.id,
        title=technique.title,
        group=str(technique.group),
        layer=str(technique.layer),
        risk=str(technique.risk),
        references=technique.references,
        about=tuple(" ".join(paragraph.split()) for paragraph in technique.about.split("\n\n") if paragraph),
        not_covered=technique.not_covered,
        result=result,
        word=_RESULT_WORDS.get(result, result),
        why=one.judgement.why,
        stopped_by=one.judgement.stopped_by,
        is_browser=technique.is_browser,
        worked_if=tuple(describe_witness(witness) for witness in technique.arrives),
        expected=tuple(describe_stopped(stopped) for stopped in technique.stopped),
        control=control,
        attempt=attempt,
        control_arrived=_describe_arrivals(control.arrived),
        attempt_arrived=_describe_arrivals(attempt.arrived + attempt.stray),
        control_steps=tuple(describe_steps(control.said)),
        attempt_steps=tuple(describe_steps(attempt.said)),
        refusals=tuple(describe_refusals(technique.stopped, attempt.denials)),
        counters=_describe_counters(attempt.closing),
    )


def _describe_counters(closing: Mapping[str, Any]) -> str:
    """Whether what the kernel counted in the room is what the ledger holds."""
    if not closing.get("completeness"):
        return ""
    return f"{closing['completeness']} ({'they agree' if closing.get('complete') else 'they do not agree'})"


def describe_witness(witness: Witness) -> str:
    """What would show that the attack worked, in words."""
    where = {
        "at": witness.address, "port": witness.port, "of": witness.protocol, "named": witness.name,
        "path": witness.path, "with": witness.text,
    }  # fmt: skip
    return " ".join(
        [witness.what, *(f"{word} {value}" for word, value in where.items() if value is not None)]
    )


def _describe_arrivals(arrived: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    lines = [cut(_in_one_line(describe_arrival(dict(one))), 300) for one in arrived]
    return _bounded(lines)


def _bounded(lines: list[str]) -> tuple[str, ...]:
    if len(lines) <= _LINES_LIMIT:
        return tuple(lines)
    return (*lines[:_LINES_LIMIT], f"… and {len(lines) - _LINES_LIMIT} more (trials.json has all)")


def describe_steps(said: Iterable[Mapping[str, Any]]) -> list[Step]:
    """What the payload said of itself, a step a line; the last word (`done`) is left out."""
    steps = [_describe_step(one) for one in said if not one.get("done")]
    rest = len(steps) - _LINES_LIMIT
    if rest <= 0:
        return steps
    return [*steps[:_LINES_LIMIT], Step("note", f"… and {rest} more steps", "trials.json has all")]


def _describe_step(said: Mapping[str, Any]) -> Step:
    did = str(said.get("do") or said.get("action") or "said")
    if "allowed" in said:
        did = f"permitted request {said['allowed']}"
    elif "argv" in said and isinstance(said["argv"], list):
        did = cut(f"{did} {' '.join(map(str, said['argv']))}", 200)
    elif to := said.get("to") or said.get("url") or said.get("address"):
        did = cut(f"{did} {_in_one_line(str(to))}", 200)
    elif "came" in said:  # a step of the browser's agent: what it acted on stands in fields of its own
        words = [str(value) for key, value in said.items() if key not in _NOT_SHOWN and value is not None]
        did = cut(" ".join([did, *words]), 200)
    if "broken" in said:
        return Step("refused", "the attack itself failed", cut(str(said["broken"])))
    if "error" in said or "errno" in said:
        words = [str(said[key]) for key in ("errno", "error", "detail") if said.get(key)]
        return Step("refused", cut(did, 200), cut(": ".join(dict.fromkeys(words))))
    return Step(_kind_of(said), cut(did, 200), _tell_answer(said))


def _kind_of(said: Mapping[str, Any]) -> str:
    reply = str(said.get("reply", ""))
    return "refused" if " 403 " in reply.partition("\r\n")[0] else "answered"


def _tell_answer(said: Mapping[str, Any]) -> str:
    if reply := said.get("reply"):
        head, _, body = str(reply).partition("\r\n\r\n")
        return cut(f"{head.splitlines()[0] if head else ''}  {body}".strip())
    if said.get("came"):
        return cut(str(said["came"]))
    rest = {key: value for key, value in said.items() if key not in _NOT_SHOWN}
    return cut(", ".join(f"{key} {_plain(value)}" for key, value in rest.items())) or "no answer"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def describe_refusals(stopped: Iterable[Stopped], denials: Iterable[Mapping[str, Any]]) -> list[Refusal]:
    """The ledger's refusals, equal ones counted, those that were expected first."""
    from stockade.prove.judge import fits_refusal

    ways, found = list(stopped), dict[tuple[str, ...], Refusal]()
    for denial in denials:
        key = tuple(str(denial.get(name) or "") for name in ("reason", "entry", "layer", "rule"))
        what = _tell_target(denial)
        count = 1 + int(denial.get("repeated") or 0)
        if (known := found.get((*key, what))) is not None:
            count += known.count
        found[(*key, what)] = Refusal(
            reason=key[0], what=what, entry=key[1], layer=key[2], rule=key[3],
            why=cut(str(denial.get("why") or "")), count=count,
            is_expected=any(not way.silent and fits_refusal(way, dict(denial)) for way in ways),
        )  # fmt: skip
    ordered = sorted(found.values(), key=lambda one: not one.is_expected)
    return ordered[:_LINES_LIMIT]


def _tell_target(denial: Mapping[str, Any]) -> str:
    """What was refused: a call, a command, a request, a question or a place."""
    for key in ("call", "program"):
        if denial.get(key):
            return cut(str(denial[key]), 200)
    place = str(denial.get("name") or denial.get("raw") or denial.get("address") or "")
    if denial.get("port"):
        place += f":{denial['port']}"
    words = [denial.get("method"), place, denial.get("path"), denial.get("query_type")]
    return cut(" ".join(str(word) for word in words if word), 200)


def _in_one_line(text: str) -> str:
    return " ⏎ ".join(text.splitlines())


def cut(text: str, limit: int = _TEXT_LIMIT) -> str:
    """The text, or its beginning and how much is left out."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more)"
