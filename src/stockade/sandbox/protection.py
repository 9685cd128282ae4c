"""What in a writable folder must stay as it is, there or not: found out before the run.

The names are obeyed.py's and those that git's settings add (git_reach.py). What exists is
covered read-only. What does not is held by an empty folder (hold.py) or a harmless file
(detour.py) where it would be obeyed at once, or else looked for at the end (left_behind.py).
A link cannot be covered: its target is, where it lies inside, and the link itself is
compared at the end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable

from stockade.errors import HostError, UserError
from stockade.sandbox.detour import WORKTREE_CONFIG, git_detour, needs_stop
from stockade.sandbox.git_reach import GitReach, probe_git_reach
from stockade.sandbox.hold import is_hold
from stockade.sandbox.obeyed import EVERY_NAME, IN_GIT, UNASKED, KeptLink, Protection, Watched
from stockade.sandbox.paths import PathFact, plain_fact
from stockade.sandbox.survey import Survey
from stockade.sandbox.view import chain_below, is_below

# Each costs some five mounts: a third of a second for so many, and more than in proportion beyond.
GIT_FOLDERS_LIMIT = 500


def probe_protection(
    root: PathFact, found: Survey, *, hidden: tuple[str, ...], opened: Collection[str], home: str
) -> Protection:
    """Find out what to protect in a writable folder.

    Args:
        root: The folder.
        found: A survey of it, or of a folder around.
        hidden: Covered anyway.
        opened: Named in ``files.write`` themselves: the operator means it.
        home: The operator's home.

    Raises:
        UserError: The folder holds this program's own code and little else.
        HostError: More git folders than can be covered.
    """
    _refuse_own_code(root.path)

    def ours(paths: Iterable[str]) -> list[str]:
        return [
            path
            for path in paths
            if is_below(path, root.path)
            and path not in opened
            and not any(is_below(path, place) for place in hidden)
        ]

    whole, linked = ours(found.git_folders), ours(found.linked_folders)
    _refuse_too_many(root.path, len(whole) + len(linked))
    reach = probe_git_reach(root.path, whole, ours(found.git_files), home)
    names = [os.path.join(root.path, obeyed.name) for obeyed in EVERY_NAME]
    names += [os.path.join(folder, name) for folder in (*whole, *linked) for name in IN_GIT]
    names += [*found.git_files, *reach.hook_folders, *reach.files]
    names += [*found.shelves, *_own_code()]
    covered, links = _existing(ours([*names, *found.git_links]), root.path)
    missing = [_to_be_made(path, is_folder=True) for path in ours(_missing_hooks(whole))]
    missing += [_to_be_made(path, is_folder=False) for path in ours(_missing_stops(whole, linked, reach))]
    held = [_to_be_made(path, is_folder=True) for path in ours(_names_to_hold(root.path, home, reach))]
    made = {fact.path for fact in (*missing, *held)}  # among them what a killed run has left there
    facts = [*(fact for fact in covered if fact.path not in made), *missing]
    whole_folders = [fact.path for fact in (*facts, *held) if fact.is_folder]
    return Protection(
        covered=tuple(_outermost(facts, whole_folders)),
        held=tuple(_outermost(held, whole_folders)),
        links=tuple(links),
        watched=_watched(ours([*reach.commands, *reach.files]), reach),
    )


def _outermost(facts: Iterable[PathFact], folders: Collection[str]) -> list[PathFact]:
    """Without those that lie in another protected folder, which is read-only as a whole."""
    return [
        fact
        for fact in facts
        if not any(fact.path != folder and is_below(fact.path, folder) for folder in folders)
    ]


def _own_code() -> list[str]:
    """Where this program's own code lies: what a worker wrote there would run outside, with the next run."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = [os.path.abspath(sys.prefix)] if sys.prefix != sys.base_prefix else []
    return [os.path.realpath(path) for path in (package, *environment)]


def _refuse_own_code(root: str) -> None:
    if own := next((path for path in _own_code() if is_below(root, path)), ""):
        raise UserError(
            "path-not-written",
            f"files.write: {root} belongs to Stockade itself ({own}), which no command may change",
            "install Stockade outside the folders that commands write (pipx, or an environment of its own)",
        )


def _refuse_too_many(root: str, count: int) -> None:
    if count > GIT_FOLDERS_LIMIT:
        raise HostError(
            "too-many-git-folders",
            f"{root} holds {count} git folders, and the settings and hooks of more than"
            f" {GIT_FOLDERS_LIMIT} cannot be protected",
            "give the command a smaller folder to write in, or hide what it does not need (files: hide)",
        )


def _existing(paths: Iterable[str], root: str) -> tuple[list[PathFact], list[KeptLink]]:
    """What there is at these paths, the shortest first; of links also what they lead to, if inside."""
    covered: dict[str, PathFact] = {}
    links: dict[str, KeptLink] = {}
    for path in sorted(paths, key=len):
        if os.path.islink(path):
            links[path] = KeptLink(path, os.readlink(path))
            path = os.path.realpath(path)
            if path == root or not is_below(path, root):
                continue
        fact = plain_fact(path)
        if fact is not None:
            covered[path] = fact
    return list(covered.values()), list(links.values())


def _to_be_made(path: str, *, is_folder: bool) -> PathFact:
    """A fact without an inode, of the owner and device of the first folder above that exists."""
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    status = os.stat(above)
    return PathFact(path, is_folder, status.st_uid, status.st_gid, status.st_dev, 0)


def _missing_hooks(folders: Iterable[str]) -> list[str]:
    """The ``hooks`` folders that git folders lack: empty, they are part of every ordinary repository."""
    paths = [os.path.join(folder, "hooks") for folder in folders]
    return [path for path in paths if not os.path.lexists(path)]


def _missing_stops(whole: Collection[str], linked: Collection[str], reach: GitReach) -> list[str]:
    """The stops that git folders lack (detour.py)."""
    paths = [git_detour(folder) for folder in whole]
    for folder in reach.with_worktree_config:
        places = [folder, *(path for path in linked if os.path.dirname(path) == f"{folder}/worktrees")]
        paths += [os.path.join(place, WORKTREE_CONFIG) for place in places if place in (*whole, *linked)]
    return [path for path in paths if needs_stop(path)]


def _names_to_hold(root: str, home: str, reach: GitReach) -> list[str]:
    """Settings of programs that the operator uses, and hook folders that git's settings name."""
    paths = [
        os.path.join(root, obeyed.name)
        for obeyed in UNASKED
        if any(os.path.lexists(os.path.join(home, sign)) for sign in obeyed.signs)
    ]
    for path in reach.hook_folders:
        # Of a path that is missing altogether the first missing folder is enough.
        paths.append(next((p for p in (*chain_below(root, path), path) if not os.path.lexists(p)), path))
    return [path for path in dict.fromkeys(paths) if not os.path.lexists(path) or is_hold(path)]


def _watched(paths: Collection[str], reach: GitReach) -> tuple[Watched, ...]:
    """Files that are run are compared as they are; settings that do not exist must not appear."""
    found = []
    for path in paths:
        state = file_state(path)
        if path in reach.commands or state is None:
            found.append(Watched(path, reach.commands.get(path) or reach.files[path], state))
    return tuple(found)


def file_state(path: str) -> tuple[int, int, int] | None:
    """What differs when a file was changed: inode, size, change time in ns. The last cannot be set."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_ctime_ns)
