"""Pure: a scenario's attempt line to the steps that the worker shall do.

The line says what is tried; how a client does it (which bytes, in which order, by which door) is
worked out here, outside of the worker, so that what runs inside stays a pair of hands.
Odd spellings go out as they are written: nothing of ours normalizes them on the way.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from stockade.errors import UserError
from stockade.lab.pack.scenario import Scenario
from stockade.vocabulary import Entry

Step = dict[str, Any]

DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
QUESTION_TYPES = {
    "A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
    "NAPTR": 35, "SVCB": 64, "HTTPS": 65, "ANY": 255, "CAA": 257,
}  # fmt: skip
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_TLS_PORTS = frozenset({443, 853, 8443, 6443, 10250})
_BODY = '{"from": "the worker of a live try", "text": "' + "some bytes of an ordinary size " * 8 + '"}'
_URL = re.compile(r"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_WEB_SOCKET = (
    "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: c3RvY2thZGUgbGl2ZSB0cnk=",
)  # fmt: skip
# A client's request for the time: version 3, mode 3 (RFC 5905 7.3), else zeros.
_TIME_REQUEST = "\x1b" + "\0" * 47
_VSOCK = 40


def plan_steps(scenario: Scenario) -> list[Step]:
    """The steps of one try, in order; the last one is the attempt itself."""
    first, *rest = scenario.words
    if first in _PLANS:
        return [_PLANS[first](scenario, rest)]
    before = [] if scenario.came_from is None else [_request("GET", scenario.came_from, Entry.TRANSPARENT)]
    return [*before, _request(first.upper(), rest[0], scenario.entry, scenario.sni)]


def _request(method: str, url: str, entry: Entry, sni: str | None = None) -> Step:
    found = _URL.fullmatch(url)
    if found is None:
        raise UserError("attempt-unclear", f"{url[:80]} is not an absolute URL")
    scheme, authority, rest = found["scheme"].lower(), found["authority"], found["rest"]
    host, port = split_authority(authority, DEFAULT_PORTS.get(scheme, 80))
    step: Step = {"do": "request", "entry": entry.value, "host": _as_sent(host), "port": port}
    is_tls = scheme in ("https", "wss")
    if is_tls:
        step["sni"] = sni or _name_for_tls(host)
    if entry is Entry.HTTP_PROXY:
        step["tunnel"] = is_tls
        step["authority"] = _as_sent(authority if _has_port(authority) else f"{authority}:{port}")
    if entry is Entry.SOCKS5:
        step["host"], step["as_name"] = _as_sent(unquote(host)), True
    target = (rest.partition("#")[0] if rest.startswith("/") else "/" + rest.partition("#")[0]) or "/"
    is_absolute = entry is Entry.HTTP_PROXY and not is_tls
    step["send"] = _head(method, url if is_absolute else target, authority, scheme in ("ws", "wss"))
    return step


def _head(method: str, target: str, authority: str, is_web_socket: bool) -> str:
    body = _BODY if method in _WITH_BODY else ""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority.rpartition('@')[2]}", "User-Agent: executor/1"]
    lines += _WEB_SOCKET if is_web_socket else ("Connection: close",)
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return _as_sent("\r\n".join([*lines, "", body]))


def split_authority(authority: str, default: int) -> tuple[str, int]:
    """Host and port as written: no decoding, no folding. An IPv6 address loses its brackets."""
    if authority.startswith("[") and "]" in authority:
        host, _, after = authority[1:].partition("]")
        return host, int(after[1:]) if after[1:].isdecimal() else default
    host, colon, port = authority.rpartition(":")
    return (host, int(port)) if colon and port.isdecimal() else (authority, default)


def _has_port(authority: str) -> bool:
    return split_authority(authority, -1)[1] != -1


def _name_for_tls(host: str) -> str | None:
    """What a client puts into its hello: never an address (RFC 6066 3), and only what can stand there."""
    is_address = ":" in host or host.replace(".", "").isdecimal()
    return None if is_address or not re.fullmatch(r"[A-Za-z0-9.-]+", host) else host


def _as_sent(text: str) -> str:
    """UTF-8 bytes, each as one character: what the probe sends is latin-1."""
    return text.encode().decode("latin-1")


def _tcp(scenario: Scenario, rest: list[str]) -> Step:
    host, port = rest[0], int(rest[1])
    step: Step = {"do": "request", "entry": scenario.entry.value, "host": host, "port": port}
    if port in _TLS_PORTS:
        return {**step, "sni": scenario.sni or _name_for_tls(host), "send": "hello from the worker\r\n"}
    return {**step, "send": "hello from the worker\r\n"}


def _udp(scenario: Scenario, rest: list[str]) -> Step:
    port = int(rest[1])
    data = _TIME_REQUEST if port == 123 else "datagram from the worker"
    return {"do": "udp", "host": rest[0], "port": port, "data": data}


def _dns(scenario: Scenario, rest: list[str]) -> Step:
    kind = rest[1].upper() if len(rest) > 1 else "A"
    given = re.fullmatch(r"TYPE(\d{1,5})", kind)  # RFC 3597 5
    number = int(given[1]) if given else QUESTION_TYPES.get(kind)
    if number is None or number > 0xFFFF:
        raise UserError("attempt-unclear", f"there is no question of type {kind[:20]}", "write TYPE65 for 65")
    return {"do": "dns", "name": rest[0], "type": number, "kind": kind}


def _exec(scenario: Scenario, rest: list[str]) -> Step:
    return {"do": "exec", "argv": rest}


def _socket(scenario: Scenario, rest: list[str]) -> Step:
    kind, _, value = rest[0].partition(":")
    if kind == "icmp" and value:
        return {"do": "icmp", "host": value}
    if kind == "vsock" and value:
        context, _, port = value.partition(":")
        return {"do": "vsock", "family": _VSOCK, "context": int(context), "port": int(port or 0)}
    return {"do": "unix", "path": rest[0]}


_PLANS = {"tcp": _tcp, "udp": _udp, "dns": _dns, "exec": _exec, "socket": _socket}
