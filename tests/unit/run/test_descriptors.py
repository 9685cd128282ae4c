"""Connections leave descriptors for what must go on while a room is full."""

from __future__ import annotations

import pytest

from stockade.run.descriptors import plan_connections


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(1 << 20, 512), (1120, 512), (1119, 511), (1024, 464), (256, 80), (128, 16), (112, 8), (64, 8), (0, 8)],
)
def test_r109_a_connection_takes_two_and_96_stay_free(descriptors: int, connections: int) -> None:
    assert plan_connections(512, descriptors) == connections


def test_r109_a_smaller_number_that_the_policy_names_holds() -> None:
    assert plan_connections(10, 1 << 20) == 10
