"""What of a request head goes on to the destination.

``Upgrade: h2c`` is taken out instead of refusing the request: some clients (Java's) send
it with every first request and are content with HTTP/1.1. The upgrade cannot happen,
since the destination never sees the offer and an unasked 101 is refused.
"""

from __future__ import annotations

from stockade.net.endpoint import Endpoint
from stockade.net.host import HostRefusal
from stockade.protocol.http1 import RequestHead
from stockade.protocol.http1_fields import read_list
from stockade.protocol.http1_line import Form

# Fields for the next hop only (RFC 9110 7.6.1); Connection and what it lists are added per message.
_HOP_BY_HOP = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade")
)


def forward_request(
    head: RequestHead, host: Endpoint, *, to_proxy: bool, added: tuple[str, str] | None = None
) -> bytes:
    """The head as it goes on to the destination, byte for byte as it came if nothing must change.

    Args:
        host: The place that was judged; becomes the Host field if there was none.
        to_proxy: It was written to a proxy: hop-by-hop fields end here. Else only an
            offer of h2c goes, and an absolute target becomes a path.
        added: A field (lower-case name, value) that the gateway puts in; the worker's own
            field of that name, which the engine may not know for a credential, goes.
    """
    line = head.line
    is_as_meant = head.host is not None and line.form is not Form.ABSOLUTE and not head.offers_h2c
    if is_as_meant and not to_proxy and added is None:
        return head.raw
    dropped = _fields_to_drop(head, to_proxy=to_proxy)
    if added is not None:
        dropped |= {added[0].encode("ascii")}
    out = [b"%s %s HTTP/1.%d" % (line.method.encode("ascii"), line.origin_target, line.minor)]
    if head.host is None:
        out.append(b"Host: " + write_authority(host))
    for text, (name, _) in zip(head.raw[:-4].split(b"\r\n")[1:], head.fields, strict=True):
        if name not in dropped:
            out.append(text)
    if to_proxy and head.upgrade is not None:
        out.append(b"Connection: Upgrade")
        out.extend(b"Upgrade: " + value for name, value in head.fields if name == b"upgrade")
    if added is not None:
        out.append(f"{added[0]}: {added[1]}".encode("latin-1"))
    out.append(b"\r\n")
    return b"\r\n".join(out)


# A Connection field could list these too and so make the proxy cut them out of the request.
_NEVER_DROPPED = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"expect", b"authorization", b"cookie")
)


def _fields_to_drop(head: RequestHead, *, to_proxy: bool) -> frozenset[bytes]:
    if not to_proxy:
        # Upgrade goes together with what announces it, else the destination would see half an offer.
        return frozenset((b"upgrade", b"http2-settings", b"connection")) if head.offers_h2c else frozenset()
    listed = read_list([value for name, value in head.fields if name == b"connection"])
    return (_HOP_BY_HOP | listed | {b"http2-settings"}) - _NEVER_DROPPED


def write_authority(endpoint: Endpoint, default_port: int = 80) -> bytes:
    """``host`` or ``host:port``, brackets around IPv6."""
    name = "" if isinstance(endpoint.host, HostRefusal) else endpoint.host.name
    text = f"[{name}]" if ":" in name else name
    return (text if endpoint.port == default_port else f"{text}:{endpoint.port}").encode("ascii")
