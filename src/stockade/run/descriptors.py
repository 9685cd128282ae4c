"""How many connections the gateway's descriptors are enough for.

A connection takes two, and what opens files while a room is full (a look-up, a heartbeat,
an operator's command) must still find one: else a worker that opens connections could end
its own run. So the excess is refused, on record, before the descriptors are used up.
"""

from __future__ import annotations

import resource

# The room's sockets, the ledger, the pipes that bulk transfers borrow, look-ups and commands.
RESERVED = 96
FEWEST_CONNECTIONS = 8


def plan_connections(wanted: int, descriptors: int) -> int:
    """The largest number of connections, up to `wanted`, that leaves the reserve untouched."""
    return max(FEWEST_CONNECTIONS, min(wanted, (descriptors - RESERVED) // 2))


def probe_descriptors() -> int:
    """What this process may raise its own limit to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1 << 20 if hard == resource.RLIM_INFINITY else hard


def raise_limit() -> None:
    """Use what we may. Only once the worker has started: it gets the limit that its caller had."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
