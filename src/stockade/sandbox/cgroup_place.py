"""Where on this host a control group with a memory or pids controller can be made. Linux, versions 1 and 2.

Both versions can be there at once (hybrid), and neither version numbers nor mount options say
who may make a group. So each step here is tried, and its error is the answer.

What must stay true:

* A group is made below our own one, so that whatever limits us limits the worker too. Beside
  ours it is made only in a subtree that was given to us, and only if ours sets no limit itself.
* No process of somebody else is ever moved. Version 2 gives controllers only to groups that have
  no processes of their own; where others are in ours we say so. Ourselves we may move, if alone.

Sources: cgroups(7); Documentation/admin-guide/cgroup-v2.rst ("No Internal Process Constraint", "Delegation").
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

# Where we move ourselves if our own group must be free of processes.
SUPERVISOR_LEAF = "stockade.supervisor"
UNLIMITED = "max"
_UNITS = (".scope", ".service", ".slice")


class Mounted(Struct, frozen=True):
    """One mounted hierarchy: `root` is the group that is shown at `point`."""

    is_unified: bool
    root: str
    point: str
    options: frozenset[str]


class Place(Struct, frozen=True):
    """Our own group in the hierarchy of a controller, as a folder."""

    folder: str
    is_unified: bool


# --- our own group -----------------------------------------------------------------------------


def parse_mounts(text: str) -> list[Mounted]:
    """The control group hierarchies of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5))."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) > 4 and kind[0] in ("cgroup", "cgroup2"):
            root, point = map(_unescape, fields[3:5])
            found.append(Mounted(kind[0] == "cgroup2", root, point, frozenset(kind[-1].split(","))))
    return found


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def parse_own_groups(text: str) -> dict[str, str]:
    """A process's group by controller, from ``/proc/PID/cgroup``; version 2 has the empty name."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        _number, controllers, path = line.split(":", 2)
        groups |= dict.fromkeys(controllers.split(","), path)
    return groups


def locate(controller: str, groups: Mapping[str, str], mounts: Iterable[Mounted]) -> Place:
    """Our own group for a controller, in the mount that really shows it (others can be covered).

    Raises:
        OSError: There is none, with the reason.
    """
    is_unified = controller not in groups
    path = groups.get("" if is_unified else controller)
    if path is None:
        raise OSError(errno.ENODEV, f"this kernel has no {controller} controller")
    for mounted in mounts:
        if mounted.is_unified != is_unified or not (is_unified or controller in mounted.options):
            continue
        inner = _path_below(path, mounted.root)
        if inner is not None and os.path.exists(f"{mounted.point}{inner}/cgroup.procs"):
            return Place(mounted.point + inner, is_unified)
    raise OSError(errno.ENOENT, f"no mounted hierarchy of the {controller} controller shows our group {path}")


def _path_below(path: str, root: str) -> str | None:
    """A group's path from where a mount begins; None if it is not shown there."""
    if root == "/":  # "/..": outside of our cgroup namespace
        return None if path.startswith("/..") else path.rstrip("/")
    if path == root:
        return ""
    return path[len(root) :] if path.startswith(root + "/") else None


def probe_place(controller: str) -> Place:
    """Our own group for a controller on this host.

    Raises:
        OSError: There is none.
    """
    return locate(
        controller,
        parse_own_groups(Path("/proc/self/cgroup").read_text()),
        parse_mounts(Path("/proc/self/mountinfo").read_text()),
    )


# --- the folder to make one in -----------------------------------------------------------------


def open_parent(place: Place, controllers: frozenset[str], *, may_move: bool) -> str:
    """The folder in which a group with these controllers can be made.

    Args:
        place: Our own group.
        controllers: What the new group needs.
        may_move: Move this process into a group of its own, if it is alone in its present one.

    Raises:
        OSError: There is none, with the reason.
    """
    if not place.is_unified:
        return place.folder
    around = os.path.dirname(place.folder)
    if (
        os.access(around, os.W_OK)
        and controllers <= read_words(around, "cgroup.subtree_control")
        and not _limits_something(place.folder)
        and not is_systemds_own(around)
    ):
        return around
    if is_systemds_own(place.folder):
        raise OSError(
            errno.EPERM, f"systemd has not delegated {place.folder} and may take controllers from it"
        )
    _enable(place.folder, controllers, may_move=may_move)
    return place.folder


