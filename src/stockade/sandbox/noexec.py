"""Mounts under the seal: everything is noexec but what the plan names. Put on from outside.

The stage holds no capability, ever, so a short-lived child of the supervisor joins the
mount namespace and does it there, after the stage is ready (bubblewrap has then finished,
docs/concepts/boundary.md) and before the seal. The kernel locks these flags against all
that the worker could do, and refuses to map a file of a noexec mount as code: that is
what stops ``ld.so PROGRAM``, a library of the worker's own and every copied program.

A file or folder is opened again by putting a clone of it, made before, over itself. Files
that are programs inside an opened folder get a noexec clone of themselves in turn.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Iterable

from msgspec import Struct

from stockade.errors import ContainmentError, HostError
from stockade.sandbox import kernel


class MountSeal(Struct, frozen=True, kw_only=True):
    """What stays executable, and what inside of that does not.

    Attributes:
        opened: Files and folders of the view (real paths, outer ones first): (path, becomes read-only).
        closed: Folders below them that are closed again as a whole.
        searched: Those of the opened folders whose program files are closed again, one by one.
        permitted: Program files that stay as they are.
    """

    opened: tuple[tuple[str, bool], ...] = ()
    closed: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    permitted: frozenset[str] = frozenset()

    def find_covered(self) -> list[str]:
        """Search the folders, or the cache of an earlier search, for what must be closed."""
        from stockade.sandbox.library_scan import find_programs

        programs = find_programs(self.searched, skip=self.closed)
        return [*self.closed, *(path for path in programs if path not in self.permitted)]


def apply_mount_seal(order: MountSeal, covered: Iterable[str]) -> None:
    """Do it in the mount namespace that this process is in; `covered` is what `find_covered` found.

    Raises:
        OSError: The path and the step are in its text.
    """
    clones = [(path, is_read_only, kernel.open_tree(path)) for path, is_read_only in order.opened]
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    kernel.set_mount_attributes(root, kernel.MOUNT_ATTR_NOEXEC)
    os.close(root)
    for path, is_read_only, tree in clones:
        if is_read_only:
            kernel.set_mount_attributes(tree, kernel.MOUNT_ATTR_RDONLY)
        kernel.move_mount(tree, path)
        os.close(tree)
    for path in covered:
        tree = kernel.open_tree(path)
        kernel.set_mount_attributes(tree, kernel.MOUNT_ATTR_NOEXEC)
        kernel.move_mount(tree, path)
        os.close(tree)


def executable_mounts(mountinfo: str) -> set[str]:
    """Mount points from which the kernel would execute or map code, by ``/proc/PID/mountinfo`` (proc(5)).

    Of several mounts at one point the last one counts: it covers the others.
    """
    found: dict[str, bool] = {}
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > 5:
            found[_unescape(fields[4])] = "noexec" not in fields[5].split(",")
    return {path for path, is_executable in found.items() if is_executable}


def _unescape(path: str) -> str:
    """Space, tab, newline and backslash stand as three octal digits."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def verify_mount_seal(pid: int, order: MountSeal) -> None:
    """Compare what the kernel says with what was ordered.

    Raises:
        ContainmentError: Something is executable that should not be, or cannot be read.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            found = executable_mounts(file.read())
    except OSError as error:
        raise ContainmentError("seal-failed", f"the sandbox's mounts cannot be read: {error}") from error
    surplus = found - {path for path, _read_only in order.opened}
    if surplus:
        raise ContainmentError("seal-failed", f"programs could be run from {min(surplus)}, which is not planned")


class MountSealer:
    """The supervisor's handle on the child that does it.

    It is forked before the sandbox is ready, since the search for program files can be
    done meanwhile, on another processor.
    """

    def __init__(self, order: MountSeal) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = kernel.fork_quietly()
        if self.pid == 0:
            try:
                self._control.close()
                own = theirs.fileno()
                os.closerange(3, own)  # above all the lifelines: EOF must not wait for us
                os.closerange(own + 1, 1 << 20)
                _be_sealer(theirs, order)
            finally:
                os._exit(0)
        theirs.close()

    def begin(self, pid: int) -> None:
        """Name the process whose view is to be sealed."""
        self._control.send(pid.to_bytes(8, "big"))

    def finish(self, timeout_s: float) -> None:
        """Wait until it is done.

        Raises:
            HostError: The kernel refused a step.
            ContainmentError: No answer.
        """
        self._control.settimeout(timeout_s)
        try:
            answer = self._control.recv(4096)
        except OSError as error:
            raise ContainmentError("seal-failed", f"the mounts could not be sealed: {error}") from error
        finally:
            self.close()
        if answer != b"done":
            said = answer.decode(errors="replace") or "its builder ended without an answer"
            raise HostError(
                "seal-failed",
                f"layer mounts (noexec) could not be put up: {said}",
                "mount_setattr needs kernel 5.12; `stockade doctor` tries it;"
                " --without-layer=mounts gives this layer up, on record",
            )

    def close(self) -> None:
        """End the child, whatever it is doing, and reap it."""
        if self.pid > 0:
            self._control.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = -1


def _be_sealer(control: socket.socket, order: MountSeal) -> None:
    """The child's whole life. It ends by `os._exit` in any case, and with its parent."""
    kernel.die_with_parent(signal.SIGKILL)
    try:
        covered = order.find_covered()
        pid = int.from_bytes(control.recv(8), "big")  # an empty message (the supervisor is gone) is 0
        if pid == 0:
            return
        _enter_view(pid)
        apply_mount_seal(order, covered)
    except OSError as error:
        control.send(f"errno {error.errno}, {error.strerror or error}".encode()[:4000])
        return
    control.send(b"done")


def _enter_view(pid: int) -> None:
    """Join the mount namespace of a process, with the rights of the user namespace that owns it."""
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(mounts, kernel.NS_GET_USERNS)
    kernel.setns(owner, kernel.CLONE_NEWUSER)
    kernel.setns(mounts, kernel.CLONE_NEWNS)
