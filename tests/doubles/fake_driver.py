"""A driver without sockets: performs a flow's effects on byte strings, and shows what happened.

It keeps the contract of `protocol.flow` as the real one does (reads a side only while the
flow asks for it, pumps a direction alone), checks the flow's half of it (nothing is
dialled before `Recorded`, nothing sent before `Dialed`), and answers records, look-ups
and dials at once unless a test holds them back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from ipaddress import ip_address

from stockade.decision.engine import Engine
from stockade.decision.request import Attempt, Decision
from stockade.net.address import IPAddress
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, parse_host
from stockade.policy.load import load_policy_text
from stockade.protocol import effects as fx
from stockade.protocol import events as ev
from stockade.protocol.flow import Flow, FlowLimits
from stockade.vocabulary import Entry, Protocol, Reason, Verdict

PUBLIC = ip_address("93.184.216.34")
OTHER_PUBLIC = ip_address("93.184.216.35")


class Room:
    """What a flow asks of a room: the engine in force, replaceable, and a person's approvals."""

    def __init__(self, policy: str) -> None:
        self.approved: dict[tuple[str, int], str] = {}
        self.put_in_force(policy)

    def put_in_force(self, policy: str) -> None:
        self.engine = Engine(load_policy_text("version: 1\n" + policy, "policy.yaml"))

    def decide(self, attempt: Attempt, addresses: tuple[IPAddress, ...] | None = None) -> Decision:
        key = (attempt.host.name, attempt.port) if isinstance(attempt.host, Host) else ("", 0)
        return self.engine.decide(attempt, addresses, approved_by=self.approved.get(key))

    def refuse(self, attempt: Attempt, reason: Reason, why: str | None = None) -> Decision:
        return self.engine.refuse(attempt, reason, why)

    def protocol_for(self, host: Host, port: int) -> Protocol | None:
        return self.engine.protocol_for(host, port)


