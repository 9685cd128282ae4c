"""Stockade's gateway without a room: its proxy entry on an ordinary socket, as other proxies have it.

The same engine, flow, ledger and relay as in `stockade run`; only the sockets were made on
this side. Policy and folder are given as in `subjects.py`. `--profile FILE` writes what
cProfile saw of the loop's thread.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from ipaddress import ip_address
from pathlib import Path

from stockade.decision.engine import Engine
from stockade.gateway.journal import Journal
from stockade.gateway.names import GATEWAY_ADDRESS, HTTP_PROXY_PORT
from stockade.gateway.resolve import Resolver
from stockade.gateway.server import Listeners, Room, RoomLimits
from stockade.ledger.record import decision_id, new_run_id
from stockade.ledger.store import Ledger
from stockade.policy.load import load_policy
from stockade.reactor import Reactor
from stockade.vocabulary import Identity, Phase


def open_listeners() -> Listeners:
    """Make ordinary sockets where the room's would be; the proxy's address is on this lo (see `run`)."""
    tcp = socket.create_server((GATEWAY_ADDRESS, HTTP_PROXY_PORT), backlog=4096)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    nothing_refused, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sock in (tcp, udp, nothing_refused):
        sock.setblocking(False)
    return Listeners(tcp, None, udp, None, nothing_refused)


def serve(policy_file: Path, shelf: Path) -> None:
    """Serve until SIGTERM."""
    policy = load_policy(policy_file)
    reactor = Reactor()
    run_id = new_run_id(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.urandom(4))

    def failed(error: Exception) -> None:
        print(f"plain_gateway: {error!r}", file=sys.stderr)
        reactor.stop()

    ledger = Ledger.open(shelf, run_id, wake=reactor.call_threadsafe, on_failure=failed)
    ledger.append("run.opened", {"policy": policy.digest})
    room = Room(
        reactor,
        open_listeners(),
        Engine(policy, Phase.WORK, Identity.AGENT),
        Journal(ledger, policy.digest),
        Resolver(reactor, {"app.test": (ip_address("127.0.0.1"),)}),
        lambda seq: decision_id(run_id, seq),
        secrets={},
        limits=RoomLimits(connections=policy.limits.connections or 4096),
        on_fault=failed,
    )
    room.open()
    reactor.on_signal(signal.SIGTERM, reactor.stop)
    reactor.run()
    room.close()
    ledger.close()


def main() -> None:
    """Serve, under a profiler if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("shelf", type=Path)
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    if options.profile is None:
        serve(options.policy, options.shelf)
        return
    import cProfile

    profile = cProfile.Profile()
    profile.runcall(serve, options.policy, options.shelf)
    profile.dump_stats(options.profile)


if __name__ == "__main__":
    main()
