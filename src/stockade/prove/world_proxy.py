"""Proxies without a policy: what stands in the open where a room has its own entries.

An attack at the proxy entry needs a control that sends the same bytes to a proxy that refuses
nothing. These two (HTTP with CONNECT and absolute form, SOCKS5) answer at the same address and
ports as a room's. They read a host as the most generous client does: up to the first NUL,
behind a user name, with percent escapes, full-width characters, a final dot, cut at 253
characters. The connection to them is not noted, what they dial is.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import unicodedata
from contextlib import suppress
from typing import BinaryIO
from urllib.parse import unquote

PROXY_ADDRESS = "198.18.0.1"
HTTP_PROXY_PORT = 3128
SOCKS_PORT = 1080
_DIAL_TIMEOUT_S = 2.0
_UDP_ASSOCIATE = 3
_NAME_LIMIT = 253  # RFC 1035 2.3.4, without the length bytes: what a buffer for names holds


def read_authority(text: bytes, default_port: int) -> tuple[str, int]:
    """Host and port as the WHATWG URL parser would find them, abridged."""
    authority = re.split(r"[/\\?#]", text.split(b"\0")[0].decode("utf-8", "replace"))[0]
    place = authority.rpartition("@")[2]
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit():
        host, port = place, str(default_port)
    return read_host(host), int(port)


def read_host(text: str) -> str:
    """A host's plain form, for `getaddrinfo`, which reads odd numbers by itself."""
    host = unicodedata.normalize("NFKC", unquote(text)).replace("。", ".")
    return host.strip("[]")[:_NAME_LIMIT].rstrip(".")


def serve_http_proxy(connection: socket.socket) -> None:
    """One CONNECT, or one absolute-form request and whatever follows it to the same place."""
    stream = connection.makefile("rb")
    head = b""
    while (line := stream.readline(65536)).strip():
        head += line
    head += line
    method, _, rest = head.partition(b" ")
    target = rest.split(b" ")[0]
    if method == b"CONNECT":
        host, port = read_authority(target, 443)
        with _dial(host, port) as upstream:
            connection.sendall(b"HTTP/1.1 200 Range\r\n\r\n")
            _pump_both(connection, stream, upstream)
        return
    host, port = read_authority(target.partition(b"://")[2], 80)
    with _dial(host, port) as upstream:
        upstream.sendall(head)
        _pump_both(connection, stream, upstream)


def serve_socks(connection: socket.socket) -> None:
    """RFC 1928: no authentication; CONNECT and UDP ASSOCIATE."""
    stream = connection.makefile("rb")
    stream.read(stream.read(2)[1])
    connection.sendall(b"\5\0")
    _, command, _, kind = stream.read(4)
    if command == _UDP_ASSOCIATE:
        _relay_datagrams(connection)
        return
    if kind == 3:
        host = read_host(stream.read(stream.read(1)[0]).split(b"\0")[0].decode("utf-8", "replace"))
    else:
        family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
        host = socket.inet_ntop(family, stream.read(size))
    (port,) = struct.unpack("!H", stream.read(2))
    with _dial(host, port) as upstream:
        connection.sendall(b"\5\0\0\1" + bytes(6))
        _pump_both(connection, stream, upstream)


def _relay_datagrams(connection: socket.socket) -> None:
    """Pass datagrams for IPv4 addresses on, for as long as the client keeps its connection."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as relay:
        relay.bind(("", 0))
        port = relay.getsockname()[1]
        threading.Thread(target=_pass_on, args=(relay,), daemon=True).start()
        connection.sendall(b"\5\0\0\1" + socket.inet_aton(PROXY_ADDRESS) + struct.pack("!H", port))
        connection.recv(1)


def _pass_on(relay: socket.socket) -> None:
    with suppress(OSError):
        while data := relay.recv(65535):  # RFC 1928 7: two bytes, fragment, kind, address, port, data
            relay.sendto(data[10:], (socket.inet_ntoa(data[4:8]), struct.unpack("!H", data[8:10])[0]))


def _dial(host: str, port: int) -> socket.socket:
    upstream = socket.create_connection((host, port), _DIAL_TIMEOUT_S)
    upstream.settimeout(None)
    return upstream


def _pump_both(connection: socket.socket, stream: BinaryIO, upstream: socket.socket) -> None:
    back = threading.Thread(target=_pump, args=(upstream.makefile("rb", 0), connection), daemon=True)
    back.start()
    _pump(stream, upstream)
    back.join()


def _pump(source: BinaryIO, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.read1(65536) if hasattr(source, "read1") else source.read(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
