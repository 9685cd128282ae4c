"""Rates slow down; they do not refuse."""

from stockade.gateway.pace import Pace
from stockade.reactor import Reactor


def test_a_burst_of_one_second_passes_and_the_rest_comes_at_the_rate() -> None:
    pace = Pace(Reactor())
    waits = [pace.spend("policy.yaml:1", 20, now=100.0) for _ in range(41)]
    # By hand: 20 a second means 20 tokens at once, then one each 0.05 s.
    assert all(wait <= 0 for wait in waits[:20])
    assert [round(wait, 6) for wait in waits[20:23]] == [0.05, 0.1, 0.15]
    assert round(waits[40], 6) == 1.05


def test_an_idle_bucket_is_full_again_and_not_fuller() -> None:
    pace = Pace(Reactor())
    for _ in range(20):
        pace.spend("r", 20, now=100.0)
    assert [pace.spend("r", 20, now=200.0) <= 0 for _ in range(21)] == [True] * 20 + [False]


def test_rules_do_not_slow_each_other() -> None:
    pace = Pace(Reactor())
    for _ in range(50):
        pace.spend("a", 1, now=100.0)
    assert pace.spend("b", 1, now=100.0) <= 0
