"""bubblewrap's command line from a plan, and its start, by an ordinary user or by root.

What must stay true:

* Always ``--unshare-user`` by name: ``--unshare-all`` only tries it (boundary.md F9).
* Never ``--block-fd``: bwrap goes on when that descriptor is closed (F2). The stage waits.
* Started by root, the uid is changed *before* bwrap runs: bwrap run by uid 0 maps the
  worker to the host's root whatever it is told (F1).
* bwrap gets /dev/null and a pipe for complaints, in a session of its own, so that no
  Ctrl-C reaches it and no stream of the caller is held open by it.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from stockade.errors import ContainmentError, HostError
from stockade.sandbox import kernel
from stockade.sandbox.plan import SandboxPlan
from stockade.sandbox.view import SANDBOX_NAME, STAGE_PATH, Mount, MountKind

STAGE_FILE = Path(__file__).with_name("stage.py")
INFO_FD_NAME, LIFELINE_FD_NAME = "info", "lifeline"


def compile_arguments(
    plan: SandboxPlan,
    *,
    descriptors: Mapping[str, int],
    sources: Mapping[str, str],
    dies_with_thread: bool,
) -> list[str]:
    """The whole command line; pure.

    Args:
        plan: What is to be built.
        descriptors: Numbers in bwrap for ``info``, ``lifeline`` and for each DATA target.
        sources: Where a bind's source stands instead, by target (root's id-mapped clones).
        dies_with_thread: Name ``--die-with-parent``; it is bound to the thread that starts bwrap.
    """
    arguments = [
        "bwrap",
        "--unshare-user",
        "--unshare-all",
        "--disable-userns",
        "--as-pid-1",
        "--new-session",
    ]
    arguments += ["--clearenv", "--cap-drop", "ALL", "--hostname", SANDBOX_NAME]
    if not plan.has_room:
        arguments += ["--share-net"]
    if dies_with_thread:
        arguments += ["--die-with-parent"]
    arguments += ["--perms", "0755", "--dir", os.path.dirname(STAGE_PATH)]
    arguments += ["--perms", "0444", "--ro-bind-data", str(descriptors[STAGE_PATH]), STAGE_PATH]
    for mount in plan.mounts:
        if not mount.is_late:
            arguments += _mount_arguments(mount, descriptors, sources)
    arguments += ["--info-fd", str(descriptors[INFO_FD_NAME])]
    arguments += ["--", plan.interpreter, "-I", "-S", STAGE_PATH, str(descriptors[LIFELINE_FD_NAME])]
    return [*arguments, "terminal"] if plan.terminal else arguments


def _mount_arguments(mount: Mount, descriptors: Mapping[str, int], sources: Mapping[str, str]) -> list[str]:
    option = f"--{mount.kind.value}"
    match mount.kind:
        case MountKind.READ_ONLY | MountKind.WRITABLE:
            return [option, sources.get(mount.target, mount.source), mount.target]
        case MountKind.LINK:
            return [option, mount.source, mount.target]
        case MountKind.DATA | MountKind.COVER:
            number = str(descriptors[mount.target])
            return ["--perms", f"{mount.mode:04o}", option, number, mount.target]
        case MountKind.COPY:
            return ["--perms", "0444", "--file", str(descriptors[mount.target]), mount.target]
        case MountKind.TMPFS | MountKind.FOLDER:
            return ["--perms", f"{mount.mode:04o}", option, mount.target]
        case MountKind.PROC | MountKind.DEV | MountKind.FREEZE:
            return [option, mount.target]


def stage_program(interpreter: str) -> bytes:
    """The stage as its interpreter takes it: compiled if that is our own Python, else as text.

    Parsing the text takes three milliseconds of every start. Python recognizes compiled
    code by its first bytes; it is taken from the same cache as every other module's.
    """
    if os.path.realpath(getattr(sys, "_base_executable", "")) != interpreter:
        return STAGE_FILE.read_bytes()
    code = SourceFileLoader("stage", str(STAGE_FILE)).get_code("stage")
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def open_data(plan: SandboxPlan, stage_text: bytes) -> dict[str, int]:
    """A descriptor for each piece of content that bwrap reads: stage, small files, copies."""
    contents = {mount.target: mount.data for mount in plan.mounts if mount.kind in _HAVE_DATA}
    contents[STAGE_PATH] = stage_text
    opened = {target: _memory_file(content) for target, content in contents.items()}
    for mount in plan.mounts:
        if mount.kind is MountKind.COPY:
            opened[mount.target] = _open_copied(mount.source)
    return opened


def _open_copied(source: str) -> int:
    """A file of the host that is not there is an empty one inside (a host may have no resolv.conf)."""
    try:
        return os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return _memory_file(b"")


_HAVE_DATA = (MountKind.DATA, MountKind.COVER)


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("stockade", os.MFD_CLOEXEC)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def launch(
    bwrap: str,
    arguments: Sequence[str],
    keep: Sequence[int],
    complaints: int,
    prepare: Callable[[], None],
) -> int:
    """Start bwrap and return its pid.

    Args:
        bwrap: The program.
        arguments: Its whole command line.
        keep: Descriptors that it inherits under their own numbers; all others are closed.
        complaints: Becomes its standard error.
        prepare: Called in the child before exec; may change who it is. An `OSError` that
            it raises is written to `complaints`.
    """
    pid = kernel.fork_quietly()
    if pid:
        return pid
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(complaints, 2)
        _close_others(keep)
        prepare()
        os.chdir("/")
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execve(bwrap, list(arguments), {})
    except BaseException as error:  # noqa: BLE001  a child must not return into the parent's code
        os.write(2, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(125)


def _close_others(keep: Sequence[int]) -> None:
    last = 2
    for fd in sorted(keep):
        os.closerange(last + 1, fd)
        os.set_inheritable(fd, True)
        last = fd
    os.closerange(last + 1, sys.maxsize >> 32)


def explain_complaint(text: str) -> HostError | ContainmentError:
    """Say what bwrap's own words mean for the operator."""
    for sign, code, remedy in _KNOWN_COMPLAINTS:
        if sign in text:
            return HostError(code, f"bubblewrap could not build the sandbox: {text}", remedy)
    said = text or "it ended without a word"
    return HostError(
        "sandbox-failed",
        f"bubblewrap could not build the sandbox: {said}",
        "`stockade doctor` says what this host can enforce",
    )


_USERNS_REMEDY = (
    "allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1 and "
    "user.max_user_namespaces above 0; "
    "on Ubuntu an AppArmor profile for bwrap (package apparmor-profiles, bwrap-userns-restrict)"
)
_KNOWN_COMPLAINTS = (
    ("No permissions to create new namespace", "userns-forbidden", _USERNS_REMEDY),
    ("Creating new namespace failed", "userns-forbidden", _USERNS_REMEDY),
    ("setting up uid map", "userns-forbidden", _USERNS_REMEDY),
    ("Unknown option", "bwrap-too-old", "install bubblewrap 0.8 or later"),
    ("loopback: Failed", "userns-restricted", _USERNS_REMEDY),
    ("idmap", "idmap-unsupported", "start Stockade as the owner of the workspace instead of root"),
    (
        "Can't mount proc",
        "proc-masked",
        "in a container, unmask /proc: --security-opt systempaths=unconfined (Docker) or unmask=ALL (Podman)",
    ),
)
