"""What stands at the paths of the host that a run wants to show: looked at once, without following links.

A link that the worker planted in one run must not widen the view of the next, so no
component of an operator's path may be a link (openat2 with RESOLVE_NO_SYMLINKS). One
exception: the operator's own working folder is resolved once, since the shell leads
people through links, and its path was not made by the worker (reports R134, R145).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from msgspec import Struct

from stockade.errors import HostError, UserError
from stockade.sandbox import kernel
from stockade.sandbox.detour import NAME as DETOUR_NAME
from stockade.sandbox.detour import git_detour, is_detour, needs_stop
from stockade.sandbox.view import PROTECTED_IN_GIT, PROTECTED_NAMES, is_below

# Enough for a monorepo with its node_modules (a second or so of walking); beyond it we refuse
# rather than guess, unless nothing there can be reached (see `Survey.is_complete`).
SURVEY_LIMIT_ENTRIES = 1_000_000
GIT_FOLDERS_LIMIT = 64
# Beside a HEAD these make a folder one that git accepts, whatever kind of file they are.
_GIT_SIGNS = frozenset({"objects", DETOUR_NAME})

# As a workspace these would show secrets or the machine itself; below most of them is fine.
_NOT_A_WORKSPACE = frozenset(
    [
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/proc",
        "/root/.ssh",
        "/run",
        "/sbin",
        "/sys",
        "/usr",
        "/var",
    ]
)
_NEVER_SHOWN = ("/proc", "/sys", "/dev", "/boot")
# Programs, libraries and settings of the machine: a worker that may write there owns it after all,
# most of all one that root has started. Sources that are kept below /usr are a workspace like others.
_NEVER_WRITTEN = ("/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr")
_WRITTEN_ALL_THE_SAME = ("/usr/src", "/usr/local/src")


class PathFact(Struct, frozen=True):
    """What stood at a path when it was judged."""

    path: str
    is_folder: bool
    uid: int
    gid: int
    device: int
    inode: int

    @property
    def owner(self) -> tuple[int, int]:
        return (self.uid, self.gid)

    @property
    def identity(self) -> tuple[int, int] | None:
        """What must be found there again; None for what is still to be made."""
        return (self.device, self.inode) if self.inode else None


class Survey(Struct):
    """What a walk through a folder found.

    Attributes:
        doors: Unix sockets and FIFOs: something on the host answers there.
        git_folders: Folders that git would run hooks of, or obey settings in.
        linked_folders: Folders that are git's for a linked work tree, or look like it: they
            have a ``HEAD`` and take all else from another git folder.
        git_files: Files named ``.git`` (work trees and submodules).
        privileged: Files with a set-user-id or set-group-id bit (only if asked for).
        entries: How many names were seen.
        is_complete: False if the walk stopped at its limit.
    """

    doors: list[str]
    git_folders: list[str]
    linked_folders: list[str]
    git_files: list[str]
    privileged: list[str]
    entries: int = 0
    is_complete: bool = True


def probe_path(path: str, asked_by: str) -> PathFact:
    """Judge a path that the operator named.

    Args:
        path: An absolute path.
        asked_by: ``files.read`` or the like, for the message.

    Raises:
        UserError: It does not exist, goes through a link, or may never be shown.
    """
    if path == "/" or any(path == place or path.startswith(place + "/") for place in _NEVER_SHOWN):
        raise UserError("path-not-shown", f"{asked_by}: {path} belongs to the machine and is never shown")
    try:
        fd = kernel.open_without_links(path, os.O_PATH)
    except OSError as error:
        raise _explain(path, asked_by, error) from error
    try:
        return _fact(path, os.fstat(fd), asked_by)
    finally:
        os.close(fd)


def probe_writable(path: str, asked_by: str) -> PathFact:
    """Judge a path that the worker may write.

    Raises:
        UserError: As `probe_path`, or it belongs to the machine's own programs and settings.
    """
    fact = probe_path(path, asked_by)
    is_the_machine_s = any(is_below(path, place) for place in _NEVER_WRITTEN) or path in _NOT_A_WORKSPACE
    if is_the_machine_s and not any(is_below(path, place) for place in _WRITTEN_ALL_THE_SAME):
        raise UserError(
            "path-not-written",
            f"{asked_by}: {path} holds programs or settings of the machine, which no worker may write",
            "give it a folder of its own, and copy what came out of it",
        )
    return fact


def _explain(path: str, asked_by: str, error: OSError) -> UserError:
    if os.path.lexists(path) and os.path.realpath(path) != os.path.normpath(path):
        return UserError(
            "path-through-link",
            f"{asked_by}: {path} goes through a link",
            f"write the path that it leads to, if that is what you mean: {os.path.realpath(path)}",
        )
    return UserError("path-unusable", f"{asked_by}: {path}: {os.strerror(error.errno or 0)}")


def _fact(path: str, status: os.stat_result, asked_by: str) -> PathFact:
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise UserError("path-unusable", f"{asked_by}: {path} is neither a folder nor a regular file")
    is_folder = stat.S_ISDIR(status.st_mode)
    return PathFact(path, is_folder, status.st_uid, status.st_gid, status.st_dev, status.st_ino)


def probe_workspace(path: str) -> PathFact:
    """Judge the operator's working folder; links on the way are resolved here, once."""
    real = os.path.realpath(path)
    if real in _NOT_A_WORKSPACE:
        raise UserError(
            "workspace-not-usable",
            f"{real} cannot be a workspace: it would show the machine's own files",
            "change into the folder that the command works on",
        )
    fact = probe_path(real, "workspace")
    if not fact.is_folder:
        raise UserError("workspace-not-usable", f"{real} is not a folder")
    return fact


