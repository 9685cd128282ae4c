"""Reading one scenario: text and line numbers in, a `Scenario` or a list of problems out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from enum import Enum
from ipaddress import ip_address
from typing import Any

from msgspec import Struct

from stockade.decision.attempt_line import parse_attempt_line
from stockade.errors import UserError
from stockade.lab.pack.keys import ORIGIN_KEYS, SCENARIO_KEYS
from stockade.lab.pack.keys import Key as KeyName
from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.net.address import IPAddress
from stockade.net.endpoint import parse_url
from stockade.net.host import Host, parse_host
from stockade.policy.model import Finding
from stockade.policy.problems import PolicyError, nearest, shown
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict

TEXT_LIMIT = 2000
ATTEMPT_LIMIT = 16_384  # long queries are what some scenarios are about
ANSWERS_LIMIT = 64
CODES = {
    "pack-key-unknown": "a key or column that a pack does not have",
    "pack-key-twice": "a key that stands twice",
    "pack-key-missing": "a key without which a scenario or a pack is none",
    "pack-value": "a value that its key cannot have",
    "pack-attempt": "a line that is no attempt, or that cannot come by its entry",
    "pack-id-twice": "two scenarios of one id",
    "pack-near": "a near-pair that the pack does not have",
    "pack-origin": "an origin of a scenario that the pack does not have, or of an attempt that can have none",
    "pack-csv": "a CSV file that cannot be read as one",
    "pack-file": "a file that is missing, too large, outside of the pack's folder, or not readable",
    "pack-yaml": "a file whose form is not that of a pack",
}
# Doors that an attempt of the form METHOD URL or tcp can come by; the other forms have one of their own.
STREAM_DOORS = (Entry.TRANSPARENT, Entry.HTTP_PROXY, Entry.SOCKS5)


class PackError(PolicyError):
    """A pack that does not load: every problem, each with file and line. It tells them as a policy does."""


class Cell(Struct, frozen=True):
    """A value as written, and where it stands: `pack.yaml:12`."""

    text: str
    place: str


class Unreadable(Exception):  # noqa: N818  # control flow inside the loader
    """One value that cannot be read; the loader adds the place."""

    def __init__(self, message: str, better: str | None = None, code: str = "pack-value") -> None:
        super().__init__(message)
        self.message, self.better, self.code = message, better, code


class Problems:
    """What is wrong with the files of a pack, in order."""

    def __init__(self) -> None:
        self.found: list[Finding] = []

    def add(self, place: str, code: str, message: str, better: str | None = None) -> None:
        assert code in CODES, code
        self.found.append(Finding(code=code, severity="error", origin=place, message=message, better=better))


def refuse_unknown(problems: Problems, place: str, name: str, keys: tuple[KeyName, ...], what: str) -> None:
    """Note a key or column that is none, with the nearest that is one."""
    near = nearest(name, [key.name for key in keys])
    problems.add(place, "pack-key-unknown", f"{what} has no {shown(name)}", near and f"the nearest is {near}")


def read_scenario(
    cells: Mapping[str, Cell], origin: Mapping[str, Cell], place: str, problems: Problems
) -> Scenario | None:
    """One scenario of known keys; None where something was noted.

    Args:
        cells: What is written, by key; a key that is not there has its default.
        origin: The same of its origin, where the pack says it apart.
        place: Where the scenario begins.
    """
    before = len(problems.found)
    written = {**cells, **origin}
    values: dict[str, Any] = {}
    for key in (*SCENARIO_KEYS, *ORIGIN_KEYS):
        cell = written.get(key.name)
        if (cell is None or not cell.text) and key.is_required:
            problems.add(place, "pack-key-missing", f"the scenario has no {key.name}", key.doc)
            continue
        text = cell.text if cell is not None and cell.text else key.default or ""
        try:
            values[key.name] = READERS[key.kind](text)
        except Unreadable as problem:
            problems.add(
                cell.place if cell else place, problem.code, f"{key.name}: {problem.message}", problem.better
            )
    if len(problems.found) > before:
        return None
    try:
        return _make(values, _door(values))
    except Unreadable as problem:
        problems.add(cells["attempt"].place, problem.code, problem.message, problem.better)
        return None


def _make(values: Mapping[str, Any], entry: Entry) -> Scenario:
    names = ("id", "tier", "phase", "identity", "attempt", "answers", "live", "technique", "event")
    more = ("stated_reason", "cue", "why", "near", "source")
    return Scenario(
        **{name: values[name] for name in (*names, *more)},
        entry=entry,
        came_from=values["from"] or None,
        sni=values["sni"] or None,
        carries=values["carries"] or None,
        key=Key(values["verdict"], values["risk"], values["control"], values["class"]),
    )


def _door(values: Mapping[str, Any]) -> Entry:
    """The entry of an attempt, if the two fit; its origin, if it can have one.

    Raises:
        Unreadable: They do not.
    """
    natural = parse_attempt_line(shlex.split(values["attempt"])).entry
    entry: Entry = values["entry"] or natural
    fitting = STREAM_DOORS if natural is Entry.TRANSPARENT else (natural,)
    if entry not in fitting:
        words = " or ".join(door.value for door in fitting)
        raise Unreadable(f"this attempt cannot come by {entry}", f"its entry is {words}", "pack-attempt")
    if values["from"] and "://" not in values["attempt"]:
        raise Unreadable("only a request can come from an answer", "leave `from` out", "pack-origin")
    return entry


# --- values -------------------------------------------------------------------------------


def _text(text: str, limit: int = TEXT_LIMIT) -> str:
    text = re.sub(r"\s*\n\s*", " ", text.strip())  # a text over several lines is one line
    if len(text) > limit:
        raise Unreadable(f"{len(text)} characters are too many", f"at most {limit}")
    if not text.isprintable():
        raise Unreadable(f"{shown(text)} holds a character that cannot be shown", "take it out")
    return text


def _id(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", text):
        raise Unreadable(f"{shown(text)} is no id", "letters, digits, dots and hyphens, at most 32")
    return text


def _near(text: str) -> str:
    return _id(text) if text else ""


def _word(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", text):
        raise Unreadable(f"{shown(text)} is no word", "small letters, digits and hyphens")
    return text


def _tier(text: str) -> int:
    if text not in ("1", "2", "3", "4"):
        raise Unreadable(f"{shown(text)} is no tier", "1, 2, 3 or 4")
    return int(text)


def _verdict(text: str) -> Verdict:
    words = {verdict.word: verdict for verdict in Verdict}
    if text not in words:
        raise Unreadable(f"{shown(text)} is no verdict", _say_nearest(text, list(words)))
    return words[text]


def _one_of(words: type[Enum]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        known = [str(word.value) for word in words]
        if text not in known:
            raise Unreadable(f"there is no {shown(text)}", _say_nearest(text, known))
        return words(text)

    return read


def _entry(text: str) -> Entry | None:
    return _one_of(Entry)(text) if text else None


def _say_nearest(text: str, words: list[str]) -> str:
    listed = ", ".join(words)
    return f"the nearest is {nearest(text, words)}; there are {listed}"


def _addresses(text: str) -> tuple[IPAddress, ...]:
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if len(parts) > ANSWERS_LIMIT:
        raise Unreadable(f"{len(parts)} answers are too many", f"at most {ANSWERS_LIMIT}")
    try:
        return tuple(ip_address(part) for part in parts)
    except ValueError as error:
        raise Unreadable(str(error), "an address, and `;` before the next") from error


def _attempt(text: str) -> str:
    try:
        parse_attempt_line(shlex.split(_text(text, ATTEMPT_LIMIT)))
    except ValueError as error:  # of shlex: a quote that does not end
        raise Unreadable(f"{shown(text)}: {error}", "as a POSIX shell splits it", "pack-attempt") from error
    except UserError as error:
        raise Unreadable(error.message, error.hint, "pack-attempt") from error
    return text


def _url(text: str) -> str:
    if text and ("://" not in text or not hasattr(parse_url(text), "endpoint")):
        raise Unreadable(f"{shown(text)} is not an absolute URL", "such as http://shop.test/")
    return _text(text)


def _host(text: str) -> str:
    host = parse_host(text, is_bracketed=False) if text else None
    if host is not None and (not isinstance(host, Host) or host.address is not None):
        raise Unreadable(f"{shown(text)} is no name", "such as docs.test")
    return text


READERS: dict[str, Callable[[str], Any]] = {
    "id": _id,
    "tier": _tier,
    "phase": _one_of(Phase),
    "identity": _one_of(Identity),
    "entry": _entry,
    "attempt": _attempt,
    "addresses": _addresses,
    "live": _one_of(Live),
    "verdict": _verdict,
    "risk": _one_of(Risk),
    "control": _one_of(Control),
    "class": _one_of(PlaceClass),
    "word": _word,
    "text": _text,
    "near": _near,
    "url": _url,
    "host": _host,
}
