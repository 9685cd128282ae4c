"""An attempt written as one line, as in the event bank and on the command line of `decide`.

``METHOD URL | tcp HOST PORT | udp HOST PORT | dns NAME [TYPE] | exec PROGRAM [ARG...]
| socket PATH|icmp:ADDR|vsock:CID:PORT``
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from stockade.decision.request import Attempt
from stockade.errors import UserError
from stockade.net.endpoint import Url, parse_authority, parse_url
from stockade.net.host import Host, HostRefusal, parse_host
from stockade.vocabulary import Entry, Protocol

FORMS = (
    "METHOD URL | tcp HOST PORT | udp HOST PORT | dns NAME [TYPE] | exec PROGRAM [ARG...] "
    "| socket PATH|icmp:ADDR|vsock:CID:PORT"
)
_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}")
_READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "DELETE"})


def parse_attempt_line(
    words: Sequence[str],
    *,
    entry: Entry | None = None,
    sni: str | None = None,
    host: str | None = None,
    came_from: str | None = None,
) -> Attempt:
    """Parse the words of an attempt; hosts in it may be refused, which is for the engine to say.

    Args:
        words: The line, split as a POSIX shell does.
        entry: The door, where the line leaves it open.
        sni: Name in the TLS hello, if it differs from the host.
        host: Name in the Host header, if it differs from the host.
        came_from: The URL whose 3xx answer named this attempt as its next hop.

    Raises:
        UserError: if it is no attempt.
    """
    if not words:
        raise _refuse("nothing to decide")
    first, *rest = words
    parse = _FORMS.get(first, _parse_request)
    attempt = parse(first, rest)
    if sni is not None:
        attempt = replace(attempt, sni=parse_host(sni, is_bracketed=False))
    if host is not None:
        attempt = replace(attempt, authority=parse_authority(host, attempt.port).host)
    if came_from is not None:
        _refuse_no_url(came_from)
        attempt = replace(attempt, redirected=True)
    if entry is not None and attempt.entry is Entry.TRANSPARENT:
        attempt = replace(attempt, entry=entry)
    return attempt


def _parse_request(method: str, rest: list[str]) -> Attempt:
    if not _METHOD.fullmatch(method.upper()) or len(rest) != 1:
        raise _refuse(f"not an attempt: {' '.join((method, *rest))[:80]}")
    url = parse_url(rest[0])
    if isinstance(url, HostRefusal):
        if "://" not in rest[0]:
            raise _refuse(f"{rest[0][:80]} is not an absolute URL")
        return Attempt(entry=Entry.TRANSPARENT, protocol=Protocol.TCP, host=url, method=method.upper())
    return _request_to(method.upper(), url)


def _request_to(method: str, url: Url) -> Attempt:
    is_web_socket = url.scheme in ("ws", "wss")
    return Attempt(
        entry=Entry.TRANSPARENT,
        protocol=Protocol.TLS if url.scheme in ("https", "wss") else Protocol.HTTP,
        host=url.endpoint.host,
        port=url.endpoint.port,
        method=method,
        path=url.path,
        query_bytes=len(url.query or ""),
        has_body=method not in _READING,
        upgrade="websocket" if is_web_socket else None,
    )


def _parse_tcp(_kind: str, rest: list[str]) -> Attempt:
    host, port = _host_and_port("tcp", rest)
    return Attempt(entry=Entry.TRANSPARENT, protocol=Protocol.TCP, host=host, port=port)


def _parse_udp(_kind: str, rest: list[str]) -> Attempt:
    host, port = _host_and_port("udp", rest)
    return Attempt(entry=Entry.UDP, protocol=Protocol.UDP, host=host, port=port)


def _host_and_port(kind: str, rest: list[str]) -> tuple[Host | HostRefusal, int]:
    if len(rest) != 2 or not rest[1].isdecimal() or not 0 < int(rest[1][:6]) < 65536:
        raise _refuse(f"{kind} takes a host and a port from 1 to 65535")
    return parse_host(rest[0], is_bracketed=False), int(rest[1])


def _parse_dns(_kind: str, rest: list[str]) -> Attempt:
    if not 1 <= len(rest) <= 2:
        raise _refuse("dns takes a name and, if it is not A, a type")
    query_type = rest[1].upper() if len(rest) == 2 else "A"
    host = parse_host(rest[0], is_bracketed=False)
    return Attempt(entry=Entry.DNS, protocol=Protocol.DNS, host=host, port=53, query_type=query_type)


def _parse_exec(_kind: str, rest: list[str]) -> Attempt:
    if not rest:
        raise _refuse("exec takes a program and its arguments")
    return Attempt(entry=Entry.EXEC, protocol=Protocol.EXEC, argv=tuple(rest))


def _parse_socket(_kind: str, rest: list[str]) -> Attempt:
    if len(rest) != 1:
        raise _refuse("socket takes a path, icmp:ADDR or vsock:CID:PORT")
    return Attempt(entry=Entry.SOCKET, protocol=Protocol.SOCKET, socket=rest[0])


_FORMS: dict[str, Callable[[str, list[str]], Attempt]] = {
    "tcp": _parse_tcp,
    "udp": _parse_udp,
    "dns": _parse_dns,
    "exec": _parse_exec,
    "socket": _parse_socket,
}


def _refuse_no_url(text: str) -> None:
    if isinstance(parse_url(text), HostRefusal):
        raise _refuse(f"--from takes an absolute URL, not {text[:80]}")


def _refuse(message: str) -> UserError:
    return UserError("attempt-unclear", message, f"write {FORMS}")
