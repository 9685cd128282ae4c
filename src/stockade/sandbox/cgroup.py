"""The control group of one run: made, joined, read and removed. It holds memory and processes together.

What must stay true:

* The launching child joins before it changes who it is and before it executes anything, so
  nothing of the sandbox runs outside.
* A folder is locked (flock) as long as its supervisor lives, and the kernel lets go of the lock when
  that dies. The next start removes folders of the same user that are empty and not locked.
* Limits are read back. What was not taken is not held.

Where a group can be made is cgroup_place.py's. Sources: Documentation/admin-guide/cgroup-v2.rst and
cgroup-v1/{memory,pids}.rst of the kernel.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from stockade.sandbox.cgroup_place import (
    UNLIMITED,
    Place,
    open_parent,
    parse_own_groups,
    probe_place,
    read_text,
    read_words,
    step_back,
    write_value,
)
from stockade.sandbox.limits import OWN_PROCESSES, LimitUsage

_OURS = re.compile(r"stockade-[A-Za-z0-9._-]+", re.ASCII)
_REMOVAL_TIMEOUT_S = 1.0
_ATTEMPTS = 5
_LAST_CHARGE_BYTES = 64 << 10

_LIMIT_FILES = {
    ("memory", False): "memory.limit_in_bytes",
    ("memory", True): "memory.max",
    ("pids", False): "pids.max",
    ("pids", True): "pids.max",
}
_SWAP_FILES = {False: "memory.memsw.limit_in_bytes", True: "memory.swap.max"}


class Part(Struct, frozen=True):
    """One folder of a group: in the hierarchy of one controller, or of several.

    Attributes:
        amounts: What it holds, by controller.
        lock: The descriptor by which it is locked.
    """

    folder: str
    is_unified: bool
    amounts: dict[str, int]
    lock: int

    def file(self, controller: str) -> str:
        """The name of the file with a controller's limit."""
        return _LIMIT_FILES[controller, self.is_unified]


class Group:
    """The control group of one run: one folder a hierarchy. Made by `open_group`."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def __contains__(self, controller: str) -> bool:
        return bool(self.folder(controller))

    def folder(self, controller: str) -> str:
        """Where a controller's limit is held; empty if it is not."""
        return next((part.folder for part in self.parts if controller in part.amounts), "")

    @property
    def limits_swap(self) -> bool:
        """Whether the kernel counts swap at all, so that it could be limited along with memory."""
        parts = (part for part in self.parts if "memory" in part.amounts)
        return any(os.path.exists(f"{part.folder}/{_SWAP_FILES[part.is_unified]}") for part in parts)

    def join(self) -> None:
        """Put the calling process in; called in the child that becomes the sandbox.

        Raises:
            OSError: The kernel refused; the message names the folder.
        """
        for part in self.parts:
            write_value(part.folder, "cgroup.procs", "0")

    def holds(self, pid: int) -> bool:
        """Tell whether a process is inside, by what the kernel says of that process."""
        paths = parse_own_groups(Path(f"/proc/{pid}/cgroup").read_text())
        return all(
            os.path.basename(paths["" if part.is_unified else name]) == os.path.basename(part.folder)
            for part in self.parts
            for name in part.amounts
        )

    def find_lost(self) -> list[str]:
        """Controllers whose limit is no longer what was set: somebody else changed it or took it away."""
        return [
            controller
            for part in self.parts
            for controller, amount in part.amounts.items()
            if not _is_kept(part.folder, part.file(controller), amount)
        ]

    def read_usage(self) -> LimitUsage:
        """What the kernel counted so far."""
        usage: dict[str, Any] = {}
        for part in self.parts:
            if "memory" in part.amounts:
                usage |= _read_memory(part)
            if "pids" in part.amounts:
                usage |= _read_processes(part)
        return LimitUsage(**usage)

    def close(self) -> None:
        """Kill what is still inside, which is the sandbox's and nobody else's, and remove the folders."""
        parts, self.parts = self.parts, []
        deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
        for part in parts:
            _remove(part.folder, deadline)
            os.close(part.lock)
            if part.is_unified:
                step_back(os.path.dirname(part.folder), part.amounts)


def open_group(name: str, amounts: Mapping[str, int], *, may_move: bool) -> tuple[Group, dict[str, OSError]]:
    """Make a group that holds as much of what is wanted as this host lets us.

    Args:
        name: The folders' name.
        amounts: By controller: bytes for ``memory``, a count for ``pids``.
        may_move: See `open_parent`.

    Returns:
        The group, and for each controller that it does not hold the reason.
    """
    group = Group()
    refused: dict[str, OSError] = {}
    places: dict[Place, list[str]] = {}
    for controller in amounts:
        try:
            places.setdefault(probe_place(controller), []).append(controller)
        except OSError as error:
            refused[controller] = error
    for place, controllers in places.items():
        for chosen in _choices(controllers):
            wanted = {controller: amounts[controller] for controller in chosen}
            try:
                group.parts.append(_make_part(name, place, wanted, may_move))
            except OSError as error:
                refused |= dict.fromkeys(chosen, error)
            else:
                refused = {one: why for one, why in refused.items() if one not in chosen}
                break
    return group, refused


def _choices(controllers: list[str]) -> Iterator[list[str]]:
    """All in one folder, since a process is in one group of a hierarchy; if that fails, one alone."""
    yield controllers
    if len(controllers) > 1:
        yield from ([one] for one in controllers)


