"""What attacks are made of: steps for the probe, answers, and small policies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Step = dict[str, Any]


@dataclass(frozen=True)
class Tried:
    """What came of the steps inside: one answer each, and the run around them (None in the open)."""

    answers: list[dict[str, Any]]
    run: Any = None

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.answers[number]


ENTRIES = ("transparent", "http-proxy", "socks5")


def ok(answer: dict[str, Any]) -> bool:
    """Whether a server of the world answered 200."""
    return " 200 " in answer.get("reply", "").split("\r\n")[0]


def get(host: str, port: int = 80, path: str = "/", entry: str = "transparent", **more: Any) -> Step:
    """A plain GET as a client of that entry sends it; `host_header` and `target` may lie."""
    header = more.pop("host_header", host if port == 80 else f"{host}:{port}")
    through_proxy = entry == "http-proxy"
    own = f"http://{_bracketed(host)}{'' if port == 80 else f':{port}'}{path}"
    target = more.pop("target", own if through_proxy else path)
    request = f"GET {target} HTTP/1.1\r\nHost: {_bracketed(header)}\r\nConnection: close\r\n\r\n"
    return {
        "do": "talk",
        "host": host,
        "port": port,
        "entry": entry,
        "tunnel": False,
        "send": request,
        **more,
    }


def get_tls(host: str, sni: str | None = None, entry: str = "transparent", **more: Any) -> Step:
    """A GET over TLS; `sni` and `host_header` may lie. `sni=""` sends none."""
    header = more.pop("host_header", host)
    request = f"GET {more.pop('path', '/')} HTTP/1.1\r\nHost: {header}\r\nConnection: close\r\n\r\n"
    name = host if sni is None else sni or None
    return {"do": "talk", "host": host, "port": 443, "entry": entry, "sni": name, "send": request, **more}


def allow(*names: str, ports: str = "[80, 443]", level: str = "allow") -> str:
    """Policy text that lets these names through on HTTP and TLS."""
    return "rules:\n" + "".join(f"  - {level}: {json.dumps(name)}\n    ports: {ports}\n" for name in names)


def _bracketed(host: str) -> str:
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