class FakeDriver:
    """One connection.

    Args:
        slice_bytes: How much one read gives.
        answers: What names resolve to; others have no addresses.
        dial_error: Every dial fails with this word.
        holds_back: Events of these types are not given before `release`.

    Attributes:
        effects: Everything the flow asked for, in order.
        records: Recorded decisions with their attempts; sequence numbers count from 1.
        outcomes: All `RecordOutcome` effects.
        to_client: What the client got.
        to_upstreams: What each dialled destination got, in order of the dials.
        is_reset: The connection ended with a reset; `is_closed` with or without.
    """

    def __init__(
        self,
        judge: Room,
        entry: Entry = Entry.TRANSPARENT,
        place: tuple[str, int] | None = None,
        *,
        limits: FlowLimits | None = None,
        slice_bytes: int = 65536,
        answers: dict[str, tuple[IPAddress, ...]] | None = None,
        dial_error: str | None = None,
        holds_back: tuple[type, ...] = (),
        name_at: Callable[[str], Host | None] | None = None,
    ) -> None:
        destination = None
        if place is not None:
            host = parse_host(place[0], is_bracketed=False)
            assert isinstance(host, Host)
            destination = Endpoint(host, place[1])
        self.flow = Flow(entry, destination, judge, limits or FlowLimits(), lambda seq: f"id-{seq}", name_at)
        self.now = 100.0
        self.slice_bytes = slice_bytes
        self.answers = {"app.test": (PUBLIC,), "other.test": (OTHER_PUBLIC,)} if answers is None else answers
        self.dial_error = dial_error
        self.holds_back = holds_back
        self.held: deque[ev.Event] = deque()
        self.effects: list[fx.Effect] = []
        self.records: list[tuple[Attempt, Decision]] = []
        self.outcomes: list[fx.RecordOutcome] = []
        self.to_client = bytearray()
        self.to_upstreams: list[bytearray] = []
        self.deadline: float | None = None
        self.is_closed = self.is_reset = False
        self.upstream_got_end = self.client_got_end = False
        self._recorded = 0
        self._is_connected = False
        self._client_in = bytearray()
        self._upstream_in = bytearray()
        self._client_fin = self._upstream_fin = False
        self._fin_fed = {True: False, False: False}
        self._pumps: dict[bool, list[int | None]] = {}  # direction: [bytes left, bytes gone]
        self._is_tunnel = False
        self._inbox: deque[ev.Event] = deque()
        self._perform(self.flow.start(self.now))
        self._run()

    # --- the world -------------------------------------------------------------------

    def client(self, data: bytes, *, fin: bool = False) -> FakeDriver:
        """The client sends this."""
        self._client_in += data
        self._client_fin = self._client_fin or fin
        self._run()
        return self

    def upstream(self, data: bytes, *, fin: bool = False) -> FakeDriver:
        """The destination sends this."""
        self._upstream_in += data
        self._upstream_fin = self._upstream_fin or fin
        self._run()
        return self

    def happens(self, event: ev.Event) -> FakeDriver:
        """Anything else."""
        self._feed(event)
        self._run()
        return self

    def time_passes(self, seconds: float) -> FakeDriver:
        self.now += seconds
        if self.deadline is not None and self.now >= self.deadline:
            self.deadline = None
            self._feed(ev.TimedOut())
        self._run()
        return self

    def release(self) -> FakeDriver:
        """Let the events come that were held back."""
        self.holds_back = ()
        while self.held:
            self._feed(self.held.popleft())
        self._run()
        return self

    # --- what a test looks at ----------------------------------------------------------

    @property
    def to_upstream(self) -> bytes:
        """What the only destination got; empty if none was dialled."""
        assert len(self.to_upstreams) <= 1
        return bytes(self.to_upstreams[0]) if self.to_upstreams else b""

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """Verdict and reason of each record."""
        return [(decision.verdict.word, decision.reason.value) for _, decision in self.records]

    def asked_for(self, kind: type) -> list[fx.Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def unread_client(self) -> int:
        """Bytes that the client has sent and the gateway has not read."""
        return len(self._client_in)

    def trace(self) -> list[object]:
        """What happened, independent of slicing: neighbouring sends merged, pumps as their bytes."""
        return list(self._merge())

    # --- performing --------------------------------------------------------------------

    def _feed(self, event: ev.Event) -> None:
        if isinstance(event, self.holds_back):
            self.held.append(event)
        else:
            self._perform(self.flow.feed(event, self.now))

    def _perform(self, effects: list[fx.Effect]) -> None:
        for effect in effects:
            assert not self.is_closed, f"{effect} after Close"
            self.effects.append(effect)
            self._perform_one(effect)

    def _perform_one(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Record():
                self.records.append((effect.attempt, effect.decision))
                self._inbox.append(ev.Recorded(len(self.records)))
                self._recorded = len(self.records)
            case fx.RecordOutcome():
                self.outcomes.append(effect)
            case fx.Resolve():
                addresses = self.answers.get(effect.host.name, ())
                self._inbox.append(ev.Resolved(addresses, None if addresses else "nxdomain"))
            case fx.Dial():
                self._dial(effect)
            case fx.ToClient():
                self.to_client += effect.data
            case fx.ToUpstream():
                assert self._is_connected, "bytes for a destination that is not dialled"
                self.to_upstreams[-1] += effect.data
            case fx.Pump():
                assert self._is_connected
                self._pumps[effect.upstream] = [effect.limit_bytes, 0]
            case fx.Tunnel():
                assert self._is_connected
                self._is_tunnel = True
                self._pumps = {True: [None, 0], False: [None, 0]}
            case fx.CloseUpstream():
                self._drop_upstream()
            case fx.EndUpstream():
                self.upstream_got_end = True
            case fx.Close():
                self.is_closed = True
                self.is_reset = effect.reset
                self._pumps = {}
            case fx.Deadline():
                self.deadline = effect.at
            case _:
                pass

    def _dial(self, effect: fx.Dial) -> None:
        assert not self._is_connected, "two destinations at once"
        assert self._recorded, "dialled before anything was recorded"
        assert any(d.permit == effect.permit and d.verdict is not Verdict.DENY for _, d in self.records)
        if self.dial_error is not None:
            self._inbox.append(ev.DialFailed(self.dial_error))
            return
        self._is_connected = True
        self.to_upstreams.append(bytearray())
        self._inbox.append(ev.Dialed(effect.permit.addresses[0]))

    def _drop_upstream(self) -> None:
        self._is_connected = False
        self._upstream_in.clear()
        self._upstream_fin = self._fin_fed[False] = False
        self._pumps = {}

    # --- moving bytes ------------------------------------------------------------------

    def _run(self) -> None:
        while not self.is_closed and self._step():
            pass

    def _step(self) -> bool:
        """One thing that a real driver would do now; False if there is none."""
        if self._inbox:
            self._feed(self._inbox.popleft())
            return True
        return self._move(True) or self._move(False)

    def _move(self, upstream: bool) -> bool:
        buffer = self._client_in if upstream else self._upstream_in
        if upstream in self._pumps:
            return self._pump(upstream, buffer)
        wants = self.flow.reads_client if upstream else self.flow.reads_upstream
        if not wants:
            return False
        if buffer:
            data = bytes(buffer[: self.slice_bytes])
            del buffer[: self.slice_bytes]
            self._feed(ev.ClientData(data) if upstream else ev.UpstreamData(data))
            return True
        has_ended = self._client_fin if upstream else self._upstream_fin
        if has_ended and not self._fin_fed[upstream]:
            self._fin_fed[upstream] = True
            self._feed(ev.ClientEnded() if upstream else ev.UpstreamEnded())
            return True
        return False

    def _pump(self, upstream: bool, buffer: bytearray) -> bool:
        left, gone = self._pumps[upstream]
        assert gone is not None
        count = min(len(buffer), self.slice_bytes if left is None else min(left, self.slice_bytes))
        if count:
            target = self.to_upstreams[-1] if upstream else self.to_client
            data = bytes(buffer[:count])
            target += data
            self.effects.append(fx.ToUpstream(data) if upstream else fx.ToClient(data))
            del buffer[:count]
            left = None if left is None else left - count
            self._pumps[upstream] = [left, gone + count]
            if left != 0:
                return True
        has_ended = not buffer and (self._client_fin if upstream else self._upstream_fin)
        if left != 0 and not has_ended:
            return False
        del self._pumps[upstream]
        ended = left != 0
        self._fin_fed[upstream] = self._fin_fed[upstream] or ended
        if ended and self._is_tunnel:
            if upstream:
                self.upstream_got_end = True
            else:
                self.client_got_end = True
        self._feed(ev.Pumped(upstream, gone + count, ended))
        return True

    def _merge(self) -> Iterator[object]:
        pending: dict[type, bytearray] = {fx.ToClient: bytearray(), fx.ToUpstream: bytearray()}
        for effect in self.effects:
            if isinstance(effect, (fx.Deadline, fx.Pump, fx.Tunnel)):
                continue  # when these begin hangs on the slicing; what they carry does not
            if isinstance(effect, (fx.ToClient, fx.ToUpstream)):
                pending[type(effect)] += effect.data
                continue
            yield from self._flush(pending)
            yield effect
        yield from self._flush(pending)
        yield "tunnel" if self._is_tunnel else "no tunnel"

    @staticmethod
    def _flush(pending: dict[type, bytearray]) -> Iterator[object]:
        for kind, data in pending.items():
            if data:
                yield kind(bytes(data))
                data.clear()
