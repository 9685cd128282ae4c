"""Cut the view loose from the host's mounts: what is mounted outside later does not appear inside.

bubblewrap leaves the mounts of an ordinary user's sandbox as *slaves* of the host's
(mount_namespaces(7)). So a disk, an encrypted folder or a container's volume that somebody
mounts below the workspace while a run is on would appear inside, with sockets and secrets
that nobody searched for. Started by root they are private already (idmap.py), and it takes
rights over the mount namespace that the stage never has: the child that seals the mounts does it.
"""

from __future__ import annotations

from stockade.errors import ContainmentError
from stockade.sandbox import kernel


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
