"""The two ends of one connection or question, as the room sees them."""

from __future__ import annotations

from msgspec import Struct

from stockade.net.address import IPAddress


class Ends(Struct, frozen=True):
    """Which socket of the worker is meant: an address and a port at each end.

    Attributes:
        is_tcp: TCP; else UDP.
        worker: The asking end. The worker chooses its address freely, so it tells one
            connection from another and says nothing about who asks.
        far: What was dialled or asked.
    """

    is_tcp: bool
    worker: tuple[IPAddress, int]
    far: tuple[IPAddress, int]
