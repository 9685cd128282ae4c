"""A room as the gateway sees it: its listeners, its connections, its names and its counts.

The sockets were made inside the room's network namespace and handed over, so what is
accepted here was dialled there, and `getsockname` on it is the address that the worker
dialled: synthetic (then it stands for a name), the gateway's own (then a port says
which proxy is meant), or a bare number. What is dialled from here leaves from the
gateway's own namespace.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stockade.decision.request import Attempt, Decision
from stockade.gateway.closing import close_with_reset
from stockade.gateway.driver import Connection
from stockade.gateway.journal import Journal
from stockade.gateway.names import GATEWAY_ADDRESS, HTTP_PROXY_PORT, SOCKS5_PORT, NameTable
from stockade.gateway.names_server import NamesServer
from stockade.gateway.naming import CommandNames, EndsOf, ends_of_connection
from stockade.gateway.pace import Pace
from stockade.gateway.refused import RefusedLog, RefusedPacket
from stockade.gateway.resolve import Proceed, Resolver
from stockade.net.address import IPAddress
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host
from stockade.protocol import effects as fx
from stockade.protocol.content import Holding
from stockade.protocol.line import FlowLimits
from stockade.reactor import READ, Reactor
from stockade.vocabulary import Entry, Protocol, Reason, Verdict

if TYPE_CHECKING:
    from stockade.decision.engine import Engine
    from stockade.protocol.flow import Flow

# So many connections are taken from one listener before the other descriptors get their turn.
ACCEPT_BATCH = 64
# SO_MEMINFO (socket.h) gives nine counters; the last is what the socket itself dropped.
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("=9I")
# When no descriptor is left, accepting pauses; the backlog waits and nothing is lost.
PAUSE_ACCEPT_S = 0.05
REDIRECTS_KEPT = 256
DEFAULT_CONNECTION_LIMIT = 512


class Listeners(Struct, frozen=True):
    """Sockets that live in the room, as the sandbox hands them over. All non-blocking."""

    tcp4: socket.socket
    tcp6: socket.socket | None
    udp4: socket.socket
    udp6: socket.socket | None
    nflog: socket.socket

    def tcp(self) -> list[socket.socket]:
        return [sock for sock in (self.tcp4, self.tcp6) if sock is not None]

    def udp(self) -> list[socket.socket]:
        return [sock for sock in (self.udp4, self.udp6) if sock is not None]

    def close(self) -> None:
        for sock in (*self.tcp(), *self.udp(), self.nflog):
            sock.close()


class RoomLimits(Struct, frozen=True, kw_only=True):
    """What one room may use of the gateway; None means without a limit."""

    connections: int = DEFAULT_CONNECTION_LIMIT
    upload_bytes: int | None = None
    flow: FlowLimits = FlowLimits()


class RoomCounts(Struct, frozen=True, kw_only=True):
    """The gateway's half of the completeness equation, see `run.completeness`."""

    accepted: int
    drained: int
    tcp_drops: int
    dns_received: int
    dns_drops: int
    refused_seen: int
    refused_lost: int


