"""Proof, by looking, that this process cannot send a packet off the machine.

The variable that the range sets is only where to look. What counts: the interfaces and
routes of our own network namespace, and that the one link which leaves it ends in a
namespace which has no other link either. Everything that attacks asks here first.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from typing import Any

import msgspec

from stockade.errors import ContainmentError

SEALED_VARIABLE = "STOCKADE_SEALED"
_HINT = "run `make test`, or put `tools/sealed` before the command"


class Link(msgspec.Struct, frozen=True):
    """One network interface: its number, and for a veth the number of its other end."""

    name: str
    index: int
    peer_index: int | None
    is_up: bool
    is_loopback: bool

    def to_json(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__struct_fields__}


class SealedProof(msgspec.Struct, frozen=True):
    """What was seen: the device that leads to the world, or `None` with loopback alone."""

    device: str | None
    control_socket: str | None


def probe_links() -> list[Link]:
    """Read the interfaces of this network namespace."""
    return [
        Link(
            name=entry["ifname"],
            index=entry["ifindex"],
            peer_index=entry.get("link_index"),
            is_up="UP" in entry["flags"],
            is_loopback="LOOPBACK" in entry["flags"],
        )
        for entry in _ip_json("-d", "link", "show")
    ]


def probe_route_devices() -> set[str]:
    """Read the names of all devices that any route of any table leads to."""
    routes = _ip_json("-4", "route", "show", "table", "all") + _ip_json("-6", "route", "show", "table", "all")
    return {entry["dev"] for entry in routes if "dev" in entry}


def sealed_proof() -> SealedProof:
    """Say how this process is sealed, or raise.

    Interfaces that are down (kernels with built-in tunnel drivers put such into each new
    namespace) lead nowhere and are let be.

    Raises:
        ContainmentError: There is a way out, or it cannot be shown that there is none.
    """
    outward = [link for link in probe_links() if link.is_up and not link.is_loopback]
    loopbacks = {link.name for link in probe_links() if link.is_loopback}
    if strangers := probe_route_devices() - loopbacks - {link.name for link in outward}:
        raise _unsealed(f"routes lead to {', '.join(sorted(strangers))}")
    if not outward:
        return SealedProof(device=None, control_socket=None)
    if len(outward) > 1:
        raise _unsealed(f"there are several links: {', '.join(link.name for link in outward)}")
    control = os.environ.get(SEALED_VARIABLE)
    if not control:
        raise _unsealed(f"{outward[0].name} is up and {SEALED_VARIABLE} is not set")
    _require_world_at_the_end(outward[0], control)
    return SealedProof(device=outward[0].name, control_socket=control)


def _require_world_at_the_end(link: Link, control: str) -> None:
    """The world must hold the other end of our link, ours of its, and no other link at all."""
    try:
        answer = ask(control, {"do": "links"})
    except (OSError, ValueError) as problem:
        raise _unsealed(f"the world does not answer at {control}: {problem}") from problem
    outward = [entry for entry in answer if entry["is_up"] and not entry["is_loopback"]]
    if [(entry["index"], entry["peer_index"]) for entry in outward] != [(link.peer_index, link.index)]:
        raise _unsealed(f"the other end of {link.name} is not the world's only link")


def ask(control: str, order: dict[str, Any]) -> Any:
    """Send one order to the world's control socket and return its answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(control)
        connection.sendall(json.dumps(order).encode() + b"\n")
        with connection.makefile("rb") as stream:
            return json.loads(stream.readline())


def _unsealed(problem: str) -> ContainmentError:
    return ContainmentError("not-sealed", f"this process is not sealed off the network: {problem}", _HINT)


def _ip_json(*arguments: str) -> list[dict[str, Any]]:
    try:
        done = subprocess.run(["ip", "-j", *arguments], capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as problem:
        raise _unsealed(f"`ip {' '.join(arguments)}` failed: {problem}") from problem
    parsed: list[dict[str, Any]] = json.loads(done.stdout or b"[]")
    return parsed
