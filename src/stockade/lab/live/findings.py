"""Pure: from the records of a run and the notes of the world to what is said of a try."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stockade.lab.live.plan import Step
from stockade.lab.live.result import Order
from stockade.prove.world_log import NAME_SERVERS

Record = dict[str, Any]
SHOWN_RECORD = (
    "seq", "id", "time", "entry", "protocol", "verdict", "risk", "control", "class", "reason", "rule", "why",
    "name", "address", "port", "method", "path", "raw", "sni", "host", "query_type", "argv", "program",
    "file", "call", "layer", "phase", "identity",
)  # fmt: skip
_NOT_NETWORK = ("dns", "exec", "socket")
# ICMP "unreachable" (RFC 792, RFC 4443): what a kernel answers to a late reply of the name server.
_UNREACHABLE = (("icmp", 3), ("icmp6", 1))


def find_deciding(records: Iterable[Record], step: Step) -> Record | None:
    """The record of the attempt itself, among those that came after the start.

    A name question comes before a connection, a page before the address that it names, an attempt with one
    kind of socket before the next: the last one counts. A program starts others: the first one that
    was called as the attempt says counts.
    """
    attempts = [one for one in records if one["kind"] == "attempt"]
    if step["do"] == "exec":
        called = [one for one in attempts if one["entry"] == "exec" and _calls(one, step["argv"])]
        return called[0] if called else None
    if step["do"] == "dns":
        asked = [one for one in attempts if one["entry"] == "dns"]
    elif step["do"] in ("unix", "icmp", "vsock"):
        asked = [one for one in attempts if one["entry"] == "socket"]
    else:
        asked = [one for one in attempts if one["entry"] not in _NOT_NETWORK]
    return asked[-1] if asked else None


def _calls(record: Record, argv: Sequence[str]) -> bool:
    said = record.get("argv") or [""]
    return bool(said[0] == argv[0] and len(said) == len(argv))


def shorten(record: Record) -> Record:
    """The record as a learner reads it."""
    return {key: record[key] for key in SHOWN_RECORD if key in record}


def compare(order: Order, record: Record) -> dict[str, bool | None]:
    """Part by part, whether the record says what the key says."""
    key = order.key
    control = record["control"] == key.control.value if is_control_told(order) else None
    return {
        "verdict": record["verdict"] == key.verdict.word,
        "risk": record["risk"] == key.risk.value,
        "control": control,
        "class": record["class"] == key.place.value,
    }


def explain_record(record: Record) -> str:
    """For a refused system call: why the record says something else than the engine says of the line."""
    if record["entry"] != "socket" or record["verdict"] != "deny" or not record.get("call"):
        return ""
    opened = (
        " What the record says of permitting it is about the call, for all Unix sockets at once;"
        " this socket the engine refuses whatever a policy says."
        if record["rule"] == "filter:unix-sockets"
        else ""
    )
    return (
        "The kernel refuses the call that makes a socket of this kind before the program can say which one it"
        " wants. So this record speaks of the call, and the engine's call of the line speaks of the socket."
        f" Both are the same denial.{opened}"
    )


def is_control_told(order: Order) -> bool:
    """A live try shows how the attempt came about, and so its control.

    Two ways cannot be shown: an answer inside a tunnel cannot be read, so nobody sees that it named the next
    hop; and for techniques by origin somebody has to say the origin.
    """
    if order.technique == "redirect":
        return order.came_from is not None and order.came_from.startswith("http://")
    return order.technique != "shared-address" or order.sni is not None


def list_arrived(
    arrivals: Iterable[Record], packets: Iterable[Record], came_from: Step | None
) -> list[Record]:
    """What reached the world, but for name questions and the page that the attempt came from.

    Connections count from their first packet on: for a refusal nothing at all may arrive.
    """
    taken = [one for one in arrivals if not _is_page(one, came_from)]
    places = {(one["protocol"], one["address"], one["port"]) for one in arrivals}
    found = [_describe_arrival(one) for one in taken]
    return found + [
        {"what": "packet", "protocol": one["protocol"], "address": one["address"],
         "port": one.get("port") or 0, "name": "", "request": "", "bytes": one.get("bytes") or 0}
        for one in packets
        if (one["protocol"], one["address"], one.get("port")) not in places
        and (one["protocol"], one.get("type")) not in _UNREACHABLE
        and not (one.get("port") == 53 and one["address"] in NAME_SERVERS)
    ]  # fmt: skip


def _is_page(arrival: Record, came_from: Step | None) -> bool:
    if came_from is None or not arrival["requests"]:
        return False
    wanted = came_from["send"].split(" ")[1]
    return all(
        request["path"] == wanted and request["host"].partition(":")[0] == came_from["host"]
        for request in arrival["requests"]
    )


def _describe_arrival(arrival: Record) -> Record:
    requests = arrival["requests"]
    first = requests[0] if requests else {}
    return {
        "what": "connection" if arrival["protocol"] == "tcp" else "datagram",
        "protocol": "tls" if arrival["tls"] else arrival["protocol"],
        "address": arrival["address"],
        "port": arrival["port"],
        "name": arrival["sni"] or first.get("host") or "",
        "request": f"{first['method']} {first['path']}" if first else "",
        "bytes": arrival["bytes"],
    }


def find_leaks(
    is_denied: bool, arrived: Sequence[Record], foreign: Iterable[str], has_run: bool
) -> list[str]:
    """What should not have happened.

    Args:
        is_denied: The ledger says that the attempt was refused.
        foreign: Names that were asked for outside, and that the policy lets nobody ask for.
        has_run: A program of the attempt ran.
    """
    leaks = [f"the name {name} was asked for outside" for name in foreign]
    if is_denied:
        leaks += [f"a {one['what']} arrived at {one['address']} port {one['port']}" for one in arrived]
        if has_run:
            leaks.append("the program ran")
    return leaks


def describe_closing(records: Sequence[Record]) -> Record:
    """What the ledger's last record says, and whether it says that nothing is missing."""
    last = records[-1] if records else {}
    if last.get("kind") != "run.closed":
        return {"complete": False}
    return {"complete": last.get("complete") is True} | {
        key: value for key, value in last.items() if key not in ("kind", "run", "id", "mono_ns", "complete")
    }
