"""One permitted request and its response, both ways at once.

A server may answer before it has read the whole request (413, or 100 for a client that
waits), so the request's body and the response are carried side by side. When it is
over, the record says how, and the caller learns whether both connections can serve
another request.
"""

from __future__ import annotations

from enum import Enum

from stockade.errors import ProtocolViolation
from stockade.net.endpoint import parse_authority
from stockade.net.host import Host
from stockade.protocol.body import BodyRelay
from stockade.protocol.case import Case, Docket
from stockade.protocol.effects import Redirected
from stockade.protocol.events import Pumped
from stockade.protocol.framing import NO_BODY, malformed
from stockade.protocol.http1 import HeadFinder, RequestHead
from stockade.protocol.http1_response import ResponseHead, parse_response_head
from stockade.protocol.line import Line, Steps
from stockade.protocol.refusal import build_denial, build_failure, reason_of, status_of

# Interim answers are passed on and cost nothing, but nobody honest sends more than a few.
MAX_INTERIM = 64

_REPEATABLE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))


class End(Enum):
    """What the connection is good for after an exchange."""

    CLOSED = "closed"  # the line is closed, or will be
    KEPT = "kept"  # the client may send its next request
    UPGRADED = "upgraded"  # a 101 that was asked for: tunnel from here
    STALE = "stale"  # the kept upstream had closed meanwhile, nothing was answered: dial and ask again


class _State(Enum):
    WAITING = "waiting"
    COMPLETE = "complete"
    UPGRADED = "upgraded"


