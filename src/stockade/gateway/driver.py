"""The hands of a connection: performs what its `Flow` asks for, and tells it what happened.

All thinking is in `protocol.flow`; here are descriptors, buffers and timers only. What
must stay true: a `Dial` is performed only when the flow asks for it, and the flow asks
only after `Recorded`; one side's flood never grows a buffer, because the other side is
not read while its bytes cannot be passed on; whatever happens, `_finish` runs once and
closes everything.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from stockade.decision.request import Attempt, Decision
from stockade.gateway.closing import close_with_reset, is_dead, notice_when_gone
from stockade.gateway.dial import Dial as Dialing
from stockade.gateway.naming import EndsOf, ends_of_connection
from stockade.gateway.relay import READ_BYTES, LimitReached, Way
from stockade.gateway.side import Side
from stockade.net.address import IPAddress
from stockade.net.ends import Ends
from stockade.net.host import Host
from stockade.protocol import effects as fx
from stockade.protocol import events as ev
from stockade.reactor import GONE, READ, WRITE, Reactor, Timer
from stockade.vocabulary import Verdict

if TYPE_CHECKING:
    from stockade.protocol.flow import Flow

# After a refusal the client may still be sending; what it sends is read and dropped for this long,
# so that our FIN, not a reset, ends the connection and the refusal is not lost on the way (RFC 9112 §9.6).
LINGER_S = 1.0
LINGER_BYTES = 262144
# A client that sends requests ahead and does not read the refusals: from here on nothing more is read of
# it, and with so many it is reset. What the destination answers is bounded already: it is not read meanwhile.
ANSWERS_WAITING = 128
ANSWERS_HELD = 512


class Surroundings(Protocol):
    """What a connection needs of its room; `gateway.server.Room` is one."""

    reactor: Reactor

    def record(
        self, attempt: Attempt, decision: Decision, recorded: Callable[[int], None], ends: EndsOf
    ) -> int: ...
    def record_outcome(self, outcome: fx.RecordOutcome) -> None: ...
    def resolve(self, host: Host, done: Callable[[tuple[IPAddress, ...], str | None], None]) -> None: ...
    def hold(self, effect: fx.Hold, answered: Callable[[bool, str], None]) -> None: ...
    def note_redirect(self, host: Host, port: int) -> None: ...
    def spend_upload(self, count: int) -> bool: ...
    def connection_ended(self, connection: Connection) -> None: ...
    def fault(self, error: Exception) -> None: ...


class Connection:
    """One accepted connection and, when permitted, its counterpart outside."""

    __slots__ = (
        "_client",
        "_deadline",
        "_dialing",
        "_effects",
        "_flow",
        "_is_busy",
        "_is_closing",
        "_is_finished",
        "_is_tunnel",
        "_linger_left",
        "_reactor",
        "_room",
        "_undelivered",
        "_upstream",
        "_way_down",
        "_way_up",
    )

    def __init__(self, room: Surroundings, sock: socket.socket, flow: Flow) -> None:
        self._room = room
        self._reactor = room.reactor
        self._flow = flow
        self._client = Side(sock)
        self._upstream: Side | None = None
        self._way_up: Way | None = None
        self._way_down: Way | None = None
        self._dialing: Dialing | None = None
        self._deadline: Timer | None = None
        self._effects: deque[fx.Effect] = deque()
        self._is_busy = False
        self._is_closing = False
        self._is_finished = False
        self._is_tunnel = False
        self._linger_left = -1
        # The number of a permitted attempt's record that the flow has not been told of yet.
        self._undelivered: int | None = None

    # --- from outside --------------------------------------------------------------------

    @property
    def is_sending(self) -> bool:
        """Something of the worker's may still be on its way out."""
        if self._is_tunnel and self._client.ended:
            return self._way_up is not None or (self._upstream is not None and bool(self._upstream.pending))
        return not self._is_closing

    @property
    def is_half_closed(self) -> bool:
        """The worker has ended its side and the destination has not: it may stay so for ever."""
        return self._client.ended and self._is_tunnel

    def start(self, effects: list[fx.Effect]) -> None:
        """Perform the flow's first effects and begin to read."""
        self._perform(effects)

    def policy_replaced(self) -> None:
        self._feed(ev.PolicyReplaced())

    def cut(self) -> None:
        """Drop everything now, and write down how far it came.

        What was passed on to the destination still arrives: a reset would take it back.
        """
        if self._is_finished:
            return
        if self._is_tunnel and not self.is_sending:
            self._last_words(*self._stop_ways(), ev.ClientEnded(reset=True), reset=False)
        else:
            self._broken()

    # --- events in, effects out ------------------------------------------------------------

    def _feed(self, event: ev.Event) -> None:
        if not self._is_finished:
            self._perform(self._flow.feed(event, self._reactor.now()))

    def _perform(self, effects: list[fx.Effect]) -> None:
        """Perform in order. Effects of events that happen meanwhile come after these."""
        self._effects.extend(effects)
        if not self._is_busy:
            self._take_turn(None, 0)

    def _take_turn(self, side: Side | None, events: int) -> None:
        """React to readiness, perform what the flow asks for, watch for what can be used next.

        Whatever goes wrong with one connection ends this connection, and only this one.
        """
        if self._is_finished:
            return
        self._is_busy = True
        try:
            if side is not None and self._react(side, events):
                return  # bytes went over and more may follow: nothing else has changed
            while self._effects and not self._is_finished:
                effect = self._effects.popleft()
                _PERFORM[type(effect)](self, effect)
            if not self._is_finished:
                self._watch()
        except LimitReached as stop:
            self._last_words(ev.UploadUsedUp(stop.unsent_bytes))
        except OSError:
            self._broken()
        except Exception as error:  # noqa: BLE001  # one of two places, with main: a fault in one flow
            self._room.fault(error)
            self._finish(reset=True)
        finally:
            self._is_busy = False
        if self._effects:  # the destination was lost, and the flow goes on without it
            self._take_turn(None, 0)

    def _record(self, effect: fx.Record) -> None:
        seq = self._room.record(effect.attempt, effect.decision, self._recorded, self._ends)
        if effect.decision.verdict is not Verdict.DENY:
            self._undelivered = seq

    def _ends(self) -> Ends | None:
        return ends_of_connection(self._client.sock)

    def _recorded(self, seq: int) -> None:
        self._undelivered = None
        self._feed(ev.Recorded(seq))

    def _outcome(self, effect: fx.RecordOutcome) -> None:
        """Write it down, with what the ways that are still at work have carried so far."""
        for way in (self._way_up, self._way_down):
            if way is not None and way is self._way_up:
                effect = replace(effect, sent_bytes=effect.sent_bytes + way.count)
            elif way is not None:
                effect = replace(effect, received_bytes=effect.received_bytes + way.count)
        self._room.record_outcome(effect)

    def _resolve(self, effect: fx.Resolve) -> None:
        self._room.resolve(effect.host, lambda addresses, error: self._feed(ev.Resolved(addresses, error)))

    def _dial(self, effect: fx.Dial) -> None:
        self._dialing = Dialing(self._reactor, effect.permit, self._dialed)

    def _dialed(self, sock: socket.socket | None, address: IPAddress | None, error: str) -> None:
        self._dialing = None
        if sock is None or address is None:
            self._feed(ev.DialFailed(error))
            return
        self._upstream = Side(sock)
        self._feed(ev.Dialed(address))

    def _to_client(self, effect: fx.ToClient) -> None:
        if len(self._client.pending) >= ANSWERS_HELD:
            raise ConnectionResetError
        self._client.write(effect.data)

    def _to_upstream(self, effect: fx.ToUpstream) -> None:
        if not self._room.spend_upload(len(effect.data)):
            raise LimitReached(len(effect.data))
        if self._upstream is not None:
            self._upstream.write(effect.data)

    def _pump(self, effect: fx.Pump) -> None:
        self._open_way(effect.upstream, effect.limit_bytes)

    def _tunnel(self, _effect: fx.Tunnel) -> None:
        self._is_tunnel = True
        self._open_way(True, None)
        self._open_way(False, None)

    def _open_way(self, upstream: bool, limit: int | None) -> None:
        far = self._upstream
        if far is None:
            raise ConnectionResetError
        client = self._client
        if upstream:
            way = self._way_up = Way(client.sock, far.sock, limit, self._room.spend_upload)
        else:
            way = self._way_down = Way(far.sock, client.sock, limit)
        way.source_ended = (client if upstream else far).ended
        self._settle(way)

    def _end_upstream(self, _effect: fx.EndUpstream) -> None:
        if self._upstream is not None:
            self._upstream.fin_wanted = True
            self._upstream.flush()

    def _close_upstream(self, _effect: fx.CloseUpstream) -> None:
        if self._dialing is not None:
            self._dialing.cancel()
            self._dialing = None
        if self._upstream is not None:
            self._release_ways()
            self._drop(self._upstream)
            self._upstream = None

    def _close(self, effect: fx.Close) -> None:
        if effect.reset:
            self._finish(reset=True)
            return
        self._is_closing = True
        self._close_upstream(fx.CloseUpstream())
        if self._client.ended and not self._client.pending:
            self._finish(reset=False)  # both sides have ended: closing says the rest
            return
        self._client.fin_wanted = True
        self._client.flush()
        self._linger_left = LINGER_BYTES
        self._set_deadline(self._reactor.now() + LINGER_S)
        if self._client.ended and not self._client.pending:
            self._finish(reset=False)

    def _deadline_effect(self, effect: fx.Deadline) -> None:
        self._set_deadline(effect.at)

    def _redirected(self, effect: fx.Redirected) -> None:
        self._room.note_redirect(effect.host, effect.port)

    def _hold(self, effect: fx.Hold) -> None:
        self._room.hold(effect, lambda allowed, by: self._feed(ev.HoldAnswered(allowed, by)))

    # --- time ----------------------------------------------------------------------------

    def _set_deadline(self, at: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if at is None else self._reactor.call_at(at, self._deadline_passed)

    def _deadline_passed(self) -> None:
        self._deadline = None
        if self._is_closing:
            self._finish(reset=bool(self._client.pending))
        else:
            self._feed(ev.TimedOut())

    # --- descriptors -----------------------------------------------------------------------

    def _watch(self) -> None:
        """Ask epoll for exactly what can be used now."""
        self._set_interest(self._client, self._client_interest(), self._client_ready)
        if self._upstream is not None:
            self._set_interest(self._upstream, self._upstream_interest(), self._upstream_ready)

    def _client_interest(self) -> int:
        client, up, down = self._client, self._way_up, self._way_down
        interest = WRITE if client.pending or (down is not None and down.wants_write) else 0
        if self._is_closing:
            return interest | (0 if client.ended else READ)
        if up is not None:
            reads = up.wants_read and not (self._upstream is not None and self._upstream.pending)
        else:
            reads = self._flow.reads_client and not client.ended and self._may_grow(self._upstream)
            reads = reads and len(client.pending) < ANSWERS_WAITING
        return interest | READ if reads else interest

    def _upstream_interest(self) -> int:
        far, up, down = self._upstream, self._way_up, self._way_down
        assert far is not None
        interest = WRITE if far.pending or (up is not None and up.wants_write) else 0
        if down is not None:
            reads = down.wants_read and not self._client.pending
        else:
            reads = self._flow.reads_upstream and not far.ended and self._may_grow(self._client)
        return interest | READ if reads else interest

    @staticmethod
    def _may_grow(other: Side | None) -> bool:
        return other is None or not other.pending

    def _set_interest(self, side: Side, interest: int, callback: Callable[[int], None]) -> None:
        if side.interest == interest:
            return
        if not side.watched:
            if interest == 0:
                return  # a hung-up socket would wake us for ever; look again when we want something of it
            self._reactor.watch(side.sock.fileno(), interest, callback)
            side.watched = True
        else:
            self._reactor.rewatch(side.sock.fileno(), interest)
        side.interest = interest

    def _client_ready(self, events: int) -> None:
        self._take_turn(self._client, events)

    def _upstream_ready(self, events: int) -> None:
        self._take_turn(self._upstream, events)

    def _react(self, side: Side, events: int) -> bool:
        """Use what is ready; True if that changed nothing but the bytes on their way."""
        is_client = side is self._client
        way = self._way_up if is_client else self._way_down
        if events == READ and way is not None:
            way.move()
            if way.wants_read:
                return True
            self._settle(way)
            return False
        if events & WRITE:
            self._writable(side)
        if side.interest & READ:
            if events & (READ | GONE):
                self._readable(side)
        elif events & GONE:
            self._hung_up(side)
        return False

    def _hung_up(self, side: Side) -> None:
        """Gone while we were not reading: stop watching, what it sent last is read when there is room."""
        self._reactor.unwatch(side.sock.fileno())
        side.watched = False
        side.interest = -1
        if side.pending or side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise ConnectionResetError  # nobody takes it any more, or nobody is there

    def _writable(self, side: Side) -> None:
        side.flush()
        if side.pending:
            return
        way = self._way_down if side is self._client else self._way_up
        if way is not None:
            way.move()
            self._settle(way)
        elif self._is_closing and self._client.ended:
            self._finish(reset=False)

    def _readable(self, side: Side) -> None:
        is_client = side is self._client
        way = self._way_up if is_client else self._way_down
        if is_client and self._is_closing:
            self._drain_client()
        elif way is not None:
            way.move()
            self._settle(way)
        else:
            self._read(side, is_client)

    def _read(self, side: Side, is_client: bool) -> None:
        """Give the flow what has come; nothing is read that it does not want (see `_watch`)."""
        event: ev.Event
        try:
            data = side.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        if data:
            event = ev.ClientData(data) if is_client else ev.UpstreamData(data)
        else:
            side.ended = True
            event = ev.ClientEnded() if is_client else ev.UpstreamEnded()
        self._effects.extend(self._flow.feed(event, self._reactor.now()))

    def _drain_client(self) -> None:
        """Read and drop what a refused client still sends, within bounds."""
        try:
            data = self._client.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        self._linger_left -= len(data)
        self._client.ended = not data
        if not data or self._linger_left < 0:
            self._finish(reset=False)

    # --- pumping ----------------------------------------------------------------------------

    def _settle(self, way: Way) -> None:
        """Tell the flow when a way has carried all; in a tunnel pass the half-close on."""
        if not way.is_done:
            return
        upstream = way is self._way_up
        source, target = (self._client, self._upstream) if upstream else (self._upstream, self._client)
        assert source is not None
        assert target is not None
        if upstream:
            self._way_up = None
        else:
            self._way_down = None
        way.release()
        source.ended = source.ended or way.source_ended
        is_last = self._way_up is None and self._way_down is None  # then closing tells the target as well
        if self._is_tunnel and way.source_ended and not is_last:
            target.fin_wanted = True
            target.flush()
            if upstream:
                notice_when_gone(source.sock)
        event = ev.Pumped(upstream, way.count, way.source_ended)
        self._effects.extend(self._flow.feed(event, self._reactor.now()))

    def _release_ways(self) -> None:
        for way in (self._way_up, self._way_down):
            if way is not None:
                way.release()
        self._way_up = self._way_down = None

    # --- ends ------------------------------------------------------------------------------

    def _broken(self) -> None:
        """One of the sockets failed; to lose the destination need not be the end, so the flow is asked."""
        events = self._stop_ways()
        far = self._upstream
        is_redialing = any(isinstance(effect, fx.Dial) for effect in self._effects)
        if far is None or is_redialing or is_dead(self._client.sock) or not is_dead(far.sock):
            self._last_words(*events, ev.ClientEnded(reset=True))
            return
        self._drop(far, reset=True)
        self._upstream = None
        events += self._forget_upstream_effects()
        for event in [*events, ev.UpstreamEnded(reset=True)]:
            self._effects.extend(self._flow.feed(event, self._reactor.now()))

    def _stop_ways(self) -> list[ev.Event]:
        """Take the ways down; what each has carried, for the flow."""
        events: list[ev.Event] = []
        for upstream, way in ((True, self._way_up), (False, self._way_down)):
            if way is not None:
                events.append(ev.Pumped(upstream, way.count, way.source_ended))
        self._release_ways()
        return events

    def _forget_upstream_effects(self) -> list[ev.Event]:
        """Take out what was still to be done with a destination that is gone; its ways end unbegun."""
        events: list[ev.Event] = []
        kept: list[fx.Effect] = []
        for effect in self._effects:
            if isinstance(effect, fx.Pump):
                events.append(ev.Pumped(effect.upstream, 0))
            elif isinstance(effect, fx.Tunnel):
                events += [ev.Pumped(True, 0), ev.Pumped(False, 0)]
            elif not isinstance(effect, fx.ToUpstream | fx.EndUpstream | fx.CloseUpstream):
                kept.append(effect)
        self._effects = deque(kept)
        return events

    def _last_words(self, *events: ev.Event, reset: bool = True) -> None:
        """Write down what the flow says to the end of it, perform nothing else, and close."""
        left = list(self._effects)  # what the flow had said already when a send failed is on record too
        self._effects.clear()
        for event in events:
            left += self._flow.feed(event, self._reactor.now())
        for effect in left:
            if isinstance(effect, fx.RecordOutcome):
                self._outcome(effect)
            elif isinstance(effect, fx.Record):
                seq = self._room.record(effect.attempt, effect.decision, _nobody_waits, self._ends)
                if effect.decision.verdict is not Verdict.DENY:
                    self._undelivered = seq
        self._finish(reset=reset)

    def _drop(self, side: Side, *, reset: bool = False) -> None:
        if side.watched:
            self._reactor.forget(side.sock.fileno())
            side.watched = False
        if reset:
            close_with_reset(side.sock)
        else:
            side.sock.close()

    def _finish(self, *, reset: bool) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        if self._undelivered is not None:
            self._room.record_outcome(fx.RecordOutcome(of=self._undelivered, outcome="reset"))
        self._set_deadline(None)
        self._release_ways()
        if self._dialing is not None:
            self._dialing.cancel()
        for side in (self._client, self._upstream):
            if side is None:
                continue
            self._drop(side, reset=reset)
        self._room.connection_ended(self)


def _nobody_waits(_seq: int) -> None:
    pass


_PERFORM: dict[type, Callable[[Connection, Any], None]] = {
    fx.Record: Connection._record,
    fx.RecordOutcome: Connection._outcome,
    fx.Resolve: Connection._resolve,
    fx.Dial: Connection._dial,
    fx.ToClient: Connection._to_client,
    fx.ToUpstream: Connection._to_upstream,
    fx.Pump: Connection._pump,
    fx.Tunnel: Connection._tunnel,
    fx.EndUpstream: Connection._end_upstream,
    fx.CloseUpstream: Connection._close_upstream,
    fx.Close: Connection._close,
    fx.Deadline: Connection._deadline_effect,
    fx.Redirected: Connection._redirected,
    fx.Hold: Connection._hold,
}
