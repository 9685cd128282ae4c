"""The last touches to a view, from outside, when bubblewrap has finished: protect, and cut loose.

*Protect.* What other programs of the host obey (protection.py) gets a mount on itself: read-only,
or as it is where a folder only must not be renamed. bubblewrap could do that too, but reads the
whole mount table for each: a second for a hundred repositories, and here ten milliseconds. A clone
of a mount has its id map, so nothing more is to be done where root started us.

*Cut loose.* bubblewrap leaves the mounts of an ordinary user's sandbox as *slaves* of the host's
(mount_namespaces(7)). So a disk, an encrypted folder or a container's volume that somebody mounts
below the workspace while a run is on would appear inside, with sockets and secrets that nobody
searched for. Started by root they are private already (idmap.py).

Both take rights over the mount namespace that the stage never has: a short-lived child does it,
before anything of the worker runs. It follows no link: a worker of another run may swap folders.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Sequence

from stockade.errors import ContainmentError
from stockade.sandbox import kernel


def enter_view(pid: int) -> None:
    """Join the mount namespace of a process, with the rights of the user namespace that owns it."""
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(mounts, kernel.NS_GET_USERNS)
    kernel.setns(owner, kernel.CLONE_NEWUSER)
    kernel.setns(mounts, kernel.CLONE_NEWNS)


def protect(path: str, *, is_read_only: bool) -> None:
    """Put a mount of what stands at a path on itself, in the caller's mount namespace."""
    place = kernel.open_without_links(path, os.O_PATH)
    try:
        tree = kernel.open_tree_at(place)
        try:
            if is_read_only:
                kernel.set_mount_attributes(tree, kernel.MOUNT_ATTR_RDONLY)
            kernel.move_mount_to(tree, place)
        finally:
            os.close(tree)
    finally:
        os.close(place)


def cut_loose() -> None:
    """Make every mount of the caller's namespace private."""
    kernel.mount(b"none", b"/", b"", kernel.MS_REC | kernel.MS_PRIVATE)


def attached_mounts(mountinfo: str) -> list[str]:
    """Mount points that still follow or tell others, by ``/proc/PID/mountinfo`` (proc(5))."""
    found = []
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        optional = fields[6 : fields.index("-")] if "-" in fields else []
        if any(field.startswith(("shared:", "master:")) for field in optional):
            found.append(fields[4])
    return found


def verify_private(pid: int) -> None:
    """Compare with the kernel's own word.

    Raises:
        ContainmentError: A mount of the view follows the host's, or the list cannot be read.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            attached = attached_mounts(file.read())
    except OSError as error:
        raise ContainmentError("view-failed", f"the sandbox's mounts cannot be read: {error}") from error
    if attached:
        raise ContainmentError("view-failed", f"what the host mounts later would appear in {attached[0]}")


class ViewFinisher:
    """The supervisor's handle on the child that does it; forked while the sandbox is being built.

    Args:
        protected: Paths in the view, outer ones first, each with whether it becomes read-only.
    """

    def __init__(self, protected: Sequence[tuple[str, bool]]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = kernel.fork_quietly()
        if self.pid == 0:
            try:
                self._control.close()
                own = theirs.fileno()
                os.closerange(3, own)  # above all the lifeline: end of file must not wait for us
                os.closerange(own + 1, 1 << 20)
                _be_finisher(theirs, protected)
            finally:
                os._exit(0)
        theirs.close()

    def finish(self, pid: int, timeout_s: float) -> None:
        """Do it to the view of this process, and wait until it is done.

        Raises:
            ContainmentError: The kernel refused, or there is no answer.
        """
        self._control.settimeout(timeout_s)
        try:
            self._control.send(pid.to_bytes(8, "big"))
            said = self._control.recv(4096)
        except OSError as error:
            raise ContainmentError("view-failed", f"the view could not be finished: {error}") from error
        finally:
            self.close()
        if said != b"done":
            text = said.decode(errors="replace") or "the child ended without an answer"
            raise ContainmentError("view-failed", f"the view could not be finished: {text}")

    def close(self) -> None:
        """End the child, whatever it is doing, and reap it."""
        if self.pid > 0:
            self._control.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = -1


def _be_finisher(control: socket.socket, protected: Sequence[tuple[str, bool]]) -> None:
    """The child's whole life. It ends by `os._exit` in any case, and with its parent."""
    kernel.die_with_parent(signal.SIGKILL)
    pid = int.from_bytes(control.recv(8), "big")  # an empty message (the supervisor is gone) is 0
    if pid == 0:
        return
    path = "/"
    try:
        enter_view(pid)
        for path, is_read_only in protected:
            protect(path, is_read_only=is_read_only)
        cut_loose()
    except OSError as error:
        text = f"{path}: errno {error.errno}, {error.strerror or error}"
        control.send(text.encode(errors="surrogateescape")[:4000])
        return
    control.send(b"done")
