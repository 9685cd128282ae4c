"""Scripts for what is carried without looking inside: TLS after its hello, SSH, plain TCP."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from stockade.decision.request import Attempt
from stockade.errors import ProtocolViolation
from stockade.net.address import IPAddress
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, HostRefusal
from stockade.protocol.case import Case, Docket, Objection
from stockade.protocol.doors import Door, SilentDoor, TlsDoor
from stockade.protocol.events import Pumped, UpstreamEnded
from stockade.protocol.line import Line, Script, Steps
from stockade.protocol.tls_behind import MAX_SKIPPED_BYTES, measure_hello, read_behind
from stockade.protocol.tls_hello import ClientHello, parse_client_hello
from stockade.vocabulary import Protocol, Reason, Verdict

Inner = Callable[[Docket, Endpoint, "tuple[IPAddress, ...] | None"], Script]


def run_tls(docket: Docket, place: Endpoint, addresses: tuple[IPAddress, ...] | None = None) -> Script:
    """Read the hello, hold its name against the place, and tunnel.

    Args:
        place: The name that was dialled or asked for.
        addresses: Its answers, if they were judged before (CONNECT, SOCKS).
    """
    line = docket.line
    door = TlsDoor(docket)
    attempt = _attempt_at(docket, Protocol.TLS, place)
    docket.pending = attempt
    try:
        hello = yield from _read_hello(line)
    except ProtocolViolation as violation:
        case = docket.weigh_refused(attempt, violation)
        yield from docket.record(case)
        door.refuse(case)
        return None
    if hello is None:
        yield from docket.record_unused(attempt)
        return None
    attempt = _attempt_at(docket, Protocol.TLS, place, hello.name)
    case = yield from docket.weigh(attempt, _object_to_name(hello.name, place.host), addresses)
    follow = yield from _carry(docket, case, door)
    return None if follow is None else _run_behind_hello(docket, case, hello)


def run_raw(docket: Docket, place: Endpoint, protocol: Protocol) -> Script:
    """Judge, dial and tunnel without a byte of the client: the server may speak first (SSH, SMTP)."""
    docket.line.wants_client = False
    case = yield from docket.weigh(_attempt_at(docket, protocol, place))
    return (yield from _carry(docket, case, SilentDoor(docket)))


def enter(docket: Docket, place: Endpoint, door: Door, run_http: Inner) -> Steps[Script | None]:
    """Open a way to a place that a proxy client named; None if it was refused.

    Where the first bytes carry a name (TLS, HTTP), the door opens when the name and its
    addresses are judged, and the record and the dial wait for that name. Elsewhere the
    server may speak first, so both come before the door opens.
    """
    host, line = place.host, docket.line
    line.clear_deadline()
    protocol = None if isinstance(host, HostRefusal) else docket.judge.protocol_for(host, place.port)
    case = yield from docket.weigh(_attempt_at(docket, protocol or Protocol.TCP, place))
    if protocol is Protocol.TLS and case.permit is not None:
        door.accept()
        return run_tls(docket, place, case.addresses)
    if protocol is Protocol.HTTP and case.permit is not None:
        door.accept()
        return run_http(docket, place, case.addresses)
    return (yield from _carry(docket, case, door))


def _carry(docket: Docket, case: Case, door: Door) -> Steps[Script | None]:
    """Record, dial and begin the tunnel, or say through the door why not."""
    yield from docket.record(case)
    if case.permit is None:
        if case.decision.verdict is Verdict.DENY:
            door.refuse(case)
        else:
            door.fail(case, case.failure or "no-address")
        return None
    error = yield from docket.dial(case)
    if error is not None:
        docket.finish(case, "dial-failed", error)
        door.fail(case, error)
        return None
    door.accept()
    return run_tunnel(docket, case)


def _run_behind_hello(docket: Docket, case: Case, first: ClientHello) -> Script:
    """Pass records on until no second hello can come, then tunnel; a second name is a denial and the end.

    Nothing behind the first hello goes out unread, since a client need not wait to be asked for another.
    """
    line = docket.line
    _send_up(line, case, measure_hello(line.client))
    line.wants_client = True
    skipped_bytes = 0
    while skipped_bytes < MAX_SKIPPED_BYTES and not (line.client_ended or line.upstream_ended):
        try:
            behind = read_behind(line.client, first.has_early_data)
        except ProtocolViolation as violation:
            yield from _end_tunnel(docket, case, docket.weigh_refused(case.attempt, violation))
            return None
        if behind is None:
            event = yield
            if type(event) is UpstreamEnded and event.reset:
                docket.finish(case, "reset")
                line.close(reset=True)
                return None
            case.received_bytes += len(line.upstream)
            line.to_client(line.take_upstream(len(line.upstream)))
            continue
        if behind.is_over:
            break
        if behind.hello is not None and (denial := _deny_second_name(docket, case, behind.hello)) is not None:
            yield from _end_tunnel(docket, case, denial)
            return None
        _send_up(line, case, behind.size)
        skipped_bytes += behind.size
    line.wants_client = False
    return run_tunnel(docket, case)


def _deny_second_name(docket: Docket, case: Case, hello: ClientHello) -> Case | None:
    assert case.attempt.host is not None
    objection = _object_to_name(hello.name, case.attempt.host)
    if objection is None:
        return None
    attempt = structs.replace(case.attempt, sni=hello.name)
    return Case(attempt, docket.refuse(attempt, *objection))


def _send_up(line: Line, case: Case, count: int) -> None:
    case.sent_bytes += count
    line.to_upstream(line.take_client(count))


def _end_tunnel(docket: Docket, case: Case, denial: Case) -> Steps[None]:
    """Cut a tunnel for what its client said, with a record of its own."""
    docket.line.wants_client = False
    docket.line.drop_upstream()
    docket.finish(case, "cut", denial.decision.reason.value)
    yield from docket.record(denial)
    TlsDoor(docket).refuse(denial)


def run_tunnel(docket: Docket, case: Case) -> Script:
    """Pass on what is buffered, then let the driver carry both ways until both have ended."""
    line = docket.line
    case.sent_bytes += len(line.client)
    case.received_bytes += len(line.upstream)
    line.to_client(bytes(line.upstream))
    line.to_upstream(bytes(line.client))
    line.tunnel()
    is_whole = True
    ways = 2
    while ways:
        event = yield
        if type(event) is Pumped:
            ways -= 1
            is_whole = is_whole and event.ended
            if event.upstream:
                case.sent_bytes += event.count
            else:
                case.received_bytes += event.count
        elif type(event) is UpstreamEnded and event.reset:
            is_whole = False
            break
    docket.finish(case, "closed" if is_whole else "reset")
    line.close(reset=not is_whole)
    return None


def _attempt_at(
    docket: Docket, protocol: Protocol, place: Endpoint, sni: Host | HostRefusal | None = None
) -> Attempt:
    return Attempt(entry=docket.entry, protocol=protocol, host=place.host, port=place.port, sni=sni)


def _object_to_name(name: Host | HostRefusal | None, host: Host | HostRefusal) -> Objection | None:
    if name is None:
        return Reason.SNI_MISSING, None
    if isinstance(name, HostRefusal):
        return Reason.MALFORMED_HOST, f"the TLS hello names {name.problem}"
    return None if name == host else (Reason.NAME_MISMATCH, None)


def _read_hello(line: Line) -> Steps[ClientHello | None]:
    """The client's hello; None if it closed without a byte.

    Raises:
        ProtocolViolation: it is malformed, cut short or late.
    """
    line.wants_client = True
    line.set_deadline(line.limits.first_bytes_s)
    try:
        while True:
            hello = parse_client_hello(line.client)
            if hello is not None or (line.client_ended and not line.client):
                return hello
            if line.client_ended:
                raise ProtocolViolation(Reason.MALFORMED_TLS.value, "the client closed before its end")
            event = yield
            if line.is_late(event):
                raise ProtocolViolation(Reason.FIRST_BYTE_TIMEOUT.value, "no whole TLS hello in time")
    finally:
        line.wants_client = False
        line.clear_deadline()
