"""Two numbers about a player: how well the two kinds are told apart, and which way the doubt goes.

Signal detection: the signal is an event that has to be denied, the response is `deny`. d′ = z(H) − z(F) is
what the player can tell apart, c = −(z(H) + z(F)) / 2 is where the line is drawn: above 0 the player lets
through in doubt, below 0 denies. Rates of 0 and 1 have no z, so 0.5 is added to the counts and 1 to the
totals (the log-linear rule: Hautus, Behavior Research Methods 27, 1995), always, not only where needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist

from msgspec import Struct

FEW = 18  # two rounds; below that one answer more or less moves d′ by half a unit

_SLANT = 0.25
_ERRORS = 2  # one mistake is no habit, and with few answers it alone moves c further than that


class Sensitivity(Struct, frozen=True):
    """What the answers show.

    Attributes:
        d_prime: None where one of the two kinds was not seen.
        bias: c; above 0 the player lets through in doubt, below 0 denies.
        n: Answers that it rests on.
        note: What to make of it, in one sentence.
    """

    d_prime: float | None
    bias: float | None
    n: int
    signals: int
    hits: int
    others: int
    false_alarms: int
    note: str


def measure(answers: Iterable[tuple[bool, bool]]) -> Sensitivity:
    """Sensitivity and bias of pairs (had to be denied, was denied)."""
    signals = hits = others = false_alarms = 0
    for is_signal, was_denied in answers:
        if is_signal:
            signals, hits = signals + 1, hits + was_denied
        else:
            others, false_alarms = others + 1, false_alarms + was_denied
    d_prime = bias = None
    if signals and others:
        z = NormalDist().inv_cdf
        z_hits = z((hits + 0.5) / (signals + 1))
        z_false = z((false_alarms + 0.5) / (others + 1))
        d_prime, bias = round(z_hits - z_false, 2), round(-(z_hits + z_false) / 2, 2) + 0.0
    n = signals + others
    note = _say(d_prime, bias, signals=signals, hits=hits, others=others, false_alarms=false_alarms)
    return Sensitivity(d_prime, bias, n, signals, hits, others, false_alarms, note)


def _say(
    d_prime: float | None, bias: float | None, *, signals: int, hits: int, others: int, false_alarms: int
) -> str:
    n = signals + others
    if d_prime is None or bias is None:
        seen = "denied" if signals else "legitimate" if others else "no"
        return f"There were {seen} events only, so nothing can be said." if n else "No answers yet."
    told = "well" if d_prime >= 2 else "partly" if d_prime >= 1 else "hardly"
    lean = "no slant"
    if bias > _SLANT and signals - hits >= _ERRORS:
        lean = "in doubt you let it through"
    if bias < -_SLANT and false_alarms >= _ERRORS:
        lean = "in doubt you deny"
    few = f" It rests on {n} answers only, so take it as a first sign." if n < FEW else ""
    return f"You tell the two kinds {told} apart; {lean}.{few}"
