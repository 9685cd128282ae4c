"""A client that follows: what a tool or a crawler does when an answer says that it should look elsewhere.

Runs inside the worker: standard library only, nothing of Stockade. Each hop is a step of the
kit, so each is told; nothing is asked before the next.
"""

import re
from urllib.parse import urljoin, urlsplit

HOPS = 6
PORTS = {"http": 80, "https": 443, "gopher": 70}
KEEPS_METHOD = ("307", "308")  # RFC 9110 15.4.8 and 15.4.9: the same method and body again


def follow(kit, url, method="GET", body=""):
    """Fetch, and go where the answer points, until one points nowhere."""
    for _ in range(HOPS):
        reply = visit(kit, url, method, body).get("reply", "")
        target = find_target(reply)
        if target is None:
            return
        if reply[9:12] not in KEEPS_METHOD:
            method, body = "GET", ""
        url = urljoin(url, target)


def visit(kit, url, method="GET", body=""):
    """One request of a plain client."""
    parts = urlsplit(url)
    port = parts.port or PORTS[parts.scheme]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if parts.scheme == "gopher":  # RFC 1436: what stands behind the item type is sent as it is
        return kit.talk(parts.hostname, port, path[2:] + "\r\n", patience=0.2)
    more = {"sni": parts.hostname} if parts.scheme == "https" else {}
    return kit.talk(parts.hostname, port, kit.get(path, parts.netloc, method, body=body), **more)


def find_target(reply):
    """Where an answer sends its reader: by status, by `Refresh`, by meta element, by script."""
    head, _, page = reply.partition("\r\n\r\n")
    if re.match(r"HTTP/1\.[01] 3", head) and (found := re.search(r"(?im)^location: *(\S+)", head)):
        return found[1]
    for pattern, text in (
        (r"(?im)^refresh: *\d+ *; *url=(\S+)", head),
        (r"(?is)<meta[^>]*http-equiv=.?refresh[^>]*url=([^\"'>\s]+)", page),
        (r"location(?:\.href)? *= *[\"']([^\"']+)", page),
    ):
        if found := re.search(pattern, text):
            return found[1]
    return None