class Exchange:
    """Carries one request to the destination and the response back.

    Args:
        forwarded: The request's head as the destination gets it.
        is_reused: The upstream served an earlier request, so it may be about to close.
    """

    __slots__ = (
        "_accounted",
        "_answer",
        "_body",
        "_case",
        "_docket",
        "_finder",
        "_forwarded",
        "_has_passed_end",
        "_head",
        "_interims",
        "_is_reused",
        "_line",
        "_response",
    )

    def __init__(
        self, docket: Docket, case: Case, head: RequestHead, forwarded: bytes, *, is_reused: bool
    ) -> None:
        line = docket.line
        self._docket = docket
        self._line: Line = line
        self._case = case
        self._head = head
        self._forwarded = forwarded
        self._is_reused = is_reused
        self._body = BodyRelay(line, head.framing, upstream=True, limit_bytes=case.decision.limit_bytes)
        self._finder = HeadFinder(line.limits.head_bytes, is_request=False)
        self._response: ResponseHead | None = None  # the final one, once it was passed on
        self._answer: BodyRelay | None = None
        self._interims = 0
        self._has_passed_end = False
        self._accounted = (0, 0)

    def run(self) -> Steps[End]:
        """Carry until both messages are over or one cannot be."""
        self._line.to_upstream(self._forwarded)
        while True:
            try:
                self._body.advance()
            except ProtocolViolation as violation:
                return (yield from self._cut(violation))
            try:
                state = self._advance_answer()
            except ProtocolViolation as violation:
                return self._fail("malformed-answer", violation.message)
            if state is _State.UPGRADED:
                self._account()
                return End.UPGRADED
            if state is _State.COMPLETE and self._is_over():
                return self._finish()
            if (end := self._broken_end()) is not None:
                return end
            self._pass_client_end()
            self._account()  # whatever ends the connection while we wait finds the true figures
            event = yield
            if type(event) is Pumped:
                self._take_pumped(event)

    def _take_pumped(self, event: Pumped) -> None:
        relay = self._body if event.upstream else self._answer
        if relay is not None:
            relay.pumped(event)

    # --- the answer ------------------------------------------------------------------

    def _advance_answer(self) -> _State:
        while self._answer is None:
            end = self._finder.find(self._line.upstream)
            if not end:
                return _State.WAITING
            head = parse_response_head(self._line.take_upstream(end), self._head.line.method)
            if head.status == 101:
                self._take_upgrade(head)
                return _State.UPGRADED
            if head.is_interim:
                self._pass_interim(head)
            else:
                self._begin_answer(head)
        self._answer.advance()
        return _State.COMPLETE if self._answer.is_done else _State.WAITING

    def _pass_interim(self, head: ResponseHead) -> None:
        self._interims += 1
        if self._interims > MAX_INTERIM:
            raise malformed("interim answers without end")
        self._case.received_bytes += len(head.raw)
        if self._head.line.minor == 1:  # HTTP/1.0 has none (RFC 9110 15.2)
            self._line.to_client(head.raw)
        self._finder = HeadFinder(self._line.limits.head_bytes, is_request=False)

    def _take_upgrade(self, head: ResponseHead) -> None:
        """A 101: only for a request that asked, which is one whose upgrade was judged."""
        if self._head.upgrade is None or not self._body.is_done:
            raise malformed("a change of protocol that the request did not ask for")
        self._case.status = head.status
        self._case.received_bytes += len(head.raw)
        self._line.to_client(head.raw)

    def _begin_answer(self, head: ResponseHead) -> None:
        self._response = head
        self._case.status = head.status
        self._case.received_bytes += len(head.raw)
        if head.location is not None:
            self._note_redirect(head.location)
        self._line.to_client(head.raw)
        self._answer = BodyRelay(self._line, head.framing, upstream=False)

    def _note_redirect(self, location: bytes) -> None:
        """Say where a permitted answer sends the client, if that is another place."""
        scheme, _, rest = location.partition(b"//")
        port = {b"http:": 80, b"https:": 443, b"": 80}.get(scheme.lower())
        if port is None or not rest:
            return
        end = min((at for mark in b"/?#\\" if (at := rest.find(mark)) >= 0), default=len(rest))
        target = parse_authority(rest[:end], port)
        here = self._case.attempt
        if isinstance(target.host, Host) and (target.host, target.port) != (here.host, here.port):
            self._line.emit(Redirected(target.host, target.port))

    # --- ends ------------------------------------------------------------------------

    def _is_over(self) -> bool:
        """True if nothing more needs to be carried after the whole response."""
        assert self._response is not None
        return self._body.is_done or self._body.is_broken or not self._is_kept() or self._line.upstream_ended

    def _is_kept(self) -> bool:
        assert self._response is not None
        return self._head.is_persistent and self._response.is_persistent

    def _finish(self) -> End:
        self._account()
        self._docket.finish(self._case, "answered")
        if not (self._is_kept() and self._body.is_done):
            self._line.close(reset=self._body.is_broken)
            return End.CLOSED
        return End.KEPT

    def _broken_end(self) -> End | None:
        """What is to be done if one side ended too early; None if none did."""
        if self._answer is not None and self._answer.is_broken:
            return self._truncate("truncated")
        if self._line.upstream_ended and self._answer is None:
            if self._is_reused and not self._line.upstream and self._can_repeat():
                return End.STALE
            return self._fail("no-answer", "the destination closed without a whole answer")
        if self._body.is_broken and self._line.client_ended:
            return self._truncate("client-ended")
        return None

    def _can_repeat(self) -> bool:
        """A request that can be sent again without doing its work twice (RFC 9110 9.2.2)."""
        return self._head.line.method in _REPEATABLE and self._head.framing is NO_BODY and self._interims == 0

    def _truncate(self, word: str) -> End:
        """Part of a message went over and the rest will not: a reset shows that, a FIN would hide it."""
        self._account()
        self._docket.finish(self._case, word)
        self._line.close(reset=True)
        return End.CLOSED

    def _fail(self, word: str, detail: str) -> End:
        """The answer cannot be used."""
        if self._response is not None:
            return self._truncate(word)
        self._account()
        self._case.status = 502
        self._docket.finish(self._case, word, detail)
        self._line.drop_upstream()
        number = self._docket.decision_id(self._case.seq)
        has_body = self._head.line.method != "HEAD"
        self._line.to_client(build_failure(word, number, status=502, keep_alive=False, has_body=has_body))
        self._line.close()
        return End.CLOSED

    def _cut(self, violation: ProtocolViolation) -> Steps[End]:
        """The request turned out too large or malformed on its way: a second record, and the end."""
        self._account()
        reason = reason_of(violation)
        self._docket.finish(self._case, "cut", reason.value)
        self._line.drop_upstream()
        self._line.wants_client = False
        attempt = self._case.attempt
        case = Case(attempt, self._docket.refuse(attempt, reason, violation.message))
        yield from self._docket.record(case)
        if self._response is not None:
            self._line.close(reset=True)
            return End.CLOSED
        number = self._docket.decision_id(case.seq)
        answer = build_denial(case.decision, number, status=status_of(reason), keep_alive=False)
        self._line.to_client(answer)
        self._line.close()
        return End.CLOSED

    def _pass_client_end(self) -> None:
        """The client will send nothing more: the destination may know, as it would without a gateway."""
        if self._has_passed_end or not self._line.client_ended or self._line.client:
            return
        if self._body.is_done and self._line.is_connected:
            self._has_passed_end = True
            self._line.end_upstream()

    def _account(self) -> None:
        """Bring the case's figures up to what was passed on so far."""
        sent = len(self._forwarded) + self._body.count
        received = 0 if self._answer is None else self._answer.count
        self._case.sent_bytes += sent - self._accounted[0]
        self._case.received_bytes += received - self._accounted[1]
        self._accounted = sent, received
