"""HTTP/1 conversations: every request is judged, one at a time, whatever the connection promised.

The next head is read only when the response to the one before is complete, so that the
right 403 goes to the right request; what a client sends ahead waits, within bounds. A
connection to the destination is used again only for the same permit.
"""

from __future__ import annotations

from stockade.decision.request import Attempt, Permit
from stockade.errors import ProtocolViolation
from stockade.net.address import IPAddress
from stockade.net.endpoint import Endpoint
from stockade.net.host import HostRefusal
from stockade.policy.model import BodyRule
from stockade.protocol.case import NOWHERE, Case, Docket
from stockade.protocol.claims import describe_line, describe_request, object_to_form, object_to_names
from stockade.protocol.content import object_to_content, object_to_framing
from stockade.protocol.doors import ConnectDoor
from stockade.protocol.exchange import End, Exchange
from stockade.protocol.framing import CHUNKED, malformed
from stockade.protocol.http1 import HeadFinder, RequestHead, parse_request_head
from stockade.protocol.http1_forward import forward_request
from stockade.protocol.http1_line import Form, RequestLine
from stockade.protocol.line import Line, Script, Steps
from stockade.protocol.refusal import build_denial, build_failure, reason_of, status_of
from stockade.protocol.tls_hello import ACCESS_DENIED, build_alert, looks_like_tls
from stockade.protocol.tunnels import enter, run_tunnel
from stockade.vocabulary import Reason, Verdict


def run_http(docket: Docket, place: Endpoint, addresses: tuple[IPAddress, ...] | None = None) -> Script:
    """A conversation with one destination: transparent, or inside CONNECT and SOCKS."""
    return (yield from Conversation(docket, place, addresses).run())


def run_proxy(docket: Docket) -> Script:
    """A conversation with the proxy entry: each request names its own destination."""
    return (yield from Conversation(docket, None).run())


