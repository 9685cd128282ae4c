"""The room's only resolver: every question is answered here, and none is passed on.

A well-formed name gets its synthetic address whatever the verdict: the connection that
follows then carries the name and is judged with it, and a refusal can be a readable 403.
`AAAA`, `HTTPS` and `SVCB` get an empty answer (no ECH keys, no HTTP/3 hints), other
types are refused. Each question is on record before it is answered.

Questions may be sent to any server: in the room every address is local, so the answer
goes out from the address that was asked.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from stockade.decision.request import Attempt
from stockade.errors import ProtocolViolation
from stockade.gateway.naming import IP_PKTINFO, IPV6_PKTINFO, EndsOf, ends_of_connection, ends_of_question
from stockade.net.ends import Ends
from stockade.net.host import Host, HostRefusal, escape_text
from stockade.protocol import dns
from stockade.protocol.effects import RecordOutcome
from stockade.reactor import READ
from stockade.vocabulary import Entry, Protocol, Reason, Verdict

if TYPE_CHECKING:
    from stockade.gateway.server import Room

# So many questions are taken from one socket before the other descriptors get their turn.
RECEIVE_BATCH = 64
# RFC 6762-sized names fit easily; a DNS message over UDP is at most this long (RFC 1035 plus EDNS).
RECEIVE_BYTES = 4096
TCP_IDLE_S = 10.0
TCP_BUFFER_BYTES = 2 * dns.MAX_MESSAGE
_EMPTY_TYPES = frozenset(("AAAA", "HTTPS", "SVCB"))
# struct in_pktinfo: interface, address to send from, address that was asked (ip(7)).
_PKTINFO4 = struct.Struct("=I4s4s")
# struct in6_pktinfo: the address that was asked, interface (ipv6(7)).
_PKTINFO6 = struct.Struct("=16sI")

Send = Callable[[bytes], None]


class NamesServer:
    """Answers one room's questions.

    Attributes:
        received: Datagrams taken from the sockets, for the completeness count.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self.reactor = room.reactor
        self._streams: set[_Stream] = set()
        self.received = 0

    # --- UDP -----------------------------------------------------------------------------

    def receive(self, sock: socket.socket, _events: int) -> None:
        """Take what waits in a socket and answer it."""
        for _ in range(RECEIVE_BATCH):
            try:
                message, control, _flags, asker = sock.recvmsg(RECEIVE_BYTES, 256)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error for an earlier answer: the asker has gone
                continue
            self.received += 1
            source = [(level, kind, _answer_from(kind, data)) for level, kind, data in control]
            ends = partial(ends_of_question, asker, control)
            self.answer(message, partial(_send_from, sock, source, asker), ends)

    # --- TCP -----------------------------------------------------------------------------

    @property
    def open_streams(self) -> int:
        """Connections to port 53: they count against the room's limit like any other."""
        return len(self._streams)

    def serve_tcp(self, sock: socket.socket, server: Host) -> None:
        """Serve one connection to port 53 of the server that was dialled."""
        self._streams.add(_Stream(self, sock, server))

    def close(self) -> None:
        """End the connections that are still there."""
        for stream in list(self._streams):
            stream.close()

    def stream_ended(self, stream: _Stream) -> None:
        """Each accepted connection is on record: by its questions, or as one that asked nothing."""
        self._streams.discard(stream)
        if stream.has_asked:
            return
        attempt = Attempt(entry=Entry.TRANSPARENT, protocol=Protocol.DNS, host=stream.server, port=53)
        decision = self._room.decide(attempt)
        seq = self._room.record(attempt, decision, None, stream.ends)
        if decision.verdict is not Verdict.DENY:
            self._room.record_outcome(RecordOutcome(of=seq, outcome="unused"))

    # --- one question ----------------------------------------------------------------------

    def answer(self, message: bytes, send: Send, ends: EndsOf) -> None:
        """Record one question, then answer it."""
        try:
            question = dns.parse_question(message)
        except ProtocolViolation as violation:
            self._refuse_malformed(message, violation, send, ends)
            return
        attempt = Attempt(
            entry=Entry.DNS,
            protocol=Protocol.DNS,
            host=question.name,
            port=53,
            query_type=question.query_type,
        )
        answer, reason = self._build_answer(question)
        if reason is None:
            decision = self._room.decide(attempt)
        else:
            decision = self._room.engine.refuse(attempt, reason)

        def recorded(seq: int) -> None:
            send(answer)
            self._room.record_outcome(RecordOutcome(of=seq, outcome="answered-locally"))

        self._room.record(attempt, decision, recorded, ends)

    def _build_answer(self, question: dns.Question) -> tuple[bytes, Reason | None]:
        """The answer, and why it is not the usual one."""
        if isinstance(question.name, HostRefusal):
            return dns.answer_error(question, dns.Rcode.NXDOMAIN), None
        if question.query_type in _EMPTY_TYPES:
            return dns.answer_empty(question), None
        if not question.is_address_query:
            return dns.answer_error(question, dns.Rcode.REFUSED), None
        address = self._address_for(question.name)
        if address is None:
            return dns.answer_error(question, dns.Rcode.SERVFAIL), Reason.TOO_MANY_NAMES
        return dns.answer_address(question, address), None

    def _address_for(self, host: Host) -> IPv4Address | None:
        if isinstance(host.address, IPv4Address):
            return host.address  # a number asked as a name: it means itself, and is judged as itself
        address = self._room.names.address_for(host)
        return None if address is None else IPv4Address(address)

    def _refuse_malformed(
        self, message: bytes, violation: ProtocolViolation, send: Send, ends: EndsOf
    ) -> None:
        host = HostRefusal(escape_text(message[12:76]), violation.message)
        attempt = Attempt(entry=Entry.DNS, protocol=Protocol.DNS, host=host, port=53)
        decision = self._room.engine.refuse(attempt, Reason.MALFORMED_QUESTION)
        answer = dns.build_error_for(message)
        self._room.record(attempt, decision, lambda _seq: None if answer is None else send(answer), ends)


