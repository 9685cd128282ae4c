"""One folder with all below it: which files are programs, remembered from start to start.

A full look opens every file, which takes a tenth of a second for 10,000 files (and ten
times that from a cold disk). What was found is therefore kept, with the stamps under which
it holds:

- Names come and go with a folder's ctime. So for each folder its device, inode and ctime
  are compared, one system call a folder; one that changed is read again alone. (mtime would
  add nothing: whatever sets it sets ctime.)
- Content changes in place without the folder noticing. Where the worker cannot have been
  root, a file that root alone may write is taken to stay what it is (root needs no trick;
  and its tools replace files, which the folder does notice). Every other file is compared
  as well: mtime can be set back, ctime cannot. (But on FAT and sshfs, which have none.)
- A stamp younger than two seconds says nothing: a second change within the same tick of the
  clock, or of a file system that counts in whole seconds, would leave it as it is. Such
  entries are looked at again at the next start.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

import stockade
from stockade.sandbox.library_cache import cache_name, load_cached, save_cached
from stockade.sandbox.library_reading import EndsAt, Folder, LeadsTo, Reading, Rules, are_unchanged

# Raised when what is remembered, or how a file is judged, changes its meaning.
_FORMAT = 2


class Tree(Struct, frozen=True):
    """What a tree holds, as paths.

    Attributes:
        programs: Its program files, and those of its folders that could hide some.
        ends: Folders at which the tree ends.
        leads: Where links lead, for those of which that was asked.
        linked: Files that have other names too, of those that a worker may have written.
    """

    programs: list[str]
    ends: list[str]
    leads: list[str]
    linked: list[str]


class _Memory(Struct, array_like=True, gc=False):
    """One file of the cache. In columns: it is read at each start, and this takes a fifth of the time.

    Attributes:
        made_by: Which program made it, for whom; see `scan_tree`.
        root: The tree's.
        paths: Of all its folders.
        stamps: Device, inode, ctime of each, one after the other.
        watched: For folders that have some: number of the folder, names, stamps.
        tree: What all this amounts to.
        leads_of: For folders that have some: number of the folder, leads.
    """

    made_by: str
    root: str
    paths: list[str]
    stamps: list[int]
    watched: list[tuple[int, list[str], list[int]]]
    tree: Tree
    leads_of: list[tuple[int, list[str]]]


def scan_tree(
    root: str,
    rules: Rules,
    *,
    ends_at: EndsAt | None = None,
    leads_to: LeadsTo | None = None,
    valid_with: str = "",
) -> Tree:
    """Find the programs of a tree.

    Args:
        root: A real path; links below it are not followed, other file systems are entered.
        rules: How to read and where to remember.
        ends_at: Where to stop.
        leads_to: What to note of links.
        valid_with: What else the findings depend on: remembered ones of another text are not used.

    Raises:
        HostError: The tree is too large to be read, its path goes through a link, or the process has no
            descriptors left.
    """
    reader = (os.geteuid(), os.getegid(), *os.getgroups())  # what can be read at all depends on it
    made_by = f"{_FORMAT} {stockade.__version__} {reader} {rules.is_root_trusted} {valid_with}"
    memory = _recall(root, made_by, rules)
    remembered: dict[str, Folder] = {}
    if memory is not None:
        try:
            if _holds(memory):
                return memory.tree
            remembered = _folders_of(memory)
        except (LookupError, ValueError):  # its numbers do not fit together
            pass
    folders = Reading(rules, ends_at, leads_to).walk(root, remembered)
    tree = _tree_of(folders)
    if rules.cache_folder:
        _remember(made_by, root, folders, tree, rules)
    return tree


def _recall(root: str, made_by: str, rules: Rules) -> _Memory | None:
    content = load_cached(rules.cache_folder, cache_name(root)) if rules.cache_folder else b""
    try:
        memory = msgspec.json.decode(content, type=_Memory)
    except msgspec.MsgspecError:
        return None
    return memory if (memory.made_by, memory.root) == (made_by, root) else None


def _remember(made_by: str, root: str, folders: list[Folder], tree: Tree, rules: Rules) -> None:
    memory = _Memory(
        made_by,
        root,
        [folder.path for folder in folders],
        [number for folder in folders for number in folder.stamp],
        [(n, folder.watched, folder.watched_stamps) for n, folder in enumerate(folders) if folder.watched],
        tree,
        [(n, folder.leads) for n, folder in enumerate(folders) if folder.leads],
    )
    try:
        content = msgspec.json.encode(memory)
    except UnicodeEncodeError:  # a name that is not UTF-8: such a tree is read each time
        return
    save_cached(rules.cache_folder, cache_name(root), content)


def _holds(memory: _Memory) -> bool:
    return are_unchanged("", memory.paths, memory.stamps) and all(
        are_unchanged(f"{memory.paths[number]}/", names, stamps) for number, names, stamps in memory.watched
    )


def _folders_of(memory: _Memory) -> dict[str, Folder]:
    """The folders as they were read, for a walk that reads some of them again."""
    numbers = iter(memory.stamps)
    stamps = zip(numbers, numbers, numbers, strict=True)
    folders = {path: Folder(path, list(stamp)) for path, stamp in zip(memory.paths, stamps, strict=True)}
    in_order = list(folders.values())
    for number, names, of_names in memory.watched:
        if len(of_names) != 3 * len(names):
            raise ValueError("a stamp is missing")
        in_order[number].watched = names
        in_order[number].watched_stamps = of_names
    for number, leads in memory.leads_of:
        in_order[number].leads = leads
    for path in memory.tree.ends:
        folders[path].is_last = True
    for path in memory.paths[1:]:
        folders[os.path.dirname(path)].folders.append(os.path.basename(path))
    for path in memory.tree.linked:
        folders[os.path.dirname(path)].linked.append(os.path.basename(path))
    for path in memory.tree.programs:
        if path in folders:
            folders[path].is_opaque = True
        else:
            folders[os.path.dirname(path)].programs.append(os.path.basename(path))
    return folders


def _tree_of(folders: list[Folder]) -> Tree:
    return Tree(
        [f"{folder.path}/{name}" for folder in folders for name in folder.programs]
        + [folder.path for folder in folders if folder.is_opaque],
        [folder.path for folder in folders if folder.is_last],
        [lead for folder in folders for lead in folder.leads],
        [f"{folder.path}/{name}" for folder in folders for name in folder.linked],
    )
