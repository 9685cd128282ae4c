"""Started by root: give the rights up before bwrap, and keep file ownership by id-mapped binds.

The worker gets an unprivileged uid. For it to read and write a workspace that belongs to
somebody else, each of the operator's folders is cloned (open_tree), given an id map that
shows the owner on disk as the worker (mount_setattr), and attached in a mount namespace
of our own, from which bwrap then binds. What the worker creates belongs on disk to the
owner of the folder. That tree is also how a folder below /root, which the worker's uid
could not walk to, gets into the view.

All of it lives in the launching child's mount namespace and dies with its processes:
nothing is left in the file system of the host, whoever is killed when.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from stockade.sandbox import kernel
from stockade.sandbox.view import Mount

# Where the clones are attached: in the child's own mount namespace, over a folder that nothing
# in the view is taken from. They are cloned before it is covered, so sources may lie below it.
_TREE_CANDIDATES = ("/run", "/mnt", "/srv", "/tmp")


def tree_root() -> str:
    return next(path for path in _TREE_CANDIDATES if os.path.isdir(path))


def plan_sources(mounts: tuple[Mount, ...]) -> dict[str, str]:
    """For each bind with an owner, by target, the place of its clone."""
    owned = [mount.target for mount in mounts if mount.owner is not None]
    root = tree_root()
    return {target: f"{root}/{index}" for index, target in enumerate(owned)}


def become_worker(mounts: tuple[Mount, ...], uid: int, gid: int) -> Callable[[], None]:
    """What the launching child does, as root, before it executes bwrap."""
    sources = plan_sources(mounts)

    def prepare() -> None:
        make_mounts_private()
        trees = _clone_trees([mount for mount in mounts if mount.owner is not None], uid, gid)
        _attach(trees, sources)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)

    return prepare


def make_mounts_private() -> None:
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount(b"none", b"/", b"", kernel.MS_REC | kernel.MS_PRIVATE)


def _clone_trees(mounts: list[Mount], uid: int, gid: int) -> dict[str, tuple[int, bool]]:
    """Clone each source, id-mapped for its owner: target -> (tree descriptor, is a folder)."""
    maps: dict[tuple[int, int], int] = {}
    trees = {}
    for mount in mounts:
        assert mount.owner is not None
        if mount.owner not in maps:
            maps[mount.owner] = open_id_map(mount.owner, (uid, gid))
        # Without following links: between plan and start another run may have planted one here.
        source = kernel.open_without_links(mount.source, os.O_PATH)
        tree = kernel.open_tree_at(source)
        os.close(source)
        try:
            kernel.set_mount_attributes(tree, kernel.MOUNT_ATTR_IDMAP, maps[mount.owner])
        except OSError as error:
            raise OSError(
                error.errno, f"idmap of {mount.source} is not supported by its file system"
            ) from error
        trees[mount.target] = (tree, os.path.isdir(mount.source))
    for fd in maps.values():
        os.close(fd)
    return trees


def _attach(trees: dict[str, tuple[int, bool]], sources: dict[str, str]) -> None:
    root = tree_root().encode()
    kernel.mount(b"stockade", root, b"tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, b"mode=755,size=1m")
    for target, (tree, is_folder) in trees.items():
        place = sources[target]
        if is_folder:
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        kernel.move_mount(tree, place)
        os.close(tree)


def open_id_map(on_disk: tuple[int, int], shown: tuple[int, int]) -> int:
    """A user namespace that says: this owner on disk is shown as that one. Returns its descriptor.

    A namespace exists only as long as a process is in it or a descriptor is open, so a
    child makes it, waits until it was opened from outside, and ends.
    """
    ready_in, ready_out = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWUSER)
            # After the change of credentials, which clears it. Without it a killed parent leaves us waiting.
            kernel.die_with_parent(signal.SIGKILL)
            if os.getppid() == parent:
                os.write(ready_out, b"!")
                signal.pause()
        finally:
            os._exit(1)
    os.close(ready_out)
    try:
        if not os.read(ready_in, 1):
            raise OSError(1, "idmap: a user namespace could not be made")
        for name, inner, outer in (("uid_map", on_disk[0], shown[0]), ("gid_map", on_disk[1], shown[1])):
            with open(f"/proc/{child}/{name}", "w") as file:
                file.write(f"{inner} {outer} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready_in)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
