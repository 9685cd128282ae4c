"""Host and port, from an authority or a URL.

What stands around a host can lie as well as the host itself: a user name, a backslash
that only browsers take for a slash, a port that is no number. All of it is refused with
the whole authority as the text, so that the record shows what was sent.
"""

from __future__ import annotations

import re

from msgspec import Struct

from stockade.net.host import Host, HostRefusal, parse_host, refuse_host

DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}

_AUTHORITY = re.compile(rb"(\[[^\]@]*\]|[^:@\[\]\\/?#]*)(?::([0-9]*))?", re.DOTALL)
_URL = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)


class Endpoint(Struct, frozen=True):
    """A destination as written: the host, or its refusal, and the port.

    Attributes:
        host: Parsed, or refused; a port that is no port refuses the host with it.
        port: 0 if it could not be read.
    """

    host: Host | HostRefusal
    port: int


class Url(Struct, frozen=True):
    """An absolute URL taken apart; nothing in path and query is decoded, bytes above ASCII are encoded.

    Attributes:
        scheme: In lower case.
        endpoint: Host and port, with the scheme's port if none is written.
        path: As written, ``/`` if empty.
        query: Without the question mark; None if there is none.
    """

    scheme: str
    endpoint: Endpoint
    path: str
    query: str | None


def parse_authority(text: bytes | str, default_port: int) -> Endpoint:
    """Parse ``host``, ``host:port`` or ``[v6]:port``, as in Host, CONNECT and URLs; never raises."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    match = _AUTHORITY.fullmatch(raw)
    if match is None:
        return Endpoint(_refuse_authority(raw), 0)
    port = _parse_port(match[2], default_port)
    if port is None:
        return Endpoint(refuse_host(raw, "a port that is not a number from 1 to 65535"), 0)
    return Endpoint(parse_host(match[1]), port)


def parse_url(text: bytes | str) -> Url | HostRefusal:
    """Parse an absolute URL; a refusal if it is none, or of a scheme that names no host."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    match = _URL.fullmatch(raw)
    if match is None:
        return refuse_host(raw, "not an absolute URL")
    scheme = match[1].decode("ascii").lower()
    if scheme not in DEFAULT_PORTS:
        return refuse_host(match[2], f"the scheme {scheme} is none that the gateway carries")
    query = None if match[4] is None else encode_path(match[4])
    return Url(scheme, parse_authority(match[2], DEFAULT_PORTS[scheme]), encode_path(match[3]) or "/", query)


def encode_path(raw: bytes) -> str:
    """A path or query as ASCII: other bytes percent-encoded, as browsers send them and records need them."""
    return "".join(chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in raw)


def _parse_port(digits: bytes | None, default_port: int) -> int | None:
    if not digits:  # "host:" means the default port (RFC 3986 3.2.3)
        return default_port
    significant = digits.lstrip(b"0")
    if len(significant) > 5 or not 1 <= int(significant or b"0") <= 65535:
        return None
    return int(significant)


def _refuse_authority(raw: bytes) -> HostRefusal:
    """Name the problem: the host parser's, if it has one with the whole text, else the brackets'."""
    whole = parse_host(raw)
    if isinstance(whole, HostRefusal):
        return whole
    return refuse_host(raw, "not a host with an optional port")
