"""An event with parts of another one put in, so that the engine can be asked what each part does."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from msgspec.structs import replace

from stockade.lab.game.difference import DEFAULT_PORTS, take_apart
from stockade.lab.pack.scenario import Scenario

_WHOLE_LINE = "kind"


def swap(row: Scenario, other: Scenario, parts: Collection[str]) -> Scenario:
    """`row` with these parts of `other`.

    What a name resolves to goes with the host, and the usual port with the scheme. Where the kind is
    swapped, the whole line is, with its door, answers and TLS name: a part of one kind means nothing in
    another.
    """
    taken = {part for part in parts if part in ("phase", "identity", "entry", "answers", "came_from", "sni")}
    if _WHOLE_LINE in parts:
        taken |= {"entry", "attempt", "answers", "sni"}
    elif "host" in parts:
        taken.add("answers")
    new = {name: getattr(other, name) for name in taken}
    if _WHOLE_LINE not in parts:
        new["attempt"] = _put_together(row, other, parts)
    return replace(row, **new)


def _put_together(row: Scenario, other: Scenario, parts: Collection[str]) -> str:
    own, theirs = take_apart(row), take_apart(other)
    mixed = {part: (theirs if part in parts else own)[part] for part in own}
    if "scheme" in parts and all(DEFAULT_PORTS.get(one["scheme"]) == one["port"] for one in (own, theirs)):
        mixed["port"] = theirs["port"]
    if mixed == own or own["kind"] != theirs["kind"]:
        return row.attempt
    first = row.words[0]
    if first == "exec":
        return " ".join(filter(None, ("exec", shlex.quote(mixed["program"]), mixed["arguments"])))
    if first == "socket":
        return f"socket {shlex.quote(mixed['socket'])}"
    if first == "dns":
        return f"dns {shlex.quote(mixed['host'])} {mixed['type']}"
    if first in ("tcp", "udp"):
        return f"{first} {shlex.quote(mixed['host'])} {mixed['port']}"
    url = _put_url_together(mixed) if mixed["scheme"] else mixed["host"]
    return f"{mixed['method']} {shlex.quote(url)}"


def _put_url_together(parts: dict[str, str]) -> str:
    query = f"?{parts['query']}" if parts["query"] else ""
    return f"{parts['scheme']}://{parts['host']}:{parts['port']}{parts['path']}{query}"