class Room:
    """One worker's room, served by this gateway.

    Args:
        listeners: The room's sockets; the room closes them.
        engine: Decides; replaced as a whole by `replace_engine`.
        secrets: Values of the variables that the policy's `credential:` keys name.
        on_fault: Told of an exception that escaped one connection (a fault of ours).
        asker: Asks a person about a held attempt; None: nobody is there, so it is denied.
        commands: Names the command behind an attempt; None: records name none.
    """

    def __init__(
        self,
        reactor: Reactor,
        listeners: Listeners,
        engine: Engine,
        journal: Journal,
        resolver: Resolver,
        decision_id: Callable[[int], str],
        *,
        secrets: Mapping[str, str],
        limits: RoomLimits | None = None,
        on_fault: Callable[[Exception], None],
        asker: Callable[[fx.Hold, Callable[[bool, str], None]], None] | None = None,
        commands: CommandNames | None = None,
    ) -> None:
        self.reactor = reactor
        self.engine = engine
        self.journal = journal
        self.names = NameTable()
        self._secrets = secrets
        self._holding = Holding()
        self.fault = on_fault
        self.decision_id = decision_id
        self._listeners = listeners
        self._resolver = resolver
        self._limits = limits or RoomLimits()
        self._asker = asker
        self._commands = commands
        self._connections: set[Connection] = set()
        self._redirects: dict[tuple[str, int], None] = {}
        self._approved: dict[tuple[str, int], str] = {}
        self._sent_bytes = 0
        self._pace = Pace(reactor)
        self._names_server = NamesServer(self)
        self._refused = RefusedLog(listeners.nflog)
        self._accepted = 0
        self._drained = 0
        self._is_open = False

    # --- life ----------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to serve; do this before the worker starts."""
        self._is_open = True
        for sock in self._listeners.tcp():
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
            self.reactor.watch(sock.fileno(), READ, partial(self._accept, sock))
        for sock in self._listeners.udp():
            self.reactor.watch(sock.fileno(), READ, partial(self._names_server.receive, sock))
        self.reactor.watch(self._listeners.nflog.fileno(), READ, lambda _events: self._read_refused())

    @property
    def is_sending(self) -> bool:
        """A connection still carries what the worker sent before it ended."""
        return any(connection.is_sending for connection in self._connections)

    def close(self) -> RoomCounts:
        """Cut what is open, count what nobody accepted, and close the sockets. May be called once."""
        self._is_open = False
        for connection in list(self._connections):
            connection.cut()
        self._names_server.close()
        self._read_refused()
        for sock in self._listeners.udp():
            self._names_server.receive(sock, READ)
        for sock in (*self._listeners.tcp(), *self._listeners.udp(), self._listeners.nflog):
            self.reactor.unwatch(sock.fileno())
        for sock in self._listeners.tcp():
            self._drain(sock)
        counts = self.counts()
        self._listeners.close()
        return counts

    def counts(self) -> RoomCounts:
        return RoomCounts(
            accepted=self._accepted,
            drained=self._drained,
            tcp_drops=sum(_drops(sock) for sock in self._listeners.tcp()),
            dns_received=self._names_server.received,
            dns_drops=sum(_drops(sock) for sock in self._listeners.udp()),
            refused_seen=self._refused.seen,
            refused_lost=self._refused.lost,
        )

    def replace_engine(self, engine: Engine, secrets: Mapping[str, str]) -> None:
        """Put another policy or phase in force; connections that it does not permit are cut."""
        self.engine = engine
        self._secrets = secrets
        for connection in list(self._connections):
            connection.policy_replaced()

    # --- what flows ask ------------------------------------------------------------------

    def decide(self, attempt: Attempt, addresses: tuple[IPAddress, ...] | None = None) -> Decision:
        """The engine's decision; it is told when a permitted answer sent the worker there."""
        attempt, host = self._flag_redirect(attempt), attempt.host
        approved_by = self._approved.get((host.name, attempt.port)) if isinstance(host, Host) else None
        return self.engine.decide(attempt, addresses, approved_by=approved_by)

    def _flag_redirect(self, attempt: Attempt) -> Attempt:
        """Mark an attempt as the next hop if a permitted answer has named its host and port."""
        host = attempt.host
        if self._redirects and isinstance(host, Host) and (host.name, attempt.port) in self._redirects:
            return replace(attempt, redirected=True)
        return attempt

    def refuse(self, attempt: Attempt, reason: Reason, why: str | None = None) -> Decision:
        return self.engine.refuse(attempt, reason, why)

    def protocol_for(self, host: Host, port: int) -> Protocol | None:
        return self.engine.protocol_for(host, port)

    def record(
        self,
        attempt: Attempt,
        decision: Decision,
        recorded: Callable[[int], None] | None,
        ends: EndsOf,
    ) -> int:
        """Put an attempt on record, with its command if that is wanted, and say when it is durable."""
        attempt = self._flag_redirect(attempt)
        is_denied, commands = decision.verdict is Verdict.DENY, self._commands
        if decision.rate_per_s is not None and recorded is not None and not is_denied:
            recorded = self._pace.slow(decision.rule, decision.rate_per_s, recorded)
        if commands is None or not (is_denied or commands.names_all):
            return self.journal.attempt(attempt, decision, recorded)
        return self.journal.attempt(attempt, decision, recorded, command=commands.name(ends()))

    def record_outcome(self, outcome: fx.RecordOutcome) -> None:
        self.journal.outcome(outcome)

    def resolve(self, host: Host, done: Callable[[tuple[IPAddress, ...], str | None], None]) -> None:
        proxy = self.engine.upstream
        if proxy is not None and self.engine.goes_upstream(host.name):
            done((proxy.address,), None)  # the name is the proxy's to look up
        else:
            self._resolver.resolve(host, self._before_question, done)

    def _before_question(self, host: Host, proceed: Proceed) -> None:
        """A question that leaves the machine is an attempt of its own: recorded, then sent."""
        question = Attempt(entry=Entry.DNS, protocol=Protocol.DNS, host=host, port=53, query_type="A")
        self.journal.attempt(question, self.decide(question), lambda _seq: proceed(), by="gateway")

    def hold(self, effect: fx.Hold, answered: Callable[[bool, str], None]) -> None:
        """Ask a person; what is allowed stays allowed for this name and port in this run."""
        if self._asker is None:
            answered(False, "nobody")
            return

        def heard(is_allowed: bool, by: str) -> None:
            host = effect.attempt.host
            if is_allowed and isinstance(host, Host):
                self._approved[host.name, effect.attempt.port] = by
            answered(is_allowed, by)

        self._asker(effect, heard)

    def note_redirect(self, host: Host, port: int) -> None:
        self._redirects[host.name, port] = None
        if len(self._redirects) > REDIRECTS_KEPT:
            del self._redirects[next(iter(self._redirects))]

    def spend_upload(self, count: int) -> bool:
        """Count bytes that leave; False when the policy's upload limit is used up."""
        self._sent_bytes += count
        limit = self._limits.upload_bytes
        return limit is None or self._sent_bytes <= limit

    def connection_ended(self, connection: Connection) -> None:
        self._connections.discard(connection)

    # --- connections -----------------------------------------------------------------------

    def _accept(self, listener: socket.socket, _events: int) -> None:
        for _ in range(ACCEPT_BATCH):
            try:
                sock, _peer = listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                self._pause(listener)
                return
            self._accepted += 1
            self._open_connection(sock)

    def _pause(self, listener: socket.socket) -> None:
        """No descriptors are left: look again in a moment instead of spinning."""
        self.reactor.unwatch(listener.fileno())
        self.reactor.call_later(PAUSE_ACCEPT_S, lambda: self._resume(listener))

    def _resume(self, listener: socket.socket) -> None:
        if self._is_open:
            self.reactor.watch(listener.fileno(), READ, partial(self._accept, listener))

    def _open_connection(self, sock: socket.socket) -> None:
        try:
            sock.setblocking(False)
            dialled = sock.getsockname()
        except OSError:  # reset before we looked
            sock.close()
            return
        address, port = dialled[0], dialled[1]
        open_now = len(self._connections) + self._names_server.open_streams
        if open_now >= self._limits.connections and not self._make_room():
            self._turn_away(sock, address, port)
            return
        if port == 53:
            self._names_server.serve_tcp(sock, self._host_at(address))
            return
        flow = self._flow_for(address, port)
        connection = Connection(self, sock, flow)
        self._connections.add(connection)
        connection.start(flow.start(self.reactor.now()))

    def _flow_for(self, address: str, port: int) -> Flow:
        entry = Entry.TRANSPARENT
        if address == GATEWAY_ADDRESS:
            entry = _PROXY_ENTRIES.get(port, Entry.TRANSPARENT)
        destination = None if entry is not Entry.TRANSPARENT else Endpoint(self._host_at(address), port)
        # Imported here: a run that connects to nothing starts sooner (7 ms), the others pay it once.
        from stockade.protocol.flow import Flow

        return Flow(
            entry,
            destination,
            self,
            self._limits.flow,
            self.decision_id,
            self.names.host_at,
            self._secrets,
            self._holding,
        )

    def _host_at(self, address: str) -> Host:
        return self.names.host_at(address) or literal_host(address)

    def _make_room(self) -> bool:
        """Close the connection that the worker half-closed; such ones may stay open for ever."""
        for connection in self._connections:
            if connection.is_half_closed:
                connection.cut()
                return True
        return False

    def _turn_away(self, sock: socket.socket, address: str, port: int) -> None:
        """The room's connections are used up: a record, and a reset."""
        attempt = Attempt(
            entry=Entry.TRANSPARENT, protocol=Protocol.TCP, host=self._host_at(address), port=port
        )
        decision = self.engine.refuse(attempt, Reason.TOO_MANY_CONNECTIONS)
        self.record(attempt, decision, lambda _seq: close_with_reset(sock), partial(ends_of_connection, sock))

    def _drain(self, listener: socket.socket) -> None:
        """Take and drop what nobody accepted, so that it is counted."""
        while True:
            try:
                sock, _peer = listener.accept()
            except ConnectionAbortedError:
                continue
            except OSError:
                return
            self._drained += 1
            close_with_reset(sock)

    # --- what the packet filter refused -----------------------------------------------------

    def _read_refused(self) -> None:
        for packet in self._refused.read():
            self._record_refused(packet)

    def _record_refused(self, packet: RefusedPacket) -> None:
        attempt = self._refused_attempt(packet)
        self.record(attempt, self.decide(attempt), None, lambda: packet.ends)

    def _refused_attempt(self, packet: RefusedPacket) -> Attempt:
        host = self._host_at(str(packet.destination))
        if packet.protocol == socket.IPPROTO_UDP:
            return Attempt(entry=Entry.UDP, protocol=Protocol.UDP, host=host, port=packet.port)
        if packet.protocol == socket.IPPROTO_TCP:
            return Attempt(entry=Entry.TRANSPARENT, protocol=Protocol.TCP, host=host, port=packet.port)
        if packet.protocol in (socket.IPPROTO_ICMP, socket.IPPROTO_ICMPV6):
            return Attempt(
                entry=Entry.SOCKET, protocol=Protocol.SOCKET, host=host, socket=f"icmp:{packet.destination}"
            )
        return Attempt(
            entry=Entry.SOCKET,
            protocol=Protocol.SOCKET,
            host=host,
            socket=f"ip-{packet.protocol}:{packet.destination}",
        )


_PROXY_ENTRIES = {HTTP_PROXY_PORT: Entry.HTTP_PROXY, SOCKS5_PORT: Entry.SOCKS5}


def literal_host(address: str) -> Host:
    """The host that a dialled number stands for; IPv6 scopes are dropped, their range is denied anyway."""
    number: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    return Host(name=str(number), address=number)


def _drops(sock: socket.socket) -> int:
    words = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    return int(_MEMINFO.unpack(words)[-1])
