"""The four tiers as data: how much traffic, how much noise, how much time, how subtle."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from stockade.errors import UserError

Clock = Literal["on", "double", "off"]
CLOCKS: tuple[Clock, ...] = ("on", "double", "off")
COUNT = 9  # events in a round


class Tier(Struct, frozen=True):
    """One tier.

    Attributes:
        clock_s: Seconds for the speed bonus of an event; None without a clock.
        noise: Lines of other traffic beside each event.
        below: The fewest and the most events that come from the tier below.
        pair_in: One round in so many holds an event and its near-pair; 0 for none.
    """

    tier: int
    clock_s: int | None
    noise: int
    label: str
    below: tuple[int, int]
    pair_in: int


TIERS: tuple[Tier, ...] = (
    Tier(1, None, 0, "Plain cases, no clock", (0, 0), 0),
    Tier(2, 90, 3, "More kinds of places, a little noise, 90 s", (2, 3), 3),
    Tier(3, 60, 6, "Lookalikes and moved phases, noise, 60 s", (2, 3), 2),
    Tier(4, 40, 10, "One detail decides, much noise, 40 s", (2, 3), 2),
)


def find_tier(number: int) -> Tier:
    """The tier of this number.

    Raises:
        UserError: There is none.
    """
    for tier in TIERS:
        if tier.tier == number:
            return tier
    raise UserError("no-such-tier", f"there is no tier {number}", "tiers are 1, 2, 3 and 4")


def clock_of(tier: int | None, clock: Clock) -> int | None:
    """Seconds for the bonus of one event, or None without a clock; a drill (tier None) has none."""
    seconds = None if tier is None else find_tier(tier).clock_s
    if seconds is None or clock == "off":
        return None
    return 2 * seconds if clock == "double" else seconds
