"""Nine events for a round, by seed.

The same seed, tier and pack give the same round everywhere. Four or five events are legitimate, whatever
the pack's own share: training on mostly bad items teaches to refuse, and a round where one answer fits
all would reward it. Events come from the tier and some from the one below; now and then an event stands
in one round with the one that looks like it. Of a handful of candidates the one is taken that repeats
least what the round has already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stockade.errors import UserError
from stockade.lab.game.dice import Dice
from stockade.lab.game.tiers import COUNT, find_tier
from stockade.lab.pack.pack import Pack
from stockade.lab.pack.scenario import Scenario

_CANDIDATES = 6  # more would draw the rarest classes in each round
_SEED = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,31}")


def parse_seed(text: str) -> str:
    """A seed as people say it to each other: up to 32 letters, digits, `-`, `_` and `.`.

    Raises:
        UserError: It is something else.
    """
    seed = text.strip()
    if not _SEED.fullmatch(seed):
        raise UserError(
            "bad-seed", "a seed is 1 to 32 letters, digits, hyphens, underscores or dots", "such as 2026-11"
        )
    return seed


def is_playable(scenario: Scenario) -> bool:
    """The player sees what decides: the line shows it, or the pack says what a look inside shows."""
    return scenario.is_seen_by_the_line or scenario.carries is not None


def draw_round(pack: Pack, seed: str, tier: int) -> tuple[str, ...]:
    """The numbers of the round's scenarios, in order.

    Raises:
        UserError: The pack has too few events for a round.
    """
    asked = find_tier(tier)
    dice = Dice("round", seed, str(tier), pack.digest)
    rows = [row for row in pack.scenarios if is_playable(row)]
    legitimate = 4 + dice.below(2)
    _refuse_small(rows, legitimate)
    least, most = asked.below
    below = least + dice.below(most - least + 1)
    kinds = dice.shuffle([True] * legitimate + [False] * (COUNT - legitimate))
    tiers = dice.shuffle([tier - 1] * below + [tier] * (COUNT - below))
    drawn: list[Scenario | None] = [None] * COUNT
    if asked.pair_in and dice.below(asked.pair_in) == 0:
        _put_pair(drawn, kinds, _pairs(rows, tier), dice)
    for place in range(COUNT):
        if drawn[place] is None:
            taken = [row for row in drawn if row is not None]
            drawn[place] = _draw_one(rows, kinds[place], tiers[place], taken, dice)
    return tuple(row.id for row in drawn if row is not None)


def _refuse_small(rows: Sequence[Scenario], legitimate: int) -> None:
    """Two rows of one line count once, since a round shows a line once."""
    for kind, needed in ((True, legitimate), (False, COUNT - legitimate)):
        if len({line_of(row) for row in rows if row.is_legitimate is kind}) < needed:
            word = "legitimate" if kind else "denied"
            raise UserError("pack-too-small", f"a round takes {needed} {word} events, and the pack has fewer")


def line_of(row: Scenario) -> tuple[object, ...]:
    """All that tells an event from another before the answer, but for what the agent says."""
    return row.phase, row.identity, row.entry, row.attempt, row.answers, row.came_from, row.sni, row.carries


def are_near(one: Scenario, other: Scenario) -> bool:
    return one.near == other.id or other.near == one.id


def _pairs(rows: Sequence[Scenario], tier: int) -> list[tuple[Scenario, Scenario]]:
    """A legitimate event and a denied one that look alike, both of this tier or below."""
    by_id = {row.id: row for row in rows}
    found = []
    for row in rows:
        near = by_id.get(row.near)
        if near is None or row.is_legitimate is near.is_legitimate or line_of(row) == line_of(near):
            continue
        pair = (row, near) if row.is_legitimate else (near, row)
        if max(row.tier, near.tier) == tier and pair not in found:
            found.append(pair)
    return found


def _put_pair(
    drawn: list[Scenario | None], kinds: list[bool], pairs: list[tuple[Scenario, Scenario]], dice: Dice
) -> None:
    if not pairs:
        return
    for kind, row in zip((True, False), dice.pick(pairs), strict=True):
        drawn[dice.pick([place for place, one in enumerate(kinds) if one is kind])] = row


def _draw_one(
    rows: Sequence[Scenario], kind: bool, tier: int, taken: Sequence[Scenario], dice: Dice
) -> Scenario:
    lines = {line_of(row) for row in taken}
    left = [row for row in rows if row.is_legitimate is kind and line_of(row) not in lines]
    pool = next(found for found in _by_nearness(left, tier) if found)
    candidates = dice.sample(pool, _CANDIDATES)
    return min(candidates, key=lambda row: sum(_likeness(row, other) for other in taken))


def _by_nearness(rows: Sequence[Scenario], tier: int) -> Iterator[list[Scenario]]:
    """Rows of the tier, then of the nearest ones, the lower first: a pack may leave a tier empty."""
    for distance in range(4):
        for number in (tier - distance, tier + distance):
            yield [row for row in rows if row.tier == number]


def _likeness(one: Scenario, other: Scenario) -> int:
    """How much of one the other repeats; a benign risk or an ordinary technique is no repetition."""
    same = 3 * (one.key.control is other.key.control) + 2 * (one.key.place is other.key.place)
    if not one.is_legitimate:
        same += 2 * (one.key.risk is other.key.risk)
    if one.technique != "none":
        same += 4 * (one.technique == other.technique)
    return same + 2 * are_near(one, other) + (one.phase is other.phase)
