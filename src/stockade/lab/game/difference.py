"""The one-line difference of a near-pair: which parts of the line differ, and how the key changes."""

from __future__ import annotations

import re

from msgspec import Struct

from stockade.lab.pack.scenario import Scenario

_SHOWN = 48
_PARTS_TOLD = 3
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?(.*))?", re.IGNORECASE | re.DOTALL)
DEFAULT_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443"}
_PORT = re.compile(r"(.*?)(?::(\d+))?", re.DOTALL)

# How a part is called in a sentence; the order is that of the sentence.
PARTS = {
    "phase": "the phase",
    "identity": "who asks",
    "entry": "the entry",
    "kind": "what is tried",
    "method": "the method",
    "scheme": "the scheme",
    "host": "the host",
    "port": "the port",
    "path": "the path",
    "query": "the query",
    "program": "the program",
    "arguments": "the list of arguments",
    "socket": "the socket",
    "type": "the type of question",
    "answers": "what the name resolves to",
    "came_from": "where it came from",
    "sni": "the name in the TLS hello",
    "carries": "what it carries",
}

_TELLING = ("arguments", "path", "query", "host", "method", "port")
AS_WRITTEN = {"spelling": "host", "address": "host"}  # two ways to look at one part


class Part(Struct, frozen=True):
    """One part of the line that differs; `here` is the first scenario's."""

    part: str
    here: str
    there: str


def take_apart(row: Scenario) -> dict[str, str]:
    """What stands in an event before the answer, by part; empty for what is not there.

    Taken apart by shape alone: a host that the engine refuses is shown as it was written.
    """
    parts = dict.fromkeys(PARTS, "")
    parts["phase"], parts["identity"], parts["entry"] = str(row.phase), str(row.identity), str(row.entry)
    parts["answers"] = " and ".join(map(str, row.answers))
    parts["came_from"], parts["sni"] = row.came_from or "", row.sni or ""
    parts["carries"] = row.carries or ""
    first, *rest = row.words
    if first == "exec":
        parts |= {"kind": "a command", "program": rest[0], "arguments": " ".join(rest[1:])}
    elif first == "socket":
        parts |= {"kind": "a socket", "socket": rest[0]}
    elif first == "dns":
        parts |= {"kind": "a name question", "host": rest[0], "type": (*rest, "A")[1]}
    elif first in ("tcp", "udp"):
        parts |= {"kind": f"a {first} connection", "host": rest[0], "port": rest[1]}
    else:
        parts |= {"kind": "a request", "method": first, **_take_url_apart(rest[0])}
    return parts


def _take_url_apart(url: str) -> dict[str, str]:
    match = _URL.fullmatch(url)
    if match is None:
        return {"host": url}
    scheme, authority, path, query = match.groups()
    place = _PORT.fullmatch(authority)
    assert place is not None  # it takes any text
    port = place[2] or DEFAULT_PORTS.get(scheme.lower(), "443")
    return {"scheme": scheme, "host": place[1], "port": port, "path": path, "query": query or ""}


def find_differences(row: Scenario, near: Scenario) -> list[Part]:
    """The parts that differ, in the order of `PARTS`.

    Where the kind differs, the parts that only one of them has say nothing more.
    """
    here, there = take_apart(row), take_apart(near)
    differ = [Part(part, here[part], there[part]) for part in PARTS if here[part] != there[part]]
    if here["kind"] == there["kind"]:
        return differ
    both = ("phase", "identity", "kind", "answers", "came_from", "sni")
    return [one for one in differ if one.part in both or (one.here and one.there)]


def tell_difference(
    row: Scenario, near: Scenario, deciding: tuple[str, ...] = (), control: str | None = None
) -> str:
    """One readable line: what differs, and how the key changes.

    Args:
        deciding: The parts that decide, which are told first; of several, none does so alone.
        control: A part that decides the control alone.
    """
    parts = find_differences(row, near)
    if not parts:
        return f"The lines are alike; here {row.cue}, there {near.cue}. {_tell_key(row, near)}"
    chosen = [part for part in parts if part.part in deciding]
    first = [part for part in parts if part.part == "kind"]
    if chosen:
        told = _tell_deciding(chosen, _tell_decided(row, near, control))
        first = [part for part in parts if part.part == control]
        told += "".join(f"{_tell_control(part)}. " for part in first)
    elif first:
        told = f"{_begin(PARTS['kind'])} differs: {_show_both(first[0])}. "
    else:
        first = parts[:_PARTS_TOLD]
        told = f"{_begin('; '.join(map(_tell, first)))}. "
    rest = [part for part in parts if part not in chosen and part not in first]
    return f"{told}{_tell_rest(rest)}{_tell_key(row, near)}"


def _tell_deciding(chosen: list[Part], what: str) -> str:
    if len(chosen) == 1:
        return f"{_begin(PARTS[chosen[0].part])} decides{what}: {_show_both(chosen[0])}. "
    *names, last = (PARTS[part.part] for part in chosen)
    together = f"{', '.join(names)} and {last} decide{what} together"
    return f"{_begin(together)}. {_begin('; '.join(map(_tell, chosen)))}. "


def _tell_decided(row: Scenario, near: Scenario, control: str | None) -> str:
    """What of the answer is meant, where it is not all of it."""
    if row.key.verdict is not near.key.verdict:
        return " the call" if control else ""
    changes = [word for word in ("risk", "control") if getattr(row.key, word) != getattr(near.key, word)]
    return f" the {' and the '.join(changes)}" if changes else ""


def _tell_control(part: Part) -> str:
    name = "that it was named by an answer" if part.part == "came_from" else PARTS[part.part]
    return f"{_begin(name)} decides the control: {_show_both(part)}"


def _tell(part: Part) -> str:
    return f"{PARTS[part.part]}: {_show_both(part)}"


def _show_both(part: Part) -> str:
    return f"{_show(part.here)} here, {_show(part.there)} there"


def _tell_rest(parts: list[Part]) -> str:
    """What differs besides: one part with its values, the others by name."""
    if not parts:
        return ""
    shown = min(parts, key=lambda part: _TELLING.index(part.part) if part.part in _TELLING else len(_TELLING))
    others = [PARTS[part.part] for part in parts if part is not shown]
    named = f"; and {', '.join(others)}" if others else ""
    return f"Also different: {_tell(shown)}{named}. "


def _begin(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _show(text: str) -> str:
    if not text:
        return "none"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}… ({len(text)} characters)"


def _tell_key(row: Scenario, near: Scenario) -> str:
    """Which parts of the answer change with it."""
    here, there = row.key, near.key
    changes = [
        f"{word} {mine} here, {theirs} there"
        for word, mine, theirs in (
            ("call", here.verdict.shown, there.verdict.shown),
            ("risk", str(here.risk), str(there.risk)),
            ("control", str(here.control), str(there.control)),
        )
        if mine != theirs
    ]
    if not changes:
        return f"The answer stays the same: {here.verdict.shown}, {here.risk}, {here.control}."
    return f"{_begin('; '.join(changes))}."
