"""After a run: what the worker left that other programs of the host would run or obey.

Nothing inside is alive any more. What would be obeyed *without a question* is moved aside,
to ``NAME.left-by-RUN``, where nobody looks for it and the operator can; the rest is named.
What is moved is never more than the culprit: a new repository keeps its work and loses the
hooks and settings by which `git status` would run something.

Links are not followed, and no name is replaced: the folder around is opened by a path without
links, and a name that is taken (the worker knows the run's id) gets another ending.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from stockade.sandbox import kernel
from stockade.sandbox.detour import WORKTREE_CONFIG, git_detour, is_detour
from stockade.sandbox.git_config import is_plain_config
from stockade.sandbox.hold import is_hold
from stockade.sandbox.obeyed import ASKED, OF_A_HOME, UNASKED, KeptLink, Watched
from stockade.sandbox.paths import read_regular
from stockade.sandbox.protection import file_state
from stockade.sandbox.survey import Survey, survey
from stockade.sandbox.view import is_below

_CONFIG_LIMIT_BYTES = (1 << 16) + 1
_TODO_LIMIT_BYTES = 1 << 20
_ATTEMPTS = 8
# A clock that is a little off (NFS) makes us look at more files, not at fewer.
CLOCK_SLACK_S = 60.0


class Before(Struct, frozen=True, kw_only=True):
    """What was known before the run.

    Attributes:
        run_id: Part of the name that moved things get.
        protected: What was covered, and so is as it was.
        held: What held a name for the run (hold.py), by path: (device, inode).
        opened: What the operator gave to the worker by name.
        links: Links in protected places.
        watched: Files that git runs or reads by a setting.
        homes: Folders in which shells and logins look for their files.
        began_s: When the run began, seconds since 1970.
    """

    run_id: str
    protected: frozenset[str]
    held: Mapping[str, tuple[int, int]] = {}
    opened: frozenset[str] = frozenset()
    links: tuple[KeptLink, ...] = ()
    watched: tuple[Watched, ...] = ()
    homes: frozenset[str] = frozenset()
    began_s: float = 0.0


def review(root: str, before: Before) -> list[str]:
    """Look through a folder that a worker could write: the paths to look at, some of them moved by us."""
    left = [*_changed_links(root, before), *_new_names(root, before)]
    found = survey(root, privileged_since_s=before.began_s - CLOCK_SLACK_S)
    left += _new_git(root, found, before)
    left += _changed_files(before)
    left += [*found.doors, *found.privileged, *found.closed]
    if not found.is_complete:
        left.append(root)  # more names than we look at: nobody has seen all of it
    return sorted({path for path in left if is_below(path, root)})


def _changed_links(root: str, before: Before) -> Iterator[str]:
    """A link in a protected place that is another one now: the old one comes back."""
    for link in before.links:
        if not is_below(link.path, root) or _link_text(link.path) == link.text:
            continue
        if os.path.lexists(link.path):
            yield move_aside(link.path, before.run_id)
        with contextlib.suppress(OSError):
            _put_back(link)


def _link_text(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _put_back(link: KeptLink) -> None:
    parent = kernel.open_without_links(os.path.dirname(link.path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        name = os.path.basename(link.path)
        os.symlink(link.text, name, dir_fd=parent)
        if os.geteuid() == 0:
            around = os.fstat(parent)
            os.chown(name, around.st_uid, around.st_gid, dir_fd=parent, follow_symlinks=False)
    finally:
        os.close(parent)


def _new_names(root: str, before: Before) -> Iterator[str]:
    is_home = root in before.homes
    kept = {link.path for link in before.links} | before.protected | before.opened
    for obeyed in (*UNASKED, *ASKED, *OF_A_HOME):
        path = os.path.join(root, obeyed.name)
        if path in kept or not os.path.lexists(path) or _is_held(path, before):
            continue
        is_obeyed_at_once = obeyed in UNASKED or (is_home and obeyed in OF_A_HOME)
        yield move_aside(path, before.run_id) if is_obeyed_at_once else path


def _is_held(path: str, before: Before) -> bool:
    """Another run's hold, or ours, which the operator has filled: a worker could not."""
    status = os.lstat(path)
    return before.held.get(path) == (status.st_dev, status.st_ino) or is_hold(path)


def _changed_files(before: Before) -> Iterator[str]:
    """Programs of git's that changed are named; settings of git's that did not exist are moved aside."""
    for file in before.watched:
        if file_state(file.path) != file.state:
            yield move_aside(file.path, before.run_id) if file.state is None else file.path


