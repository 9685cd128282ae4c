"""The last touches to a view, from outside, when bubblewrap has finished: protect, and cut loose.

*Protect.* What other programs of the host obey (protection.py) gets a mount on itself: read-only,
or as it is where a folder only must not be renamed. bubblewrap could do that too, but reads the
whole mount table for each: a second for a hundred repositories, and here ten milliseconds. A clone
of a mount has its id map, so nothing more is to be done where root started us.

*Cut loose.* bubblewrap leaves the mounts of an ordinary user's sandbox as *slaves* of the host's
(mount_namespaces(7)). So a disk, an encrypted folder or a container's volume that somebody mounts
below the workspace while a run is on would appear inside, with sockets and secrets that nobody
searched for. Started by root they are private already (idmap.py).

Both take rights over the mount namespace that the stage never has: the child that seals the mounts
(noexec.py) does it, before anything of the worker runs. It follows no link: a worker of another
run may swap folders.
"""

from __future__ import annotations

import os

from stockade.errors import ContainmentError
from stockade.sandbox import kernel


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


def verify_private(mountinfo: str) -> None:
    """Compare with the kernel's own word.

    Raises:
        ContainmentError: A mount of the view follows the host's.
    """
    attached = attached_mounts(mountinfo)
    if attached:
        raise ContainmentError("view-failed", f"what the host mounts later would appear in {attached[0]}")
