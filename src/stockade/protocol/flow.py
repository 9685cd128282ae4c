"""One connection's life: events in, effects out. Pure: no sockets, no clock, no log.

A `Flow` is told what happened (`events`) and answers with what is to be done
(`effects`). Inside, a script (a generator, see `line`) reads like the conversation that
it leads: read the hello, judge, record, dial, tunnel. What a reader must know:

* Nothing is dialled before `Recorded`, nothing is sent upstream before `Dialed`, and
  nothing is resolved before the name was judged (`case`).
* Slicing does not matter: one byte at a time gives the same effects as all at once.
* Whatever the bytes are, `feed` does not raise: a `ProtocolViolation` of a parser
  becomes a denial with a record.

The driver's side of the contract:

* It reads a side and feeds `ClientData` or `UpstreamData` only while `reads_client` or
  `reads_upstream` is true (asked anew after every `feed`), and only while what was sent
  to the other side before has drained: that is the back-pressure.
* `ClientEnded(reset=True)` may come at any time; after `Close` nothing needs to come.
* While a `Pump` runs, the driver carries that direction alone and the flow reads
  nothing of that side; both directions may be pumped at once. `Pumped` ends it: with
  ``ended`` if the source's FIN was seen, else with the full count, or with less if
  either side broke. `Tunnel` is one `Pump` without limit for each way, half-closes included.
* A side that broke is `ClientEnded` or `UpstreamEnded` with ``reset``, after the `Pumped`
  of what ran on it. A broken destination is not the end: the client may get a 502.
* `CloseUpstream` and `Close` also end pumps and dials, without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from stockade.decision.request import Attempt
from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host
from stockade.protocol.case import Docket, Judge
from stockade.protocol.content import Holding
from stockade.protocol.effects import Effect
from stockade.protocol.events import (
    ClientData,
    ClientEnded,
    Dialed,
    DialFailed,
    Event,
    HoldAnswered,
    PolicyReplaced,
    Pumped,
    Recorded,
    Resolved,
    TimedOut,
    UploadUsedUp,
    UpstreamData,
    UpstreamEnded,
)
from stockade.protocol.flow_http import run_http, run_proxy
from stockade.protocol.flow_socks import run_socks
from stockade.protocol.line import FlowLimits, Line, Script, Steps
from stockade.protocol.tunnels import run_raw, run_tls
from stockade.vocabulary import Entry, Protocol, Reason

__all__ = ["Flow", "FlowLimits"]

_DEFAULT_LIMITS = FlowLimits()
# Events that only the script waits for.
_ANSWERS = frozenset((Recorded, Resolved, Dialed, DialFailed, TimedOut, HoldAnswered))


class Flow:
    """One connection from its first byte to its last record.

    Args:
        entry: The door by which it came: transparent, http-proxy or socks5.
        destination: The name behind the dialled address, or the address itself, and the
            port; None at the proxy entries, where the client says it.
        judge: Decides; see `case.Judge`.
        decision_id: What the worker is told of a record's number.
        name_at: The name behind an address of the room, for clients that look a name up
            themselves and then hand the number to a proxy.
        secrets: Values of the variables that `credential:` keys name.
        holding: What the room's connections may hold back of bodies, together.
    """

    __slots__ = ("_destination", "_docket", "_line", "_script")

    def __init__(
        self,
        entry: Entry,
        destination: Endpoint | None,
        judge: Judge,
        limits: FlowLimits = _DEFAULT_LIMITS,
        decision_id: Callable[[int], str] = str,
        name_at: Callable[[str], Host | None] | None = None,
        secrets: Mapping[str, str] = MappingProxyType({}),
        holding: Holding | None = None,
    ) -> None:
        self._line = Line(limits)
        self._docket = Docket(self._line, judge, entry, decision_id, name_at, secrets, holding or Holding())
        self._destination = destination
        self._script: Script | None = None

    @property
    def reads_client(self) -> bool:
        """The driver should read the worker's side and feed what comes."""
        return self._line.reads_client

    @property
    def reads_upstream(self) -> bool:
        """The driver should read the destination's side and feed what comes."""
        return self._line.reads_upstream

    @property
    def is_closed(self) -> bool:
        """`Close` was given; events change nothing any more."""
        return self._line.is_closed

    def start(self, now: float) -> list[Effect]:
        """The connection was accepted. Called once, before any `feed`."""
        self._line.now = now
        self._script = self._begin()
        self._advance(None)
        return self._take_effects()

    def feed(self, event: Event, now: float) -> list[Effect]:
        """Say what happened, and get what is to be done, in order."""
        line = self._line
        if line.is_closed:
            return []
        line.now = now
        self._take_in(event)
        if not line.is_closed:
            self._advance(event)
        return self._take_effects()

    # --- events ----------------------------------------------------------------------

    def _take_in(self, event: Event) -> None:
        """Put into the buffers what arrived, and deal with what may happen at any time."""
        line, kind = self._line, type(event)
        if kind in _ANSWERS:
            return
        if isinstance(event, ClientData):
            line.client += event.data
        elif isinstance(event, UpstreamData):
            line.upstream += event.data
        elif isinstance(event, Pumped):
            self._take_in_pumped(event)
        elif isinstance(event, ClientEnded):
            line.client_ended = True
            if event.reset:
                self._docket.client_gone()
        elif isinstance(event, UpstreamEnded):
            line.upstream_ended = True
        elif kind is PolicyReplaced:
            self._docket.policy_moved()
        elif isinstance(event, UploadUsedUp):
            self._cut_upload(event.unsent_bytes)

    def _take_in_pumped(self, event: Pumped) -> None:
        line = self._line
        if event.upstream:
            line.is_pumping_up = False
            line.client_ended = line.client_ended or event.ended
        else:
            line.is_pumping_down = False
            line.upstream_ended = line.upstream_ended or event.ended

    def _cut_upload(self, unsent_bytes: int) -> None:
        running = self._docket.running
        if running is None:
            self._line.close(reset=True)
        else:
            running.sent_bytes = max(0, running.sent_bytes - unsent_bytes)
            self._docket.cut(self._docket.refuse(running.attempt, Reason.UPLOAD_LIMIT))

    # --- the script ------------------------------------------------------------------

    def _advance(self, event: Event | None) -> None:
        """Let the script go on; when it ends, the one that it names takes over.

        The first `send` to a fresh generator must be None, so a script that takes over
        starts by looking at the buffers, not at the event.
        """
        try:
            while self._script is not None:
                try:
                    self._script.send(event)  # type: ignore[arg-type]
                    break
                except StopIteration as end:
                    self._script = end.value
                    event = None
        except ProtocolViolation:
            self._script = None  # a script that forgot one: the connection ends, nothing more leaves
        if self._script is None:
            self._line.close(reset=bool(self._docket.running))
        if self._line.is_closed:
            self._script = None

    def _take_effects(self) -> list[Effect]:
        effects = self._line.effects
        self._line.effects = []
        return effects

    def _begin(self) -> Script:
        if self._destination is not None:
            return _run_transparent(self._docket, self._destination)
        if self._docket.entry is Entry.SOCKS5:
            return run_socks(self._docket)
        return run_proxy(self._docket)


