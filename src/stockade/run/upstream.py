"""The operator's upstream proxy, from ``STOCKADE_UPSTREAM_PROXY``."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from stockade.decision.request import UpstreamProxy
from stockade.errors import HostError, UserError

VARIABLE = "STOCKADE_UPSTREAM_PROXY"


def probe_upstream(environment: Mapping[str, str], exempt: Iterable[str]) -> UpstreamProxy | None:
    """Read the variable and look the proxy up; None if it is not set.

    Args:
        exempt: Names that the operator resolved by hand, which are reached directly.

    Raises:
        UserError: Not ``http://[USER:PASSWORD@]HOST:PORT``.
        HostError: The proxy's name cannot be resolved.
    """
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme != "http" or not url.hostname or port is None or url.path.strip("/") or url.query:
        raise UserError(
            "bad-upstream-proxy",
            f"{VARIABLE} is not http://[USER:PASSWORD@]HOST:PORT",
            "for example http://proxy.corp.test:3128; TLS to the proxy itself is not supported",
        )
    try:
        found = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise HostError("upstream-proxy-unknown", f"{VARIABLE}: {url.hostname}: {error}") from error
    authorization = None
    if url.username is not None:
        from base64 import b64encode  # few runs have a proxy, and fewer an account there

        secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
        authorization = f"Basic {b64encode(secret.encode()).decode()}"
    address = ip_address(str(found[0][4][0]).partition("%")[0])
    return UpstreamProxy(address, port, f"{url.hostname}:{port}", authorization, frozenset(exempt))
