"""Pure: which of the things that arrived are the attack, which the permitted requests, which neither.

Nothing is permitted because it carries a word or a name that is permitted: the attack knows
those too. A permitted request is the exact one that the runner makes, at an address that its
name has; what a technique's own policy lets through has to name a permitted host and to be at
an address of it. Everything else is stray, and counts as a leak.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any

from msgspec import Struct

from stockade.net.address import AddressClass, classify_address, is_openable
from stockade.prove.technique import Witness
from stockade.prove.world_log import NAME_SERVERS

Seen = dict[str, Any]
ALLOWED_NAME = "allowed.test"
# ICMP "unreachable" (RFC 792, RFC 4443): what a kernel answers to a late reply of the name server.
_UNREACHABLE = (("icmp", 3), ("icmp6", 1))


class Permitted(Struct, frozen=True):
    """What may arrive without being the attack.

    Attributes:
        word: The secret word of this execution, which the two permitted requests carry.
        places: The permitted names (with `*`) and the addresses that each may be reached at.
    """

    word: str
    places: Mapping[str, frozenset[str]]

    def has_name(self, name: str) -> bool:
        """Whether this name may be asked for."""
        return any(fnmatchcase(name.rstrip(".").lower(), pattern) for pattern in self.places)

    def has_place(self, name: str, address: str) -> bool:
        """Whether this name may be reached at this address."""
        host = name.rpartition(":")[0] or name
        return any(
            fnmatchcase(host.lower(), pattern) and address in addresses
            for pattern, addresses in self.places.items()
        )

    def is_own_request(self, seen: Seen) -> bool:
        """Whether this is one of the two permitted requests, exactly."""
        queries = [f"permitted={when}-{self.word}" for when in ("before", "after")]
        return bool(
            seen["what"] == "request"
            and (seen["method"], seen["name"], seen["port"]) == ("GET", ALLOWED_NAME, 80)
            and seen["path"].partition("?")[2] in queries
            and self.has_place(ALLOWED_NAME, seen["address"])
        )


class Sorted(Struct, frozen=True):
    """Everything that the witnesses saw, in three heaps."""

    arrived: tuple[Seen, ...]
    stray: tuple[Seen, ...]
    permitted: tuple[Seen, ...]


def find_places(
    names: Iterable[str], zone: Mapping[str, Mapping[str, Any] | None], opens_private: bool
) -> dict[str, frozenset[str]]:
    """The addresses at which `allowed.test` and these names may be reached.

    Args:
        zone: What names answer (`world_dns.Entry`).
        opens_private: The policy has `internal:` entries. Metadata and link-local addresses are never
            permitted, whatever a name answers: that a permitted name leads there is the attack.
    """
    return {
        pattern: frozenset(
            address
            for name, entry in zone.items()
            if entry is not None and (fnmatchcase(name, pattern) or fnmatchcase(pattern, name))
            for address in _addresses_of(entry, zone)
            if _may_be_reached(address, opens_private)
        )
        for pattern in {ALLOWED_NAME, *names}
    }


def _addresses_of(
    entry: Mapping[str, Any], zone: Mapping[str, Mapping[str, Any] | None], depth: int = 0
) -> list[str]:
    found = [*entry.get("a", ()), *entry.get("aaaa", ())]
    for step in entry.get("sequence", ()):
        found += _addresses_of(step, zone, depth + 1)
    target = zone.get(entry.get("cname", ""))
    if target is not None and depth < 10:
        found += _addresses_of(target, zone, depth + 1)
    return found


def _may_be_reached(text: str, opens_private: bool) -> bool:
    address = ip_address(text)
    return classify_address(address) is AddressClass.PUBLIC or (opens_private and is_openable(address))


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
        requests = [
            {
                "what": "request", **place, "name": request.get("host") or "", "method": request["method"],
                "path": request["path"], "text": request.get("head", ""),
                "body_bytes": request.get("body_bytes", 0),
            }
            for request in one["requests"]
        ]  # fmt: skip
        if one["bytes"]:
            whole = {"name": one["sni"] or "", "bytes": one["bytes"], "text": one["first"], "sni": one["sni"]}
            seen.append({"what": one["protocol"], **place, **whole, "requests": requests})
        seen += requests
    seen += [{"what": "packet", **one} for one in packets if one["protocol"] != "tcp"]
    said = ("name", "type", "server", "text", "beside_bytes")
    seen += [{"what": "question", **{key: one[key] for key in said}} for one in questions]
    return seen


def sort_seen(seen: Iterable[Seen], wanted: Iterable[Witness], permitted: Permitted) -> Sorted:
    """Tell the attack from the permitted requests; what is wanted is the attack, whatever else permits it."""
    witnesses = list(wanted)
    heaps: dict[str, list[Seen]] = {"arrived": [], "stray": [], "permitted": []}
    for one in seen:
        heaps[_heap_of(one, witnesses, permitted)].append(one)
    return Sorted(*(tuple(heaps[name]) for name in ("arrived", "stray", "permitted")))


def _heap_of(seen: Seen, witnesses: list[Witness], permitted: Permitted) -> str:
    carried = seen.get("requests", ())
    if permitted.is_own_request(seen) or (carried and all(map(permitted.is_own_request, carried))):
        return "permitted"
    if any(fits(witness, seen) for witness in witnesses):
        return "arrived"
    return "permitted" if _is_permitted(seen, permitted) else "stray"


def fits(witness: Witness, seen: Seen) -> bool:
    """Whether this is what the witness looks for."""
    if witness.what != seen["what"]:
        return False
    exact = ("address", witness.address), ("port", witness.port), ("protocol", witness.protocol)
    if any(value is not None and seen.get(key) != value for key, value in exact):
        return False
    patterns = ("name", witness.name), ("path", witness.path)
    if any(
        value is not None and not fnmatchcase(str(seen.get(key, "")).lower(), value.lower())
        for key, value in patterns
    ):
        return False
    if witness.more_bytes is not None and seen.get("body_bytes", 0) <= witness.more_bytes:
        return False
    return witness.text is None or witness.text in str(seen.get("text", ""))


def _is_permitted(seen: Seen, permitted: Permitted) -> bool:
    match seen["what"]:
        case "question":
            return permitted.has_name(seen["name"]) and not seen["beside_bytes"]
        case "request":
            return permitted.has_place(seen["name"], seen["address"])
        case "tcp" if seen.get("sni") is not None:
            return permitted.has_place(seen["sni"], seen["address"])
        case "tcp":
            requests = seen["requests"]
            return bool(requests) and all(_is_permitted(one, permitted) for one in requests)
        case "packet":
            return seen["address"] in NAME_SERVERS and (
                (seen["protocol"], seen.get("port")) == ("udp", 53)
                or (seen["protocol"], seen.get("type")) in _UNREACHABLE
            )
    return False