class _Stream:
    """One connection that asks over TCP (RFC 7766); it is closed when it has not asked for a while."""

    __slots__ = ("_buffer", "_names_server", "_sock", "_timer", "has_asked", "reactor", "server")

    def __init__(self, names_server: NamesServer, sock: socket.socket, server: Host) -> None:
        self.server = server
        self.has_asked = False
        self.reactor = names_server.reactor
        self._names_server = names_server
        self._sock = sock
        self._buffer = bytearray()
        self._timer = self.reactor.call_later(TCP_IDLE_S, self.close)
        self.reactor.watch(sock.fileno(), READ, self._readable)

    def close(self) -> None:
        self._timer.cancel()
        self.reactor.unwatch(self._sock.fileno())
        self._names_server.stream_ended(self)
        self._sock.close()

    def ends(self) -> Ends | None:
        return ends_of_connection(self._sock)

    def _readable(self, _events: int) -> None:
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._buffer.extend(data)
        if not data or len(self._buffer) > TCP_BUFFER_BYTES:
            self.close()
            return
        while (message := dns.take_message(self._buffer)) is not None:
            self.has_asked = True
            self._timer.cancel()
            self._timer = self.reactor.call_later(TCP_IDLE_S, self.close)
            self._names_server.answer(message, self._send, self.ends)

    def _send(self, answer: bytes) -> None:
        with suppress(OSError):  # the asker has gone, or does not read; it may ask again
            self._sock.send(dns.frame_message(answer))


def _answer_from(kind: int, data: bytes) -> bytes:
    """Turn the packet info of a question into that of its answer: from the asked address."""
    if kind == IP_PKTINFO:
        _interface, _local, asked = _PKTINFO4.unpack(data[: _PKTINFO4.size])
        return _PKTINFO4.pack(0, asked, b"\0\0\0\0")
    if kind == IPV6_PKTINFO:
        asked6, _interface = _PKTINFO6.unpack(data[: _PKTINFO6.size])
        return _PKTINFO6.pack(asked6, 0)
    return data


def _send_from(
    sock: socket.socket, source: list[tuple[int, int, bytes]], asker: object, answer: bytes
) -> None:
    with suppress(OSError):  # the asker's buffer is full or it has gone; DNS clients ask again
        sock.sendmsg([answer], source, 0, asker)  # type: ignore[arg-type]
