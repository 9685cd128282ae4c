"""Programs, sockets and system calls: attempts that do not go to a host.

A program is judged by its name alone. Its arguments can change after the check and
never permit anything; they only name a denial that would have left the sandbox.
"""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

from stockade.decision.labels import place_of_address
from stockade.net.address import judge_address
from stockade.net.host import Host, parse_host
from stockade.policy.model import ExecPolicy
from stockade.vocabulary import Control, PlaceClass, Reason, Risk, Word

# Where a bare name in `exec:` is looked for (the fixed PATH of the worker's view).
PROGRAM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

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
    """

    name: str
    reason: Reason
    why: str
    permit: str | None = None


def is_listed_program(policy: ExecPolicy | None, program: str) -> bool:
    """Tell whether `exec:` lists a program, given as it was named when it was started."""
    if policy is None:
        return False
    if policy.mode == "any":
        return True
    return any(_names_same_program(entry, program) for entry in policy.allow)


def _names_same_program(entry: str, program: str) -> bool:
    if entry == program:
        return True
    if "/" in entry:
        return _is_in_program_folder(entry) and program == entry.rpartition("/")[2]
    return _is_in_program_folder(program) and entry == program.rpartition("/")[2]


def _is_in_program_folder(path: str) -> bool:
    return path.rpartition("/")[0] in PROGRAM_FOLDERS


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
