"""Programs, sockets and system calls: attempts that do not go to a host.

A program is judged by the file that would run, and where no run has found that out, by
the name it was typed with. Its arguments can change after the check and never permit
anything; they only name a denial that would have left the sandbox.
"""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

from stockade.decision.labels import place_of_address
from stockade.net.address import judge_address
from stockade.net.host import Host, parse_host
from stockade.policy.model import ExecPolicy
from stockade.policy.programs import is_pattern, matches_pattern, plain_spelling, spellings
from stockade.vocabulary import Control, PlaceClass, Reason, Risk, Word

_LEAVES = re.compile(
    r"--(?:net|network|pid|ipc|uts|userns|cgroupns)=host|--privileged"
    r"|--(?:no|disable|without|skip|bypass)-(?:\w+-)*sandbox\b|--(?:\w+-)*bypass-(?:\w+-)*sandbox\b"
    r"|--dangerously-[\w-]+|--sandbox=(?:off|none|no|false|danger[\w-]*)|--yolo"
)
_SPLIT_FLAGS = frozenset(
    {"--net", "--network", "--pid", "--ipc", "--uts", "--userns", "--cgroupns", "--sandbox"}
)


class SocketKind(Word):
    PATH = "path"
    ICMP = "icmp"
    VSOCK = "vsock"


class SocketCall(Struct, frozen=True):
    """How a socket attempt is called; all of them are refused."""

    reason: Reason
    control: Control
    risk: Risk = Risk.BOUNDARY_TAMPERING
    place: PlaceClass = PlaceClass.LOCAL


class RefusedCall(Struct, frozen=True):
    """A system call that the sandbox's filter refused.

    Attributes:
        name: The filter's own word for the line that refused it.
        reason: One of the words in `labels.REFUSAL_CONTROL`.
        why: Why that line exists, in a phrase.
        permit: What in the policy would permit the call, such as ``exec: {code: jit}``; None if nothing does.
        leads_out: It asks for a way off the machine (a raw socket), not for a part of the machine.
    """

    name: str
    reason: Reason
    why: str
    permit: str | None = None
    leads_out: bool = False


class ProgramList:
    """What `exec: allow` lists, by the ways to type it, so that a long list costs what a short one does.

    Names alone are compared here. Which file a name is, links followed, a run finds out.
    """

    def __init__(self, policy: ExecPolicy | None) -> None:
        entries = () if policy is None else policy.allow
        self._origins = {} if policy is None else dict(zip(entries, policy.origins, strict=False))
        self._exact = {
            spelling: entry
            for entry in reversed(entries)  # of two entries for one program the first counts
            if not is_pattern(entry)
            for spelling in spellings(entry)
        }
        self._patterns = [entry for entry in entries if is_pattern(entry)]

    def find(self, program: str) -> str | None:
        """The entry that names a program as it was typed, or None."""
        typed = plain_spelling(program)
        entry = self._exact.get(typed)
        if entry is not None or not typed:
            return entry
        return next((pattern for pattern in self._patterns if matches_pattern(pattern, typed)), None)

    def find_origin(self, entry: str) -> str | None:
        """The line of an entry; None if it is none."""
        return self._origins.get(entry)


def leaves_sandbox(argv: tuple[str, ...]) -> bool:
    """True if an option of a command would switch a sandbox off or take a namespace of the host."""
    options = argv[1:]
    joined = (f"{flag}={value}" for flag, value in pairwise(options) if flag in _SPLIT_FLAGS)
    return any(_LEAVES.match(option) for option in (*options, *joined))


def classify_socket(text: str) -> SocketCall:
    """Name a socket attempt: ``icmp:ADDR``, ``vsock:CID:PORT``, ``@abstract`` or a path."""
    kind, colon, rest = text.partition(":")
    if colon and kind == SocketKind.ICMP.value:
        return _classify_raw(rest)
    if colon and kind == SocketKind.VSOCK.value:
        return SocketCall(Reason.SOCKET_FAMILY_REFUSED, Control.NAMESPACE_ISOLATION)
    return SocketCall(Reason.CONTROL_SOCKET, Control.NO_CONTROL_SOCKETS)


def _classify_raw(address_text: str) -> SocketCall:
    """A raw socket carries any bytes: exfiltration, unless the address says worse."""
    risk, place = Risk.EXFILTRATION, PlaceClass.UNKNOWN
    host = parse_host(address_text, is_bracketed=False)
    if isinstance(host, Host) and host.address is not None:
        facts = judge_address(host.address)
        risk, place = facts.row.risk or risk, place_of_address(facts)
    return SocketCall(Reason.SOCKET_FAMILY_REFUSED, Control.NAMESPACE_ISOLATION, risk, place)
