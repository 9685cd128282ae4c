"""The SOCKS5 entry: greeting, request, and then a tunnel like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from stockade.decision.request import Attempt
from stockade.errors import ProtocolViolation
from stockade.net.endpoint import Endpoint
from stockade.protocol.case import NOWHERE, Docket
from stockade.protocol.doors import SocksDoor
from stockade.protocol.flow_http import run_http
from stockade.protocol.line import Line, Script, Steps
from stockade.protocol.socks5 import (
    COMMAND_WORDS,
    CONNECT,
    CREDENTIALS_TAKEN,
    NO_METHOD,
    UDP_ASSOCIATE,
    USER_AND_PASSWORD,
    Request,
    build_method_choice,
    parse_credentials,
    parse_greeting,
    parse_request,
)
from stockade.protocol.tunnels import enter
from stockade.vocabulary import Protocol, Reason

T = TypeVar("T")


def run_socks(docket: Docket) -> Script:
    """Serve one SOCKS5 client."""
    line = docket.line
    line.wants_client = True
    line.set_deadline(line.limits.first_bytes_s)
    try:
        request = yield from _read_request(line)
    except ProtocolViolation as violation:
        yield from _refuse_bytes(docket, violation)
        return None
    if request is None:
        return None
    line.wants_client = False
    place = docket.translate(request.destination)
    if request.command != CONNECT:
        yield from _refuse_command(docket, request.command, place)
        return None
    return (yield from enter(docket, place, SocksDoor(docket), run_http))


def _read_request(line: Line) -> Steps[Request | None]:
    """The client's request; None if it closed without a byte."""
    greeting = yield from _read(line, parse_greeting)
    if greeting is None:
        return None
    line.take_client(greeting.size)
    line.to_client(build_method_choice(greeting.method))
    if greeting.method == NO_METHOD:
        raise ProtocolViolation(Reason.MALFORMED_REQUEST.value, "no SOCKS method that the gateway knows")
    if greeting.method == USER_AND_PASSWORD:
        line.take_client((yield from _read(line, parse_credentials)) or 0)
        line.to_client(CREDENTIALS_TAKEN)
    request = yield from _read(line, parse_request)
    if request is None:
        raise ProtocolViolation(Reason.MALFORMED_REQUEST.value, "the client closed before its request")
    line.take_client(request.size)
    return request


def _read(line: Line, parse: Callable[[bytearray], T | None]) -> Steps[T | None]:
    """What `parse` makes of the client's bytes; None if it closed before the first of them."""
    while True:
        parsed = parse(line.client)
        if parsed is not None or (line.client_ended and not line.client):
            return parsed
        if line.client_ended:
            raise ProtocolViolation(Reason.MALFORMED_REQUEST.value, "the client closed before its end")
        event = yield
        if line.is_late(event):
            raise ProtocolViolation(Reason.FIRST_BYTE_TIMEOUT.value, "no whole SOCKS request in time")


def _refuse_bytes(docket: Docket, violation: ProtocolViolation) -> Steps[None]:
    """No reply: whoever does not speak SOCKS5 could not read one."""
    docket.line.clear_deadline()
    attempt = Attempt(entry=docket.entry, protocol=Protocol.TCP, host=NOWHERE)
    yield from docket.record(docket.weigh_refused(attempt, violation))


def _refuse_command(docket: Docket, command: int, place: Endpoint) -> Steps[None]:
    """BIND and UDP ASSOCIATE: the gateway carries outgoing TCP only."""
    docket.line.clear_deadline()
    objection = f"SOCKS {COMMAND_WORDS.get(command, f'command {command}')}"
    if command == UDP_ASSOCIATE:  # its address is where the client will send from: no destination is named
        attempt = Attempt(entry=docket.entry, protocol=Protocol.UDP, host=NOWHERE)
        violation = ProtocolViolation(Reason.PROTOCOL_NOT_CARRIED.value, objection)
        case = docket.weigh_refused(attempt, violation)
    else:
        attempt = Attempt(entry=docket.entry, protocol=Protocol.TCP, host=place.host, port=place.port)
        case = yield from docket.weigh(attempt, (Reason.PROTOCOL_NOT_CARRIED, objection))
    yield from docket.record(case)
    SocksDoor(docket).refuse_command()
