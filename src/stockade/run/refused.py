"""What the summary says of refused commands, and of programs that make code while they run.

A build to which thirty programs were refused needs one line of policy, not thirty: the
preset that lists them, and the entries that it lacks. Every line offered loads as it stands.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from stockade.decision.explain import quote_program
from stockade.gateway.journal import Denial
from stockade.vocabulary import Reason

TOLD_ALONE = 3
NAMED = 12
OFFERED = 30

Counted = tuple[Denial, int]


class Sorted(Struct, frozen=True):
    """Refusals by how they are told.

    Attributes:
        commands: So many programs that are not listed that one proposal is for all of them.
        compilers: Calls by which programs make code, which the level of the run refuses.
        others: What is told one by one.
    """

    commands: Sequence[Counted]
    compilers: Sequence[Counted]
    others: Sequence[Counted]


def sort_denials(denials: Sequence[Counted]) -> Sorted:
    """Part refusals; the order inside each part stays."""
    commands = [each for each in denials if each[0].reason == Reason.PROGRAM_NOT_LISTED and each[0].entry]
    compilers = [each for each in denials if each[0].reason == Reason.CODE_IN_MEMORY and each[0].key]
    if len({denial.entry for denial, _times in commands}) <= TOLD_ALONE:
        commands = []
    told = {denial for denial, _times in (*commands, *compilers)}
    return Sorted(commands, compilers, [each for each in denials if each[0] not in told])


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
        return allow_line(entries)
    include = f"`include: [{preset}]`"
    if rest:
        return f"{include} and {allow_line(rest)}"
    return f"{include}, or {allow_line(entries)}" if len(entries) <= NAMED else include


def allow_line(entries: Sequence[str]) -> str:
    shown = ", ".join(map(quote_program, sorted(entries)[:OFFERED]))
    more = f" and {len(entries) - OFFERED} more" if len(entries) > OFFERED else ""
    return f"`exec: {{allow: [{shown}]}}`{more}"


def find_preset(entries: Collection[str]) -> tuple[str, frozenset[str]]:
    """The preset that lists most of them, the shorter of two equal ones, and which it lists.

    A preset that lists no more than a few is none.
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
        if len(covered) > TOLD_ALONE and is_better:
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
