"""What git on the host would run out of a worker's folder, by settings that are there already.

Settings that the worker cannot touch (the repository's own, protected; the user's; the
machine's) may name files and folders that it can: ``core.hooksPath = .githooks``,
``include.path = ../.gitconfig``, a filter that calls ``tools/strip.py``. Hook folders, included
files and file-system monitors are few and obeyed by every `git status`: they are covered
like git's own. Programs that git calls for some files or some commands are often the very
code that the worker is to change: they are watched, and named if they changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from msgspec import Struct

from stockade.sandbox.git_config import Setting, command_words, is_boolean, is_true, parse_config
from stockade.sandbox.view import is_below

_READ_LIMIT_BYTES = 1 << 20
_INCLUDES_DEEP = 10  # as git
_COMMONDIR = "commondir"


class GitReach(Struct):
    """Paths below the writable folder, each with the setting that names it.

    Attributes:
        hook_folders: Folders from which git takes hooks, there or not.
        files: Included settings and file-system monitors, there or not.
        commands: Files that git runs as part of a command line.
        with_worktree_config: Git folders in which git obeys ``config.worktree``.
    """

    hook_folders: dict[str, str]
    files: dict[str, str]
    commands: dict[str, str]
    with_worktree_config: list[str]


def probe_git_reach(root: str, git_folders: Sequence[str], git_files: Sequence[str], home: str) -> GitReach:
    """Read the settings that govern a writable folder.

    Args:
        root: The writable folder, a real path.
        git_folders: Whole git folders inside it.
        git_files: Files named ``.git`` inside it (work trees, submodules).
        home: The operator's home.
    """
    reach = GitReach({}, {}, {}, [])
    trees = _trees_by_folder(root, git_folders, git_files)
    everywhere = [entry for path in _shared_files(home) for entry in _settings(path, home)]
    for folder, places in trees.items():
        own = list(_settings(os.path.join(folder, "config"), home))
        own += _settings(os.path.join(folder, "config.worktree"), home)
        _note_files(reach, root, own, home)
        for tree in places:
            _note_settings(reach, root, tree, [*everywhere, *own], home)
        if any(entry.name == "extensions.worktreeconfig" and is_true(entry.value) for entry, _from in own):
            reach.with_worktree_config.append(folder)
    _note_files(reach, root, everywhere, home)
    return reach


def _shared_files(home: str) -> list[str]:
    """The machine's settings and the user's (git-config(1), FILES)."""
    system = os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [system, named]
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [system, os.path.join(home, ".gitconfig"), os.path.join(config, "git", "config")]


def _trees_by_folder(root: str, git_folders: Sequence[str], git_files: Sequence[str]) -> dict[str, list[str]]:
    """The git folders that govern something here, with the work trees in which git would be called."""
    trees: dict[str, list[str]] = {}
    for folder in git_folders:
        is_usual = os.path.basename(folder) == ".git"
        trees.setdefault(folder, []).append(os.path.dirname(folder) if is_usual else folder)
    here = root
    above = []
    while not os.path.lexists(os.path.join(here, ".git")) and here != "/":
        here = os.path.dirname(here)
    if here != root or not git_folders:
        above = [os.path.join(here, ".git")]
    for path in (*git_files, *above):
        folder = _whole_folder(path)
        if folder:
            trees.setdefault(folder, []).append(os.path.dirname(path))
    return trees


def _whole_folder(path: str) -> str:
    """The git folder with settings that a ``.git`` stands for, file or folder; empty if none."""
    folder = path
    if os.path.isfile(path):
        text = _read(path).decode(errors="replace")
        if not text.startswith("gitdir:"):
            return ""
        folder = os.path.join(os.path.dirname(path), text.removeprefix("gitdir:").strip())
    common = _read(os.path.join(folder, _COMMONDIR)).decode(errors="replace").strip()
    return os.path.realpath(os.path.join(folder, common)) if os.path.isdir(folder) else ""


def _settings(path: str, home: str, depth: int = 0) -> Iterator[tuple[Setting, str]]:
    """The settings of a file and of those that it includes, each with the file that it stands in."""
    for entry in parse_config(_read(path).decode(errors="replace")):
        yield entry, path
        if entry.section in ("include", "includeif") and entry.key == "path" and depth < _INCLUDES_DEEP:
            yield from _settings(_place(entry.value, os.path.dirname(path), home), home, depth + 1)


def _note_files(reach: GitReach, root: str, entries: Sequence[tuple[Setting, str]], home: str) -> None:
    for entry, source in entries:
        if entry.section in ("include", "includeif") and entry.key == "path":
            path = _place(entry.value, os.path.dirname(source), home)
            if is_below(path, root):
                reach.files[path] = f"{entry.name} in {source}"


def _note_settings(
    reach: GitReach, root: str, tree: str, entries: Sequence[tuple[Setting, str]], home: str
) -> None:
    """What the settings name, as seen from one work tree: relative paths begin there (git-config(1))."""
    for entry, source in entries:
        said = f"{entry.name} in {source}"
        if entry.name == "core.hookspath":
            path = _place(entry.value, tree, home)
            if is_below(path, root) and path != root:
                reach.hook_folders[path] = said
        elif entry.name == "core.fsmonitor" and not is_boolean(entry.value):
            path = _place(entry.value.split()[0], tree, home)
            if is_below(path, root):
                reach.files[path] = said
        for word in command_words(entry):
            path = _place(word, tree, home)
            if is_below(path, root) and os.path.isfile(path):
                reach.commands[path] = said


def _place(value: str, base: str, home: str) -> str:
    """A path of a setting, made whole, its links followed as git would."""
    if value.startswith("~/"):
        value = os.path.join(home, value[2:])
    return os.path.realpath(os.path.join(base, value))


def _read(path: str) -> bytes:
    """A settings file, or nothing. It may lie in the worker's folder: no FIFO, no endless file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, _READ_LIMIT_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
