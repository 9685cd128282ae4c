"""The supervisor's end of the conversation with the stage (stage.py has the other).

A stream socket; every message is four bytes of length and a text, except the signals
that go in after the order, which are one byte each. The stage is ours, but it lives
beside the worker, so what it says is parsed with limits.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket

from msgspec import Struct

from stockade.errors import ContainmentError, HostError

MESSAGE_LIMIT_BYTES = 1 << 16
NAMESPACES = ("user", "net", "pid", "mnt", "ipc", "uts", "cgroup")


class StageFacts(Struct, frozen=True):
    """What the stage saw of itself when it was ready: namespaces by inode, lines of its status."""

    namespaces: dict[str, int]
    status: dict[str, str]


def parse_facts(text: str, said: str) -> StageFacts:
    """Parse the message ``ready`` or ``sealed``: the word, and what the stage then saw of itself.

    Raises:
        ContainmentError: It is something else.
    """
    first, *lines = text.split("\n")
    if first != said:
        raise ContainmentError("stage-failed", f"the stage said {first[:80]!r} instead of {said}")
    namespaces, status = {}, {}
    for line in lines:
        name, _, value = line.partition(" ")
        if name.startswith("ns-") and value.isdigit():
            namespaces[name[3:]] = int(value)
        elif name.endswith(":"):
            status[name[:-1]] = value.strip()
        elif name == "mdwe":
            status[name] = value
    return StageFacts(namespaces, status)


def explain_seal_failure(words: list[str], *, has_eye: bool) -> HostError:
    """Name the layer of ``seal-failed STEP ERRNO`` and what would help."""
    from stockade.sandbox.seal_remedies import explain_step

    return explain_step(words[1], int(words[2]), has_eye=has_eye)


def verify_stage(facts: StageFacts, *, outside: dict[str, int], has_room: bool) -> None:
    """Check that the sandbox is one: bwrap only *tries* some of this if asked wrongly (boundary.md F9).

    Raises:
        ContainmentError: Names the first thing that is not as promised.
    """
    for name in NAMESPACES:
        if name == "net" and not has_room:
            continue
        if facts.namespaces.get(name, outside[name]) == outside[name]:
            raise ContainmentError(
                "not-contained", f"the worker would share the {name} namespace of the host"
            )
    for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(facts.status.get(name, "1"), 16) != 0:
            raise ContainmentError(
                "not-contained", f"the worker would hold capabilities: {name} is not empty"
            )
    if facts.status.get("NoNewPrivs") != "1":
        raise ContainmentError("not-contained", "the worker could gain privileges: NoNewPrivs is not set")


def compose_seal(
    *, forbids_new_code: bool, ruleset: bytes, program: bytes, flags: int, rules: list[tuple[int, str]]
) -> bytes:
    """The order to seal; an empty `ruleset` or `program` leaves that layer out."""
    fields = [
        b"seal",
        b"%d" % forbids_new_code,
        ruleset.hex().encode(),
        program.hex().encode(),
        b"%d" % flags,
    ]
    fields += [b"%d %s" % (rights, os.fsencode(path)) for rights, path in rules]
    return b"\0".join(fields)


def verify_sealed(facts: StageFacts, before: StageFacts, *, has_filter: bool, has_eye: bool) -> None:
    """Check what the stage says of itself after the seal.

    Args:
        before: What it said when it was ready. In a container it may have been under a filter
            already, so filters are counted (Linux 5.9).

    Raises:
        ContainmentError: A layer that was ordered is not there.
    """
    counts = [int(each.status.get("Seccomp_filters", "0")) for each in (before, facts)]
    is_counted = "Seccomp_filters" in facts.status
    if has_filter and (facts.status.get("Seccomp") != "2" or (is_counted and counts[1] <= counts[0])):
        raise ContainmentError("not-contained", "the worker would run without a system-call filter")
    if not has_eye:
        raise ContainmentError("seal-failed", "the stage handed no descriptor out for the eye")


def probe_own_namespaces() -> dict[str, int]:
    return {name: os.stat(f"/proc/self/ns/{name}").st_ino for name in NAMESPACES}


def compose_order(
    cwd: str, program: str, streams: str, limits: str, argv: tuple[str, ...], environment: dict[str, str]
) -> bytes:
    """The one order. `streams` says where each goes: ``t`` or a descriptor's index."""
    fields = ["go", cwd, program or argv[0], streams, limits, str(len(argv)), *argv]
    fields += [f"{name}={value}" for name, value in environment.items()]
    return b"\0".join(os.fsencode(field) for field in fields)


class Lifeline:
    """One end of a socket pair; closing it, or dying, ends the sandbox."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._buffer = b""

    def fileno(self) -> int:
        return self.channel.fileno()

    def send_order(self, order: bytes, fds: list[int]) -> None:
        frame = len(order).to_bytes(4, "big") + order
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.channel.setblocking(True)
        sent = self.channel.sendmsg([frame], rights)
        if sent < len(frame):  # not with nothing: the command may have ended by now, and that would be EPIPE
            self.channel.sendall(frame[sent:])
        self.channel.setblocking(False)

    def send_signal(self, signum: int) -> None:
        """Pass a signal on to the worker's process group; lost if the worker has just ended."""
        # It may have ended, or be so far behind that one more signal changes nothing.
        with contextlib.suppress(OSError):
            self.channel.send(bytes([signum]))

    def receive(self) -> tuple[list[str], list[int], bool]:
        """What has arrived: whole messages, descriptors, and whether the stage is gone."""
        try:
            data, fds, _flags, _address = socket.recv_fds(self.channel, MESSAGE_LIMIT_BYTES, 4)
        except BlockingIOError:
            return [], [], False
        except ConnectionError:
            return [], [], True
        for fd in fds:
            os.set_inheritable(fd, False)
        self._buffer += data
        return self._take_messages(), fds, not data

    def _take_messages(self) -> list[str]:
        messages = []
        while len(self._buffer) >= 4:
            length = int.from_bytes(self._buffer[:4], "big")
            if length > MESSAGE_LIMIT_BYTES:
                raise ContainmentError("stage-failed", "the stage sent a message that is too long")
            if len(self._buffer) < 4 + length:
                break
            messages.append(self._buffer[4 : 4 + length].decode("utf-8", "replace"))
            self._buffer = self._buffer[4 + length :]
        return messages

    def close(self) -> None:
        self.channel.close()
