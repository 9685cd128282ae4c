"""Programs and sockets: attempts that do not go to a host.

A program is judged by its name alone. Its arguments can change after the check and
never permit anything; they only name a denial that would have left the sandbox.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from msgspec import Struct

from stockade.net.address import AddressClass, judge_address
from stockade.policy.model import ExecPolicy
from stockade.vocabulary import Control, PlaceClass, Reason, Risk, Word

# Where a bare name in `exec:` is looked for (the fixed PATH of the worker's view).
PROGRAM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

_HOST_NAMESPACE = re.compile(r"--(?:net|network|pid|ipc|uts|userns|cgroupns)=host|--privileged")
_SANDBOX_OFF = re.compile(
    r"--(?:no|disable|without|skip|bypass)-(?:\w+-)*sandbox\b|--(?:\w+-)*bypass-(?:\w+-)*sandbox\b"
    r"|--dangerously-[\w-]+|--sandbox=(?:off|none|no|false|danger[\w-]*)|--yolo"
)
_SPLIT_FLAGS = frozenset({"--net", "--network", "--pid", "--ipc", "--uts", "--userns", "--cgroupns", "--sandbox"})


class SocketKind(Word):
    PATH = "path"
    ICMP = "icmp"
    VSOCK = "vsock"


class SocketCall(Struct, frozen=True):
    """How a socket attempt is called; all of them are refused."""

    reason: Reason
    risk: Risk
    control: Control
    place: PlaceClass


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
    options = list(argv[1:])
    joined = [f"{flag}={value}" for flag, value in zip(options, options[1:], strict=False) if flag in _SPLIT_FLAGS]
    return any(_HOST_NAMESPACE.match(option) or _SANDBOX_OFF.match(option) for option in options + joined)


def classify_socket(text: str) -> SocketCall:
    """Name a socket attempt: ``icmp:ADDR``, ``vsock:CID:PORT``, ``@abstract`` or a path."""
    kind, colon, rest = text.partition(":")
    if colon and kind == SocketKind.ICMP.value:
        return _classify_raw(rest)
    if colon and kind == SocketKind.VSOCK.value:
        return SocketCall(
            Reason.SOCKET_FAMILY_REFUSED, Risk.BOUNDARY_TAMPERING, Control.NAMESPACE_ISOLATION, PlaceClass.LOCAL
        )
    return SocketCall(
        Reason.CONTROL_SOCKET, Risk.BOUNDARY_TAMPERING, Control.NO_CONTROL_SOCKETS, PlaceClass.LOCAL
    )


def _classify_raw(address_text: str) -> SocketCall:
    """A raw socket carries any bytes: exfiltration, unless the address says worse."""
    risk, place = Risk.EXFILTRATION, PlaceClass.UNKNOWN
    try:
        facts = judge_address(ip_address(address_text))
    except ValueError:
        facts = None
    if facts is not None and facts.row.risk is not None:
        risk = facts.row.risk
        place = PlaceClass.METADATA if risk is Risk.METADATA_CREDENTIALS else PlaceClass.INTERNAL
        if facts.address_class is AddressClass.MULTICAST:
            place = PlaceClass.UNKNOWN
    return SocketCall(Reason.SOCKET_FAMILY_REFUSED, risk, Control.NAMESPACE_ISOLATION, place)
