"""Did anything go unrecorded? The kernel's counters in the room against what we wrote down.

With SYN cookies off, every connection attempt that reached the room's packet filter is
in one of four heaps, so the sum is exact and a difference is a fact:

    SYNs counted = accepted + drained at the end + dropped by our listeners + refused

Likewise every DNS question was received or dropped by our sockets, and every refused
packet has a number in the filter's log.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.gateway.server import RoomCounts
from stockade.sandbox.supervise import RoomCounters


class Completeness(Struct, frozen=True, kw_only=True):
    """Whether the ledger holds every attempt.

    Attributes:
        is_exact: Both sides of every equation agree and nothing was dropped or lost.
        missing: By how many attempts the record is inexact; None if it could not be counted.
        detail: The figures in one line.
    """

    is_exact: bool
    missing: int | None
    detail: str


def weigh(gateway: RoomCounts, kernel: RoomCounters) -> Completeness:
    """Compare the gateway's counts with the kernel's (all read after the worker has ended)."""
    tcp_known = gateway.accepted + gateway.drained + gateway.tcp_drops + kernel.refused_syn
    dns_known = gateway.dns_received + gateway.dns_drops
    unexplained = abs(kernel.syn - tcp_known) + abs(kernel.dns - dns_known)
    unrecorded = gateway.drained + gateway.tcp_drops + gateway.dns_drops
    refused_lost = max(gateway.refused_lost, kernel.refused - gateway.refused_seen)
    missing = unexplained + unrecorded + refused_lost
    detail = (
        f"syn {kernel.syn} = accepted {gateway.accepted} + drained {gateway.drained}"
        f" + dropped {gateway.tcp_drops} + refused {kernel.refused_syn};"
        f" dns {kernel.dns} = received {gateway.dns_received} + dropped {gateway.dns_drops};"
        f" refused {kernel.refused} = logged {gateway.refused_seen} + lost {refused_lost}"
    )
    return Completeness(is_exact=missing == 0, missing=missing, detail=detail)