def _make_part(name: str, place: Place, amounts: Mapping[str, int], may_move: bool) -> Part:
    parent = open_parent(place, frozenset(amounts), may_move=may_move)
    remove_leftovers(parent)
    part = Part(f"{parent}/{name}", place.is_unified, dict(amounts), _make_locked(f"{parent}/{name}"))
    try:
        for controller, amount in amounts.items():
            apply_limit(part, part.file(controller), amount)
        if "memory" in amounts:
            _limit_swap(part, amounts["memory"])
    except OSError:
        _remove(part.folder, 0.0)
        os.close(part.lock)
        raise
    return part


def apply_limit(part: Part, file: str, amount: int) -> None:
    write_value(part.folder, file, str(amount))
    if not _is_kept(part.folder, file, amount):
        kept = read_text(part.folder, file)
        raise OSError(errno.EIO, f"{part.folder}/{file} says {kept!r} after {amount} was written")


def _is_kept(folder: str, file: str, amount: int) -> bool:
    """Tell whether a file still holds a limit; the kernel rounds down to whole pages."""
    kept = read_text(folder, file)
    return kept not in (UNLIMITED, "") and int(kept) <= amount


def _limit_swap(part: Part, memory_bytes: int) -> None:
    """Let nothing be pushed out to disk beyond the limit, where the kernel counts swap at all.

    Version 1 counts memory and swap together, version 2 counts swap apart.
    """
    file = _SWAP_FILES[part.is_unified]
    if os.path.exists(f"{part.folder}/{file}"):
        apply_limit(part, file, 0 if part.is_unified else memory_bytes)


# --- folders that come and go --------------------------------------------------------------------


def _make_locked(folder: str) -> int:
    """Make a folder and lock it; again if a start beside ours took it for a leftover in between."""
    for _ in range(_ATTEMPTS):
        try:
            os.mkdir(folder)
        except OSError as error:
            raise OSError(error.errno, f"making {folder}: {error.strerror}") from error
        lock = _lock(folder)
        if lock >= 0:
            return lock
        _remove(folder, 0.0)
    raise OSError(errno.EAGAIN, f"{folder} was taken away again and again")


def _lock(folder: str) -> int:
    """The descriptor that locks a folder, or -1 if somebody else has it or it is gone."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(folder).st_ino == os.fstat(lock).st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return -1


def remove_leftovers(parent: str) -> list[str]:
    """Remove what killed supervisors of this user left in a folder; returns what it removed."""
    removed = []
    with os.scandir(parent) as entries:
        found = [entry.path for entry in entries if _OURS.fullmatch(entry.name)]
    for folder in found:
        with contextlib.suppress(OSError):  # somebody is in it, or it is gone already
            if os.stat(folder).st_uid != os.geteuid() or (lock := _lock(folder)) < 0:
                continue
            try:
                os.rmdir(folder)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed


def _remove(folder: str, deadline: float) -> None:
    """Remove a folder; a process that has just died is counted for a moment longer."""
    while True:
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno == errno.EBUSY and time.monotonic() < deadline:
                _kill_inside(folder)
                time.sleep(0.002)
                continue
        return


def _kill_inside(folder: str) -> None:
    for word in read_words(folder, "cgroup.procs"):
        with contextlib.suppress(OSError):  # it has ended
            process = os.pidfd_open(int(word))
            try:
                if word in read_words(
                    folder, "cgroup.procs"
                ):  # the number still means the one that was opened
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)


# --- what the kernel counted ---------------------------------------------------------------------


def _read_memory(part: Part) -> dict[str, int | None]:
    folder = part.folder
    if part.is_unified:
        events = _counts(folder, "memory.events")  # `oom`: at the limit, and an allocation about to fail
        return {
            "memory_peak_bytes": _number(folder, "memory.peak"),
            "memory_kills": events.get("oom_kill"),
            "is_memory_exhausted": None if "oom" not in events else events["oom"] > 0,
        }
    # Version 1 has no such count, and `failcnt` stays 0 where swap is limited too (seen on 6.18). But the
    # last thing that the kernel tries before it kills is a charge of a few pages, so the peak shows it.
    peak, limit = _number(folder, "memory.max_usage_in_bytes"), _number(folder, "memory.limit_in_bytes")
    return {
        "memory_peak_bytes": peak,
        "memory_kills": _counts(folder, "memory.oom_control").get("oom_kill"),
        "is_memory_exhausted": None if peak is None or limit is None else peak + _LAST_CHARGE_BYTES >= limit,
    }


def _read_processes(part: Part) -> dict[str, int | None]:
    peak = _number(part.folder, "pids.peak")
    return {
        "processes_peak": None if peak is None else max(0, peak - OWN_PROCESSES),
        "processes_refused": _counts(part.folder, "pids.events").get("max"),
    }


def _counts(folder: str, name: str) -> dict[str, int]:
    """A file of lines ``WORD NUMBER``; empty if the kernel does not have it."""
    pairs = (line.partition(" ") for line in read_text(folder, name).splitlines())
    return {word: int(number) for word, _, number in pairs if number.isdigit()}


def _number(folder: str, name: str) -> int | None:
    text = read_text(folder, name)
    return int(text) if text.isdigit() else None