class Conversation:
    """The requests of one client connection.

    Args:
        place: Where all of them must go; None at the proxy entry.
        addresses: Answers for `place` that were judged a moment ago, for the first request.
    """

    __slots__ = ("_addresses", "_docket", "_finder", "_is_first", "_is_proxy", "_line", "_permit", "_place")

    def __init__(
        self, docket: Docket, place: Endpoint | None, addresses: tuple[IPAddress, ...] | None = None
    ) -> None:
        self._docket = docket
        self._line: Line = docket.line
        self._place = place
        self._is_proxy = place is None
        self._addresses = addresses
        self._permit: Permit | None = None  # of the upstream that is connected
        self._is_first = True
        self._finder = HeadFinder(self._line.limits.head_bytes)

    def run(self) -> Script:
        while not self._line.is_closed:
            try:
                head = yield from self._next_head()
            except ProtocolViolation as violation:
                yield from self._refuse_bytes(violation)
                return None
            if head is None:
                return None
            following = yield from self._serve(head)
            if following is not None:
                return following
            self._is_first = False
        return None

    # --- reading ---------------------------------------------------------------------

    def _next_head(self) -> Steps[RequestHead | None]:
        """The next request; None if there will be none.

        Raises:
            ProtocolViolation: it is malformed, too large, cut short or late.
        """
        line = self._line
        self._finder = HeadFinder(line.limits.head_bytes)
        line.wants_client = True
        is_idle = not self._is_first and not line.client
        line.set_deadline(line.limits.idle_s if is_idle else line.limits.first_bytes_s)
        if self._is_first:
            self._note_pending()
        while True:
            self._drop_stale_upstream()
            end = self._finder.find(line.client)
            if end:
                line.clear_deadline()
                return parse_request_head(line.take_client(end), self._finder.line)
            if line.client_ended:
                yield from self._no_more_heads()
                return None
            event = yield
            if line.is_late(event):
                if is_idle or (self._place is None and not line.client):
                    return None
                raise ProtocolViolation(Reason.FIRST_BYTE_TIMEOUT.value, "no whole request head in time")
            if is_idle and line.client:
                is_idle = False
                line.set_deadline(line.limits.first_bytes_s)

    def _note_pending(self) -> None:
        if self._place is not None:
            self._docket.pending = self._bare_attempt(self._place)

    def _no_more_heads(self) -> Steps[None]:
        if self._line.client:
            raise malformed("the client closed in the middle of a head")
        self._line.clear_deadline()
        if self._is_first and self._place is not None:
            yield from self._docket.record_unused(self._bare_attempt(self._place))

    def _drop_stale_upstream(self) -> None:
        """A destination that closes, or speaks without being asked, is not used again.

        More bytes than an answer had are nobody's answer, least of all to the next request.
        """
        if self._line.is_connected and (self._line.upstream_ended or self._line.upstream):
            self._line.drop_upstream()

    # --- one request -----------------------------------------------------------------

    def _bare_attempt(self, place: Endpoint, line: RequestLine | None = None) -> Attempt:
        return describe_line(self._docket.entry, place, line)

    def _serve(self, head: RequestHead) -> Steps[Script | None]:
        if self._is_proxy and head.line.form is Form.AUTHORITY:
            return (yield from self._connect(head))
        place = self._place_of(head)
        attempt = describe_request(self._docket.entry, place, head, to_proxy=self._is_proxy)
        objection = object_to_form(head.line, to_proxy=self._is_proxy) or object_to_names(head, place)
        case = yield from self._docket.weigh(attempt, objection, self._known_addresses(place))
        self._addresses = None
        if case.permit is not None and case.decision.body is not None:
            case = yield from self._look_inside(head, case, case.decision.body)
        yield from self._docket.record(case)
        if case.permit is None:
            yield from self._turn_down(head, case)
            return None
        return (yield from self._carry(head, case, place))

    def _look_inside(self, head: RequestHead, case: Case, rule: BodyRule) -> Steps[Case]:
        """Wait for the whole body, which stays in the buffer, and judge what it asks for."""
        line = self._line
        wanted = head.framing.length or 0
        problem = object_to_framing(head)
        if problem is None and not self._docket.holding.take(wanted):
            problem = "too many bodies are being read at once; send it again later"
        elif problem is None:
            try:
                problem = (yield from self._hold_body(head, wanted)) or object_to_content(
                    rule, bytes(line.client[:wanted])
                )
            finally:
                self._docket.holding.give_back(wanted)
        if problem is None:
            return (yield from self._judge_again(head, case, rule))
        return Case(case.attempt, self._docket.refuse(case.attempt, Reason.FORBIDDEN_CONTENT, problem))

    def _judge_again(self, head: RequestHead, case: Case, rule: BodyRule) -> Steps[Case]:
        """The body took its time; the policy in force by now decides, and it may want to see it as well."""
        again = yield from self._docket.weigh(case.attempt, None, case.addresses)
        wanted = again.decision.body
        if again.permit is None or wanted is None or wanted == rule:
            return again
        return (yield from self._look_inside(head, again, wanted))

    def _hold_body(self, head: RequestHead, wanted: int) -> Steps[str | None]:
        """Wait until the body is whole; a phrase if it does not come."""
        line = self._line
        if head.expects_continue:
            line.to_client(b"HTTP/1.1 100 Continue\r\n\r\n")
        line.client_limit_bytes = wanted
        line.set_deadline(line.limits.content_s)
        try:
            while len(line.client) < wanted:
                if line.client_ended:
                    return "the client closed in the middle of the body"
                event = yield
                if line.is_late(event):
                    return "the body did not come in time"
        finally:
            line.client_limit_bytes = 0
        line.clear_deadline()
        return None

    def _connect(self, head: RequestHead) -> Steps[Script | None]:
        """Only the authority counts: the Host of a CONNECT goes nowhere, and some name the proxy in it."""
        self._line.drop_upstream()
        self._permit = None
        door = ConnectDoor(self._docket, keep_alive=self._can_keep(head))
        return (yield from enter(self._docket, self._place_of(head), door, run_http))

    def _carry(self, head: RequestHead, case: Case, place: Endpoint) -> Steps[Script | None]:
        """Send a recorded request, over the connection that is there or over a new one."""
        line = self._line
        added = self._docket.credential_for(case)
        forwarded = forward_request(head, place, to_proxy=self._is_proxy, added=added)
        self._drop_stale_upstream()
        if line.is_connected and self._permit != case.permit:
            line.drop_upstream()
        end = End.STALE
        while end is End.STALE:
            is_reused = line.is_connected
            if not is_reused:
                error = yield from self._docket.dial(case)
                if error is not None:
                    yield from self._fail_to_dial(head, case, error)
                    return None
                self._permit = case.permit
            end = yield from Exchange(self._docket, case, head, forwarded, is_reused=is_reused).run()
            if end is End.STALE:
                line.drop_upstream()
        return run_tunnel(self._docket, case) if end is End.UPGRADED else None

    def _place_of(self, head: RequestHead) -> Endpoint:
        if self._place is not None:
            return self._place
        if head.line.authority is not None:
            is_connect = head.line.form is Form.AUTHORITY
            return self._docket.translate(head.line.authority) if is_connect else head.line.authority
        return Endpoint(NOWHERE, 0) if head.host is None else Endpoint(head.host.host, head.host.port or 80)

    def _known_addresses(self, place: Endpoint) -> tuple[IPAddress, ...] | None:
        """Answers that need no new look-up: just judged for CONNECT, or of the open connection."""
        if self._addresses is not None:
            return self._addresses
        permit = self._permit
        if not self._line.is_connected or permit is None or isinstance(place.host, HostRefusal):
            return None
        return permit.addresses if (permit.name, permit.port) == (place.host.name, place.port) else None

    # --- refusals --------------------------------------------------------------------

    def _can_keep(self, head: RequestHead) -> bool:
        """The client's next request can be found after a refusal of this one.

        The answer hangs on what was declared, never on how much of it has come.
        """
        if not head.is_persistent or head.line.minor == 0 or head.expects_continue or head.framing is CHUNKED:
            return False
        return (head.framing.length or 0) <= self._line.limits.drain_bytes

    def _turn_down(self, head: RequestHead, case: Case) -> Steps[None]:
        keep = self._can_keep(head)
        has_body = head.line.method != "HEAD"
        number = self._docket.decision_id(case.seq)
        if case.decision.verdict is Verdict.DENY:
            status, help_text = self._status_for(head, case.decision.reason)
            answer = build_denial(
                case.decision, number, status=status, keep_alive=keep, has_body=has_body, help_text=help_text
            )
        else:
            word = "resolution-failed"
            answer = build_failure(word, number, status=502, keep_alive=keep, has_body=has_body)
        yield from self._answer(head, answer, keep=keep)

    def _status_for(self, head: RequestHead, reason: Reason) -> tuple[int, str | None]:
        """The status of a denial, and what a client that made a mistake should know.

        A request that contradicts itself is a bad one; one that contradicts the dial is forbidden.
        """
        objection = object_to_form(head.line, to_proxy=self._is_proxy)
        if objection is not None and status_of(objection[0]) == 400:
            return 400, objection[1]
        authority = head.line.authority
        if reason is Reason.NAME_MISMATCH and authority is not None and head.host is not None:
            return (400 if authority.host != head.host.host else 403), None
        return status_of(reason), None

    def _fail_to_dial(self, head: RequestHead, case: Case, error: str) -> Steps[None]:
        case.status = 504 if error == "timed-out" else 502
        self._docket.finish(case, "dial-failed", error)
        keep = self._can_keep(head)
        number = self._docket.decision_id(case.seq)
        has_body = head.line.method != "HEAD"
        answer = build_failure("dial-failed", number, status=case.status, keep_alive=keep, has_body=has_body)
        yield from self._answer(head, answer, keep=keep)

    def _answer(self, head: RequestHead, answer: bytes, *, keep: bool) -> Steps[None]:
        line = self._line
        line.to_client(answer)
        if not keep:
            line.close()
            return
        yield from self._drain(head.framing.length or 0)

    def _drain(self, left: int) -> Steps[None]:
        """Read the body of a refused request and drop it, so that the next head can be found."""
        line = self._line
        if left:
            line.set_deadline(line.limits.first_bytes_s)
        while left:
            left -= len(line.take_client(left))
            if not left:
                break
            if line.client_ended:
                line.close()
                return
            event = yield
            if line.is_late(event):
                line.close()
                return
        line.clear_deadline()

    def _refuse_bytes(self, violation: ProtocolViolation) -> Steps[None]:
        """Bytes that are no readable request: a record, an answer, the end."""
        line = self._line
        line.clear_deadline()
        line.wants_client = False
        first = self._finder.line
        place = self._place or (first.authority if first is not None else None) or Endpoint(NOWHERE, 0)
        case = self._docket.weigh_refused(self._bare_attempt(place, first), violation)
        yield from self._docket.record(case)
        reason = reason_of(violation)
        if reason is Reason.FIRST_BYTE_TIMEOUT and not line.client:
            line.close(reset=True)  # it has said nothing: perhaps it does not speak HTTP at all
            return
        if reason is Reason.NOT_THE_PROTOCOL and looks_like_tls(line.client[0]):
            line.to_client(build_alert(ACCESS_DENIED))
        else:
            number = self._docket.decision_id(case.seq)
            status = status_of(reason)
            answer = build_denial(
                case.decision, number, status=status, keep_alive=False, help_text=violation.message
            )
            line.to_client(answer)
        line.close()
