"""What the summary says of refused commands, and of programs that make code while they run.

A build to which thirty programs were refused needs one line of policy, not thirty (and a
policy has room for one `exec:`): the preset that lists them, and the entries that it lacks.
Every line offered loads as it stands.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from stockade.decision.explain import quote_program
from stockade.gateway.journal import Denial
from stockade.vocabulary import Reason

COVERED_BY_PRESET = 4  # programs, at least: a preset for fewer would permit much that nobody asked for
NAMED = 12
OFFERED = 600  # characters: a line of the summary is not cut inside an offer

Counted = tuple[Denial, int]


class Sorted(Struct, frozen=True):
    """Refusals by how they are told.

    Attributes:
        commands: Several programs that are not listed, with one proposal for all of them.
        compilers: Calls by which programs make code, which the level of the run refuses.
        others: What is told one by one.
    """

    commands: Sequence[Counted]
    compilers: Sequence[Counted]
    others: Sequence[Counted]


def sort_denials(denials: Sequence[Counted]) -> Sorted:
    """Part refusals; the order inside each part stays."""
    commands = [each for each in denials if _is_program(each[0])]
    compilers = [each for each in denials if each[0].reason == Reason.CODE_IN_MEMORY and each[0].key]
    if len({denial.entry for denial, _times in commands}) < 2:
        commands = []
    told = {denial for denial, _times in (*commands, *compilers)}
    return Sorted(commands, compilers, [each for each in denials if each[0] not in told])


def _is_program(denial: Denial) -> bool:
    """Not listed, and no script: how a script runs without being listed is told with it alone."""
    return denial.reason == Reason.PROGRAM_NOT_LISTED and bool(denial.entry) and not denial.is_script


def describe_commands(commands: Sequence[Counted]) -> tuple[int, list[str]]:
    """How often, and the lines: which programs, and what would permit them."""
    times: Counter[str] = Counter()
    for denial, count in commands:
        times[denial.entry] += count
    named = [f"{count}× {entry}" if count > 1 else entry for entry, count in times.most_common(NAMED)]
    more = f" and {len(times) - NAMED} more" if len(times) > NAMED else ""
    return times.total(), [
        f"{len(times)} programs that `exec:` does not list: {', '.join(named)}{more}",
        f"to permit them, add {_offer(list(times))}",
    ]


def _offer(entries: Sequence[str]) -> str:
    """The narrowest lines of policy, and the widest that is still a preset."""
    preset, covered = find_preset(entries)
    rest = [entry for entry in entries if entry not in covered]
    if not preset:
        return _allow_line(entries)
    include = f"`include: [{preset}]`"
    if rest:
        return f"{include} and {_allow_line(rest)}"
    return f"{include}, or {_allow_line(entries)}" if len(entries) <= NAMED else include


def _allow_line(entries: Sequence[str]) -> str:
    quoted = [quote_program(entry) for entry in sorted(entries)]
    lengths = accumulate(len(text) + 2 for text in quoted)
    shown = [text for text, length in zip(quoted, lengths, strict=True) if length <= OFFERED] or quoted[:1]
    more = f" and {len(quoted) - len(shown)} more" if len(quoted) > len(shown) else ""
    return f"`exec: {{allow: [{', '.join(shown)}]}}`{more}"


def find_preset(entries: Collection[str]) -> tuple[str, frozenset[str]]:
    """The preset that lists most of them, the shorter of two equal ones, and which it lists.

    A preset that lists only a few of them is none.
    """
    from stockade.decision.commands import ProgramList
    from stockade.policy.load import list_presets, load_preset

    best, length = ("", frozenset[str]()), 0
    for name in list_presets():
        policy = load_preset(name).exec if name.startswith("exec/") else None
        if policy is None:
            continue
        listed = ProgramList(policy)
        covered = frozenset(entry for entry in entries if listed.find(entry) is not None)
        is_better = (len(covered), -len(policy.allow)) > (len(best[1]), -length)
        if len(covered) >= COVERED_BY_PRESET and is_better:
            best, length = (name, covered), len(policy.allow)
    return best


def describe_compilers(compilers: Sequence[Counted]) -> Iterator[tuple[int, str]]:
    """How often, and a line, for each program that wanted to make code while it runs."""
    by_program: dict[tuple[str, str], list[Counted]] = {}
    for denial, count in compilers:
        by_program.setdefault((os.path.basename(denial.program), denial.key), []).append((denial, count))
    for (program, key), found in by_program.items():
        name = program or "a program that has ended"
        calls = " and ".join(denial.target for denial, _count in found[:2])
        yield (
            sum(count for _denial, count in found),
            f"{name}  {Reason.CODE_IN_MEMORY.value}: {name} makes code while it runs ({calls}),"
            f" which `code: closed` refuses; to permit it, add `{key}`",
        )
