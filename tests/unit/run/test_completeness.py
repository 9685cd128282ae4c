"""Recipe R5's equation; the figures are those that were measured when the boundary was attacked."""

import pytest

from stockade.gateway.server import RoomCounts
from stockade.run.completeness import weigh
from stockade.sandbox.supervise import RoomCounters


def gateway(**counts: int) -> RoomCounts:
    base = dict.fromkeys(
        ("accepted", "drained", "tcp_drops", "dns_received", "dns_drops", "refused_seen", "refused_lost"), 0
    )
    return RoomCounts(**{**base, **counts})


def kernel(syn: int = 0, dns: int = 0, refused: int = 0, refused_syn: int = 0) -> RoomCounters:
    return RoomCounters(syn=syn, dns=dns, refused=refused, refused_syn=refused_syn)


def test_an_ordinary_run_is_exact() -> None:
    result = weigh(gateway(accepted=2, refused_seen=1), kernel(syn=3, refused=1, refused_syn=1))
    assert (result.is_exact, result.missing) == (True, 0)


@pytest.mark.parametrize(("syn", "accepted", "drops"), [(9317, 4097, 5220), (4090, 2482, 1608)])
def test_what_a_listener_dropped_is_inexact_by_that_much(syn: int, accepted: int, drops: int) -> None:
    result = weigh(gateway(accepted=accepted, tcp_drops=drops), kernel(syn=syn))
    assert (result.is_exact, result.missing) == (False, drops)


def test_a_dns_flood_is_counted() -> None:
    result = weigh(gateway(dns_received=256, dns_drops=19_744), kernel(dns=20_000))
    assert result.missing == 19_744


def test_lost_log_messages_are_counted_once() -> None:
    """20,000 sent, 19,601 received: 399 lost, whether the numbers or the counter say so."""
    result = weigh(gateway(refused_seen=19_601, refused_lost=399), kernel(refused=20_000))
    assert result.missing == 399
    assert weigh(gateway(refused_seen=19_601), kernel(refused=20_000)).missing == 399


def test_a_connection_that_nobody_knows_of_is_not_exact() -> None:
    assert weigh(gateway(accepted=9), kernel(syn=10)).missing == 1
    assert weigh(gateway(accepted=10), kernel(syn=9)).missing == 1


def test_what_was_still_in_the_queue_at_the_end_is_not_on_record() -> None:
    assert weigh(gateway(accepted=9, drained=1), kernel(syn=10)).missing == 1
