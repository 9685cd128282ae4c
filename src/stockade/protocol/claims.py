"""What an HTTP request claims to be, as an attempt, and where its claims contradict each other."""

from __future__ import annotations

from stockade.decision.request import Attempt
from stockade.net.endpoint import Endpoint
from stockade.net.host import Host, HostRefusal
from stockade.protocol.case import Objection
from stockade.protocol.framing import Ending
from stockade.protocol.http1 import RequestHead
from stockade.protocol.http1_line import Form, RequestLine
from stockade.vocabulary import Entry, Protocol, Reason


def describe_line(entry: Entry, place: Endpoint, line: RequestLine | None) -> Attempt:
    """An attempt of which no more than the first line is known, if that."""
    return Attempt(
        entry=entry,
        protocol=Protocol.HTTP,
        host=place.host,
        port=place.port,
        method=None if line is None else line.method,
        path=None if line is None else line.path,
    )


def describe_request(entry: Entry, place: Endpoint, head: RequestHead, *, to_proxy: bool) -> Attempt:
    """The attempt that a whole head stands for.

    Args:
        place: Where it was dialled, or where it asks the proxy to go.
        to_proxy: It was written to the proxy entry, whose credentials are not the destination's.
    """
    line, framing, credentials = head.line, head.framing, head.credential_headers
    if to_proxy:
        credentials = tuple(name for name in credentials if name != "proxy-authorization")
    return Attempt(
        entry=entry,
        protocol=Protocol.TLS if line.scheme == "https" else Protocol.HTTP,
        host=place.host,
        port=place.port,
        method=line.method,
        path=line.path,
        query_bytes=line.query_bytes,
        has_body=framing.ending is not Ending.NONE,
        body_bytes=framing.length,
        upgrade=head.upgrade,
        authority=_telling_name(head, place),
        credential_headers=credentials,
    )


def _telling_name(head: RequestHead, place: Endpoint) -> Host | HostRefusal | None:
    """The first name in the request that is not the place's; else what Host says."""
    for written in (head.line.authority, head.host):
        if written is not None and written.host != place.host:
            return written.host
    return None if head.host is None else head.host.host


def object_to_form(line: RequestLine, *, to_proxy: bool) -> Objection | None:
    """What no destination could be asked in this way."""
    if line.scheme == "https":
        return Reason.NOT_THE_PROTOCOL, "an https URL in a plain request, where CONNECT is needed"
    if line.scheme not in (None, "http"):
        return Reason.NOT_THE_PROTOCOL, f"a URL of the scheme {line.scheme}"
    if to_proxy and line.form in (Form.ORIGIN, Form.ASTERISK):
        return Reason.MALFORMED_REQUEST, "this is a proxy: it needs a whole URL, or CONNECT"
    if not to_proxy and line.form is Form.AUTHORITY:
        return Reason.METHOD_NOT_PERMITTED, "CONNECT to a destination that is no proxy of the gateway's"
    return None


def object_to_names(head: RequestHead, place: Endpoint) -> Objection | None:
    """One name everywhere: dialled or asked for, in the request line, and in Host."""
    if isinstance(place.host, HostRefusal):
        return Reason.MALFORMED_HOST, place.host.problem
    for written in (head.line.authority, head.host):
        if written is None or (written.host == place.host and written.port in (0, place.port)):
            continue
        if isinstance(written.host, HostRefusal):
            return Reason.MALFORMED_HOST, f"the request names {written.host.problem}"
        return Reason.NAME_MISMATCH, None
    return None