def _run_transparent(docket: Docket, place: Endpoint) -> Script:
    """Find out what is spoken, and go on with that."""
    host = place.host
    protocol = docket.judge.protocol_for(host, place.port) if isinstance(host, Host) else None
    if protocol is None:
        docket.pending = Attempt(entry=docket.entry, protocol=Protocol.TCP, host=host, port=place.port)
        protocol = yield from _peek(docket.line)
    if protocol is Protocol.TLS:
        return run_tls(docket, place)
    if protocol is Protocol.HTTP:
        return run_http(docket, place)
    return run_raw(docket, place, protocol)


def _peek(line: Line) -> Steps[Protocol]:
    """What the client says on a port that no rule names, so that the attempt gets its true name.

    Nobody who waits for the server to speak first waits longer than `FlowLimits.peek_s`.
    """
    line.wants_client = True
    line.set_deadline(min(line.limits.peek_s, line.limits.first_bytes_s))
    guess = guess_protocol(line.client)
    while guess is None and not line.client_ended:
        event = yield
        guess = guess_protocol(line.client)
        if line.is_late(event):
            break
    line.wants_client = False
    line.clear_deadline()
    return guess or Protocol.TCP


def guess_protocol(start: bytes | bytearray) -> Protocol | None:
    """What a connection that begins like this speaks; None while that is open."""
    if not start:
        return None
    if start[0] == 22:
        return Protocol.TLS
    if start[:4] == b"SSH-"[: len(start)]:
        return Protocol.SSH if len(start) >= 4 else None
    word, _, target = bytes(start[:18]).partition(b" ")
    if not (word.isalpha() and word.isupper()) or len(word) > 16:
        return Protocol.TCP
    if not target:
        return None
    return Protocol.HTTP if target[0] in b"/*hH" or word == b"CONNECT" else Protocol.TCP