# --- git ---------------------------------------------------------------------------------------


def _new_git(root: str, found: Survey, before: Before) -> Iterator[str]:
    """New git folders, and in them what makes git run something; detours around protected settings."""
    for folder in found.git_folders:
        if not _is_known(folder, before):
            yield folder
            yield from _disarm(folder, root, before.run_id)
        yield from _planned_commands(folder, before)
    for folder in (*found.git_folders, *found.linked_folders):
        path = git_detour(folder)
        if not _is_protected(path, before) and is_detour(folder, found.git_folders):
            yield move_aside(path, before.run_id)
    for folder in found.linked_folders:
        path = os.path.join(folder, WORKTREE_CONFIG)
        if not _is_protected(path, before) and not _is_plain(path, root):
            yield move_aside(path, before.run_id)
        yield from _planned_commands(folder, before)
    kept = {link.path for link in before.links}
    named = (path for path in (*found.git_files, *found.git_links) if path not in kept)
    yield from (path for path in named if not _is_protected(path, before))


def _is_known(folder: str, before: Before) -> bool:
    """Whether a git folder was there before: something in it was protected, or something around it."""
    inside = any(path.startswith(folder + "/") for path in before.protected)
    return inside or _is_protected(folder, before)


def _is_protected(path: str, before: Before) -> bool:
    return any(is_below(path, protected) for protected in before.protected)


def _disarm(folder: str, root: str, run_id: str) -> Iterator[str]:
    hooks = os.path.join(folder, "hooks")
    if os.path.lexists(hooks) and not _holds_samples_only(hooks):
        yield move_aside(hooks, run_id)
    for name in ("config", WORKTREE_CONFIG):
        path = os.path.join(folder, name)
        if not _is_plain(path, root):
            yield move_aside(path, run_id)


def _holds_samples_only(path: str) -> bool:
    """What `git init` makes; a link to another folder is something else."""
    try:
        fd = kernel.open_without_links(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return all(name.endswith(".sample") for name in os.listdir(fd))
    finally:
        os.close(fd)


def _is_plain(path: str, root: str) -> bool:
    """Whether a settings file is harmless, or not there."""
    folder = os.path.dirname(path)

    def is_inside(text: str) -> bool:
        return is_below(os.path.normpath(os.path.join(folder, text)), root)

    try:
        return is_plain_config(read_regular(path, _CONFIG_LIMIT_BYTES), is_inside)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _planned_commands(folder: str, before: Before) -> Iterator[str]:
    """A rebase that waits to be continued, with lines that run a command (git-rebase(1), ``exec``)."""
    path = os.path.join(folder, "rebase-merge", "git-rebase-todo")
    state = file_state(path)
    if state is None or state[2] / 1e9 < before.began_s - CLOCK_SLACK_S:
        return
    with contextlib.suppress(OSError):
        lines = read_regular(path, _TODO_LIMIT_BYTES).splitlines()
        if any(line.split(b" ")[0] in (b"exec", b"x") for line in lines):
            yield path


# --- moving ------------------------------------------------------------------------------------


def move_aside(path: str, run_id: str) -> str:
    """Give a name another ending, so that nobody obeys it; gives the new path, or the old one if it stays."""
    folder, name = os.path.split(path)
    try:
        parent = kernel.open_without_links(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return path
    try:
        aside = _rename(parent, name, _endings(run_id))
    except PermissionError:
        aside = _rename_in_closed(parent, name, run_id)
    except OSError:
        aside = ""
    finally:
        os.close(parent)
    return os.path.join(folder, aside) if aside else path


def _endings(run_id: str) -> Sequence[str]:
    first = f"left-by-{run_id or 'worker'}"
    return [first, *(f"{first}-{os.urandom(4).hex()}" for _ in range(_ATTEMPTS))]


def _rename(parent: int, name: str, endings: Iterable[str]) -> str:
    for ending in endings:
        aside = f"{name}.{ending}"
        try:
            kernel.rename_to_free(name, aside, parent)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system without that way to rename
                raise
            os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
        return aside
    return ""


def _rename_in_closed(parent: int, name: str, run_id: str) -> str:
    """The worker took the right to write away from the folder around, which is ours."""
    mode = stat.S_IMODE(os.fstat(parent).st_mode)
    try:
        os.fchmod(parent, mode | stat.S_IRWXU)
        try:
            return _rename(parent, name, _endings(run_id))
        finally:
            os.fchmod(parent, mode)
    except OSError:
        return ""
