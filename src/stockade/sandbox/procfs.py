"""What of /proc a worker does not get: the part that tells about the machine, not about its processes.

A fresh /proc shows the sandbox's own processes, and beside them the whole kernel: keys of the
host's users, interrupts (by whose counts other people's typing and load were read), addresses,
buses. Container runtimes cover a list of these (OCI ``maskedPaths``; moby's and containerd's
defaults, with the interrupts that GHSA-6fw5-f8r9-fgfm added); ours is that list and a little more.

Only what exists and is open to everybody is covered, since each mount costs a tenth of a
millisecond of every start: what root alone may open (``kcore``, ``kmsg``, ``timer_list``,
``kpageflags``, …) is closed by its mode, as nobody inside is root outside.

``/proc/sys`` is read-only besides: the settings of the sandbox's own IPC and PID namespaces
belong, in the kernel's eyes, to the worker. The bind is the host's, but what it shows of
namespaces is the reader's own (proc_sysctl looks at the task).
"""

from __future__ import annotations

import os
import stat

from stockade.sandbox.view import Mount, MountKind, bind

CLOSED = (
    ("acpi", "hardware"),
    ("asound", "hardware"),
    ("bus", "hardware"),
    ("cmdline", "how the host was booted, which may hold credentials"),
    ("fs", "file systems of the host"),
    ("interrupts", "what others do, by its counts"),
    ("irq", "what others do, by its counts"),
    ("kallsyms", "addresses of the kernel"),
    ("kcore", "memory of the kernel"),
    ("key-users", "keys of the host's users"),
    ("keys", "keys of the host's users"),
    ("latency_stats", "what others do, by its delays"),
    ("sched_debug", "processes of the host"),
    ("scsi", "hardware"),
    ("timer_list", "processes of the host"),
    ("timer_stats", "processes of the host"),
)
READ_ONLY = (
    ("pressure", "anybody could set triggers there"),
    ("sys", "the sandbox's own IPC and PID settings would belong to the worker"),
)
# Mounted there by the system, and not for the worker: a recursive bind would bring them along.
_BELOW_SYS = ("sys/fs/binfmt_misc",)

# What covers: a device on a mount without devices, which cannot be opened, and a folder that the
# kernel keeps empty (fs/proc/proc_tty.c). A bind of either is half the cost of a tmpfs made read-only.
_CLOSED_FILE, _EMPTY_FOLDER = "/dev/null", "/proc/tty/ldisc"

ProcEntry = tuple[str, bool]


def probe_proc(root: str = "/proc") -> tuple[ProcEntry, ...]:
    """Those names of the lists that are here and open to everybody, each with whether it is a folder."""
    names = [name for name, _why in (*CLOSED, *READ_ONLY)]
    names += [name for name in _BELOW_SYS if os.path.ismount(f"{root}/{name}")]
    found = []
    for name in names:
        try:
            mode = os.stat(f"{root}/{name}", follow_symlinks=False).st_mode
        except OSError:
            continue
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            found.append((name, stat.S_ISDIR(mode)))
    return tuple(found)


def proc_mounts(found: tuple[ProcEntry, ...]) -> list[Mount]:
    """The mounts that close or freeze them; pure."""
    frozen = dict(READ_ONLY)
    reasons = dict(CLOSED)
    mounts = []
    for name, is_folder in found:
        target = f"/proc/{name}"
        if name in frozen:
            mounts.append(bind(target, MountKind.READ_ONLY, frozen[name]))
        else:
            cover = _EMPTY_FOLDER if is_folder else _CLOSED_FILE
            why = f"closed: {reasons.get(name, 'settings of the host')}"
            mounts.append(Mount(kind=MountKind.READ_ONLY, target=target, source=cover, why=why))
    return mounts