def _enable(folder: str, controllers: frozenset[str], *, may_move: bool) -> None:
    """Give the groups below a folder these controllers. Only `step_back` undoes it: others may rely on it."""
    missing = controllers - read_words(folder, "cgroup.controllers")
    if missing:
        raise OSError(errno.ENODEV, f"{folder} was given no {' and no '.join(sorted(missing))} controller")
    wanted = controllers - read_words(folder, "cgroup.subtree_control")
    if not wanted:
        return
    if not _is_root_group(folder) and read_words(folder, "cgroup.procs"):
        # Not by trying: for pids alone the kernel agrees, and makes a threaded group that nobody can join.
        _leave(folder, may_move=may_move)
    write_value(folder, "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(wanted)))


def _is_root_group(folder: str) -> bool:
    """The machine's own root group, which may have processes and hand controllers on; it has no type."""
    return not os.path.exists(f"{folder}/cgroup.type")


def _leave(folder: str, *, may_move: bool) -> None:
    """Move this process one group down, so that its present one is free of processes.

    Raises:
        OSError: Others are in it, whom we do not move.
    """
    others = read_words(folder, "cgroup.procs") - {str(os.getpid())}
    if others or not may_move:
        who = f"{len(others)} other process{'es' * (len(others) > 1)} beside us" if others else "we ourselves"
        raise OSError(
            errno.EBUSY,
            f"in our own group {folder} there are processes ({who}), "
            "and the kernel gives controllers only to groups without processes of their own",
        )
    leaf = f"{folder}/{SUPERVISOR_LEAF}"
    try:
        os.mkdir(leaf)
    except FileExistsError:
        pass
    except OSError as error:
        raise OSError(error.errno, f"making {leaf}: {error.strerror}") from error
    write_value(leaf, "cgroup.procs", "0")


def step_back(folder: str, controllers: Iterable[str]) -> None:
    """Undo what `open_parent` did to our own group, if we moved down from it and nobody else is down there.

    Else nobody could enter that group any more: it would have no processes and may have none.
    """
    leaf = f"{folder}/{SUPERVISOR_LEAF}"
    if read_words(leaf, "cgroup.procs") != {str(os.getpid())}:
        return
    with contextlib.suppress(OSError):  # then we stay where we are
        if [entry.name for entry in os.scandir(folder) if entry.is_dir()] == [SUPERVISOR_LEAF]:
            write_value(folder, "cgroup.subtree_control", " ".join(f"-{name}" for name in controllers))
            write_value(folder, "cgroup.procs", "0")
            os.rmdir(leaf)


def _limits_something(group: str) -> bool:
    """Tell whether a group has limits of its own, which a group beside it would escape."""
    names = ("memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max", "cpuset.cpus", "io.max")
    return any(read_text(group, name).partition(" ")[0] not in (UNLIMITED, "") for name in names)


def is_systemds_own(folder: str) -> bool:
    """Tell whether systemd manages what is below a folder: it may take controllers, and so limits, away.

    Going up, what comes first decides: a mark that says "delegated", or the name of a unit. A user's own
    manager makes no mark (systemd 252, seen), so among his units nobody can tell; `Group.find_lost` notices.
    """
    while os.geteuid() == 0 and os.path.exists(f"{folder}/cgroup.procs"):
        if _is_delegated(folder):
            return False
        if folder.endswith(_UNITS):
            return True
        folder = os.path.dirname(folder)
    return False


def _is_delegated(folder: str) -> bool:
    for name in ("user.delegate", "trusted.delegate"):  # systemd.resource-control(5), Delegate=
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


# --- one file of a group -----------------------------------------------------------------------


def read_text(folder: str, name: str) -> str:
    """What a file says; empty if it is not there: older kernels lack some, and a group can be gone."""
    try:
        return Path(folder, name).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def read_words(folder: str, name: str) -> frozenset[str]:
    return frozenset(read_text(folder, name).split())


def write_value(folder: str, name: str, text: str) -> None:
    """Write one value by one call, as the kernel wants it.

    Raises:
        OSError: The message names file and value.
    """
    path = f"{folder}/{name}"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode("ascii"))
        finally:
            os.close(fd)
    except OSError as error:
        raise OSError(error.errno, f"writing {text} to {path}: {error.strerror}") from error
