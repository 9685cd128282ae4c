"""Pure: which of the things that arrived are the attack, which the permitted requests, which neither."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from stockade.prove.technique import Witness
from stockade.prove.world_log import NAME_SERVERS

Seen = dict[str, Any]
# What the gateway asks upstream for the permitted request, and nothing else may be asked.
PERMITTED_NAMES = frozenset({"allowed.test"})


class Sorted(Struct, frozen=True):
    """Everything that the witnesses saw, in three heaps."""

    arrived: tuple[Seen, ...]
    stray: tuple[Seen, ...]
    permitted: tuple[Seen, ...]


def list_seen(arrivals: Iterable[Seen], packets: Iterable[Seen], questions: Iterable[Seen]) -> list[Seen]:
    """The world's notes as one list of small values; what brought no byte is no arrival.

    Args:
        arrivals: Connections and datagrams with their requests.
        packets: What crossed the link, listeners or not; a SYN carries nothing, so only others count here.
        questions: What reached the name server.
    """
    seen: list[Seen] = []
    for one in arrivals:
        place = {key: one[key] for key in ("address", "port")}
        if one["bytes"]:
            seen.append(
                {
                    "what": one["protocol"],
                    **place,
                    "bytes": one["bytes"],
                    "text": one["first"],
                    "sni": one["sni"],
                    "name": one["sni"] or "",
                }
            )
        for request in one["requests"]:
            host = request.get("host") or ""
            seen.append(
                {
                    "what": "request", **place, "name": host, "method": request["method"],
                    "path": request["path"], "text": request.get("head", ""),
                }
            )  # fmt: skip
    seen += [{"what": "packet", **one} for one in packets if one["protocol"] != "tcp"]
    seen += [
        {key: one[key] for key in ("name", "type", "server", "text")} | {"what": "question"}
        for one in questions
    ]
    return seen


def sort_seen(
    seen: Iterable[Seen], wanted: Iterable[Witness], word: str, names: Iterable[str] = ()
) -> Sorted:
    """Tell the attack from the permitted requests.

    Args:
        wanted: What counts as the attack.
        word: The secret word of this execution: the permitted requests carry it.
        names: Names besides `allowed.test` that the technique's own policy lets be asked for and reached;
            what arrives there is stray only if the attack says so.
    """
    witnesses, permitted_names = list(wanted), PERMITTED_NAMES | set(names)
    arrived, stray, permitted = [], [], []
    for one in seen:
        if any(fits(witness, one) for witness in witnesses):
            arrived.append(one)
        elif _is_permitted(one, word, permitted_names):
            permitted.append(one)
        else:
            stray.append(one)
    return Sorted(tuple(arrived), tuple(stray), tuple(permitted))


def fits(witness: Witness, seen: Seen) -> bool:
    """Whether this is what the witness looks for."""
    if witness.what != seen["what"]:
        return False
    exact = ("address", witness.address), ("port", witness.port), ("protocol", witness.protocol)
    if any(value is not None and seen.get(key) != value for key, value in exact):
        return False
    patterns = ("name", witness.name), ("path", witness.path)
    if any(
        value is not None and not fnmatchcase(str(seen.get(key, "")).lower(), value)
        for key, value in patterns
    ):
        return False
    return witness.text is None or witness.text in str(seen.get("text", ""))


def _is_permitted(seen: Seen, word: str, names: frozenset[str] | set[str]) -> bool:
    match seen["what"]:
        case "question":
            return seen["name"].rstrip(".").lower() in names
        case "request":
            return seen["name"].partition(":")[0] in names
        case "tcp" | "udp":
            return word in seen["text"] or seen.get("sni") in names or _host_of(seen["text"]) in names
        case "packet":
            is_to_resolver = seen["port"] == 53 and seen["address"] in NAME_SERVERS
            return bool(seen["protocol"] == "udp" and is_to_resolver)
    return False


def _host_of(head: str) -> str:
    """The host that a plain request names; empty where it is none."""
    lines = [line for line in head.split("\r\n") if line.lower().startswith("host:")]
    return lines[0].partition(":")[2].strip().partition(":")[0] if len(lines) == 1 else ""