def survey(root: str, *, with_privileged: bool = False, limit: int = SURVEY_LIMIT_ENTRIES) -> Survey:
    """Walk a folder without following links; folders that cannot be read are as closed to the worker."""
    found = Survey([], [], [], [], [])
    pending = [root]
    while pending:
        folder = pending.pop()
        for entry in _entries(folder):
            found.entries += 1
            if entry.name in _GIT_SIGNS and os.path.lexists(os.path.join(folder, "HEAD")):
                (found.git_folders if entry.name == "objects" else found.linked_folders).append(folder)
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                if entry.name == ".git":
                    found.git_files.append(entry.path)
                if with_privileged and _is_privileged(entry):
                    found.privileged.append(entry.path)
            elif not entry.is_symlink() and _is_door(entry):
                found.doors.append(entry.path)
        if found.entries > limit:
            found.is_complete = False
            break
    found.linked_folders = [path for path in found.linked_folders if path not in found.git_folders]
    return found


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _is_door(entry: os.DirEntry[str]) -> bool:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _is_privileged(entry: os.DirEntry[str]) -> bool:
    try:
        return bool(entry.stat(follow_symlinks=False).st_mode & 0o6000)
    except OSError:
        return False


def refuse_doors(root: str, found: Survey, hidden: tuple[str, ...]) -> None:
    """Refuse to show a folder in which something on the host answers.

    Raises:
        HostError: Names the first such path, or says that the folder is too large to be searched.
    """
    open_doors = [
        path
        for path in found.doors
        if not any(path == hide or path.startswith(hide + "/") for hide in hidden)
    ]
    if open_doors:
        more = f" (and {len(open_doors) - 1} more)" if len(open_doors) > 1 else ""
        raise HostError(
            "socket-in-view",
            f"{open_doors[0]} is a socket or FIFO{more}: a process of this host would answer there",
            f"stop what made it and delete it, or hide it: files: {{hide: [{open_doors[0]}]}}",
        )
    if not found.is_complete:
        raise HostError(
            "view-too-large",
            f"{root} holds more than {found.entries} names: it cannot be searched for sockets in time",
            "use a smaller folder as workspace",
        )


def protected_in(root: str, found: Survey) -> list[str]:
    """What in a writable folder must stay as it is: existing paths, the shortest first."""
    names = [os.path.join(root, name) for name, _why in PROTECTED_NAMES]
    for folder in [*found.git_folders[:GIT_FOLDERS_LIMIT], *found.linked_folders[:GIT_FOLDERS_LIMIT]]:
        names += [os.path.join(folder, name) for name in PROTECTED_IN_GIT]
    names += found.git_files
    return sorted((path for path in names if _is_plain(path)), key=len)


def missing_hooks(root: str, found: Survey) -> list[PathFact]:
    """The ``hooks`` folders that git folders lack, as facts without an inode.

    What does not exist cannot be covered, and the worker would create it (R138). An empty
    folder of that name is part of every ordinary repository, so it is made beforehand.
    """
    missing = []
    for folder in found.git_folders[:GIT_FOLDERS_LIMIT]:
        path = os.path.join(folder, "hooks")
        if is_below(path, root) and not os.path.lexists(path):
            status = os.stat(folder)
            missing.append(PathFact(path, True, status.st_uid, status.st_gid, status.st_dev, 0))
    return missing


def missing_stops(root: str, found: Survey) -> list[PathFact]:
    """The stops that git folders lack (detour.py), as facts without an inode."""
    missing = []
    for folder in found.git_folders[:GIT_FOLDERS_LIMIT]:
        path = git_detour(folder)
        if is_below(path, root) and needs_stop(folder):
            status = os.stat(folder)
            missing.append(PathFact(path, False, status.st_uid, status.st_gid, status.st_dev, 0))
    return missing


def make_folder(path: str, mode: int) -> tuple[int, int]:
    """Make a folder, and those above it, for the owner of the folder around; gives its identity.

    Raises:
        HostError: It cannot be made.
    """
    parent = os.path.dirname(path)
    try:
        if not os.path.isdir(parent):
            make_folder(parent, mode)
        around = os.stat(parent)
        os.mkdir(path, mode)
        if os.geteuid() == 0:
            os.chown(path, around.st_uid, around.st_gid, follow_symlinks=False)
        status = os.lstat(path)
    except OSError as error:
        raise HostError(
            "folder-not-made", f"{path} cannot be made: {error.strerror}", "make it, or choose another place"
        ) from error
    return (status.st_dev, status.st_ino)


def planted_in(root: str, known: frozenset[str]) -> list[str]:
    """What a worker has left in a writable folder that other programs of the host would run or obey.

    Args:
        root: The writable folder.
        known: What was protected, and so is as it was.
    """
    found = survey(root, with_privileged=True)
    names = [os.path.join(root, name) for name, _why in PROTECTED_NAMES]
    new = [path for path in names if os.path.lexists(path) and path not in known]
    new += [
        folder for folder in found.git_folders if not any(path.startswith(folder + "/") for path in known)
    ]
    new += [path for path in found.git_files if path not in known]
    new += [git_detour(folder) for folder in found.git_folders if is_detour(folder, found.git_folders)]
    new += [
        git_detour(folder)
        for folder in found.linked_folders
        if git_detour(folder) not in known and is_detour(folder, found.git_folders)
    ]
    return sorted({*new, *found.doors, *found.privileged})


def _is_plain(path: str) -> bool:
    """A folder or a regular file, and no link: a link cannot be covered, and leads nowhere inside."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)
