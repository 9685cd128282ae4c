"""The plan of one sandbox: everything that will be done, as a value. Pure.

`plan_sandbox` turns what was asked for and what the host has into a `SandboxPlan`; the
same plan is printed by ``--dry-run``, compared in tests, and carried out by supervise.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from stockade.errors import HostError, UserError
from stockade.policy.model import ExecPolicy
from stockade.sandbox import seal
from stockade.sandbox.environment import plan_environment
from stockade.sandbox.limits import LimitPlan, LimitRequest, plan_limits
from stockade.sandbox.obeyed import KeptLink, Watched
from stockade.sandbox.paths import PathFact
from stockade.sandbox.procfs import ProcEntry, proc_mounts
from stockade.sandbox.room import RoomTools
from stockade.sandbox.seal import SealFacts, SealPlan, plan_seal
from stockade.sandbox.view import (
    Mount,
    MountKind,
    base_mounts,
    bind,
    by_depth,
    chain_below,
    hide_mounts,
    identity_mounts,
    is_below,
)

# `privileges` is a name of `--without-layer` too, and is never given up: the worker would be the host's root.
REMOVABLE_LAYERS = frozenset({"room", *seal.LAYERS})


class SandboxRequest(Struct, frozen=True, kw_only=True):
    """What is asked for.

    Attributes:
        argv: The command; its first word is looked up as a shell would.
        workspace: The operator's working folder, links and all.
        read, write, hide: Absolute paths; `write` opens what is otherwise read-only.
        invisible: Our own files (policy, ledger), covered wherever the view shows them.
        caller_environment: The environment of whoever started us.
        extra_environment: ``NAME`` or ``NAME=VALUE`` that the operator passes besides.
        limits: Limits that somebody named.
        exec: Which programs may run besides the command.
        layers_off: Layers given up by ``--without-layer``.
        debugging_pipe: The caller's input and output are the command's descriptors 3 and 4.
        run_id: Shown inside; gives no right.
        cache_folder: Where searches of library folders are remembered; empty: nowhere.
    """

    argv: tuple[str, ...]
    workspace: Path
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    hide: tuple[Path, ...] = ()
    invisible: tuple[Path, ...] = ()
    caller_environment: Mapping[str, str] = {}
    extra_environment: tuple[str, ...] = ()
    limits: LimitRequest = LimitRequest()
    exec: ExecPolicy = ExecPolicy()
    layers_off: frozenset[str] = frozenset()
    debugging_pipe: bool = False
    run_id: str = ""
    cache_folder: str = ""


class HostFacts(Struct, frozen=True, kw_only=True):
    """What this host has, as far as a plan depends on it; made by probe.py.

    Attributes:
        uid, gid: Whose the worker will be, on the host.
        started_as_root: Stockade has root's rights and must give them up before bwrap.
        interpreter: Path, in the view, of the Python that runs the stage.
        root_links, root_folders: How ``/bin``, ``/lib`` and so on are made here.
        etc: Names below /etc that are shown, each with whether it is a folder.
        caches: Cache folders that are shown.
        proc: What of /proc is closed or read-only: (name, is a folder).
        workspace, read, write, hide: The judged paths of the request.
        invisible: The request's own files: (path, is a folder, is there already).
        own_identities: (device, inode) of those that are there.
        doors: Sockets of the host in folders of the system: covered.
        protected: Paths inside writable folders that stay read-only.
        held: Folders that stand in writable ones for the length of the run, empty (hold.py).
        kept_links, watched: What is compared at the end (protection.py).
        homes: Folders in which shells and logins look for their files.
        pinned: The folders above those, up to the writable folder.
        libraries: Folders and files outside /usr that the command needs: (fact, why).
        links: Links (path, target) outside the view that lead to those.
        program: The file to execute; empty lets the search path decide inside.
        workspace_link: The logical path by which the operator came to the workspace, if a link.
        stdin_is_terminal and so on: What the caller's standard streams are.
        seal: What may run here, and where code may be loaded from.
        notes: Things the operator should know.
    """

    uid: int
    gid: int
    started_as_root: bool
    machine: str
    bwrap: str
    tools: RoomTools
    interpreter: str
    root_links: tuple[tuple[str, str], ...]
    root_folders: tuple[str, ...]
    etc: tuple[tuple[str, bool], ...]
    caches: tuple[str, ...]
    workspace: PathFact
    proc: tuple[ProcEntry, ...] = ()
    doors: tuple[str, ...] = ()
    read: tuple[PathFact, ...] = ()
    write: tuple[PathFact, ...] = ()
    hide: tuple[PathFact, ...] = ()
    invisible: tuple[tuple[str, bool, bool], ...] = ()
    own_identities: Mapping[str, tuple[int, int]] = {}
    protected: tuple[PathFact, ...] = ()
    held: tuple[PathFact, ...] = ()
    kept_links: tuple[KeptLink, ...] = ()
    watched: tuple[Watched, ...] = ()
    homes: frozenset[str] = frozenset()
    pinned: tuple[PathFact, ...] = ()
    libraries: tuple[tuple[PathFact, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    program: str = ""
    workspace_link: str = ""
    stdin_is_terminal: bool = False
    stdout_is_terminal: bool = False
    stderr_is_terminal: bool = False
    seal: SealFacts = SealFacts()
    notes: tuple[str, ...] = ()


class SandboxPlan(Struct, frozen=True, kw_only=True):
    """What will be done.

    Attributes:
        argv: The command as given.
        program: The file to execute, empty for a look-up in PATH inside.
        cwd: The worker's folder: the same path inside and outside.
        environment: All of the worker's variables.
        mounts: The view, in the order in which it is put up.
        to_make: Folders (with their mode) that are made on the host before they can be covered.
        stops, holds: Files and folders that are made for the length of the run, to be covered too
            (detour.py, hold.py).
        kept_links, watched, homes: For the review at the end (left_behind.py).
        debugging_pipe: Copies of the caller's input and output are the worker's descriptors 3 and 4.
        terminal: The worker gets a terminal of ours; `stderr_in_terminal` if its standard
            error goes there too.
        worker_uid, worker_gid: Who the worker is on the host.
        limits: The named limits and the defaults; who holds them is found out at the start (holding.py).
        seal: What no command may step over.
        layers_off: What was given up.
    """

    argv: tuple[str, ...]
    program: str
    cwd: str
    environment: dict[str, str]
    mounts: tuple[Mount, ...]
    workspace: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    protected: tuple[Path, ...]
    to_make: tuple[tuple[str, int], ...]
    stops: tuple[str, ...]
    holds: tuple[str, ...]
    kept_links: tuple[KeptLink, ...]
    watched: tuple[Watched, ...]
    homes: frozenset[str]
    terminal: bool
    stderr_in_terminal: bool
    debugging_pipe: bool
    worker_uid: int
    worker_gid: int
    started_as_root: bool
    machine: str
    bwrap: str
    tools: RoomTools
    interpreter: str
    limits: LimitPlan
    seal: SealPlan
    layers_off: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def late_mounts(self) -> list[tuple[str, bool]]:
        """What finish_view.py puts up: (path, becomes read-only)."""
        return [(m.target, m.kind is MountKind.READ_ONLY) for m in self.mounts if m.is_late]

    @property
    def guarded(self) -> list[str]:
        """What the worker must not change by another name (other_names.py): protected, hidden, or our own."""
        kept = (m for m in self.mounts if (m.is_late and m.kind is MountKind.READ_ONLY) or m.covers)
        return [mount.target for mount in kept]

    @property
    def has_room(self) -> bool:
        return "room" not in self.layers_off

    def describe(self) -> list[str]:
        """The plan as lines for a person, without its notes; ``--dry-run`` prints them."""
        import shlex  # a start that is no rehearsal does without

        who = f"uid {self.worker_uid}, gid {self.worker_gid} on the host"
        if self.started_as_root:
            who += " (started as root: changed before bubblewrap, files keep their owner by id-mapped binds)"
        lines = [
            f"command: {shlex.join(self.argv)}" + (f" ({self.program})" if self.program else ""),
            f"folder: {self.cwd}",
            f"worker: {who}; no capabilities, no new privileges",
            "room: " + ("own network, every way leads to the gateway" if self.has_room else "GIVEN UP"),
            *(f"{name}: GIVEN UP" for name in seal.LAYERS if name in self.layers_off),
            "streams: " + self._streams(),
        ]
        lines += self.seal.describe()
        lines += self.limits.describe()
        lines += [f"view: {mount.describe()}" for mount in self.mounts]
        lines += [f"environment: {name}={value}" for name, value in sorted(self.environment.items())]
        return lines

    def _streams(self) -> str:
        if self.debugging_pipe:
            return "pipes; the caller's input and output are its descriptors 3 and 4"
        return "a terminal of ours" if self.terminal else "pipes"


def plan_sandbox(request: SandboxRequest, host: HostFacts) -> SandboxPlan:
    """Decide the whole sandbox.

    Raises:
        UserError: A layer is given up that cannot be, or there is no command.
        HostError: The kernel lacks a layer that was not given up.
    """
    _refuse_unknown_layers(request.layers_off)
    _refuse_missing_layers(request.layers_off, host)
    if not request.argv or not request.argv[0]:
        raise UserError("no-command", "there is no command to run", "stockade run [options] -- CMD...")
    operator = [host.workspace, *host.read, *host.write]
    folders = [
        "/usr",
        "/bin",
        "/sbin",
        *(fact.path for fact in operator),
        *(f.path for f, _ in host.libraries),
    ]
    environment = plan_environment(
        request.caller_environment,
        visible_folders=folders,
        extra=request.extra_environment,
        run_id=request.run_id,
        workspace=host.workspace.path,
        temporary=_temporary_folder(request, host),
    )
    return SandboxPlan(
        argv=request.argv,
        program=host.program,
        cwd=host.workspace.path,
        environment=environment,
        mounts=tuple(plan_mounts(host, has_room="room" not in request.layers_off)),
        workspace=Path(host.workspace.path),
        writable=tuple(Path(fact.path) for fact in host.write),
        readable=tuple(Path(fact.path) for fact in host.read),
        hidden=tuple(Path(fact.path) for fact in host.hide),
        protected=tuple(Path(fact.path) for fact in (*host.protected, *host.held)),
        to_make=tuple(_folders_to_make(host)),
        stops=tuple(fact.path for fact in host.protected if fact.identity is None and not fact.is_folder),
        holds=tuple(fact.path for fact in host.held),
        kept_links=host.kept_links,
        watched=host.watched,
        homes=host.homes,
        terminal=host.stdin_is_terminal and host.stdout_is_terminal and not request.debugging_pipe,
        stderr_in_terminal=host.stderr_is_terminal,
        debugging_pipe=request.debugging_pipe,
        worker_uid=host.uid,
        worker_gid=host.gid,
        started_as_root=host.started_as_root,
        machine=host.machine,
        bwrap=host.bwrap,
        tools=host.tools,
        interpreter=host.interpreter,
        limits=plan_limits(request.limits, request.run_id),
        seal=plan_seal(
            request.exec,
            host.seal,
            writable=[fact.path for fact in host.write],
            worker_uid=host.uid,
            layers_off=request.layers_off,
        ),
        layers_off=request.layers_off,
        notes=host.notes,
    )


def _temporary_folder(request: SandboxRequest, host: HostFacts) -> str:
    """Where programs put what lasts as long as they do, sockets among it.

    With a writable folder of the host's below /tmp no socket can be made in /tmp (landlock.plan_rules).
    """
    is_taken = any(is_below(fact.path, "/tmp") for fact in host.write)
    return "/var/tmp" if request.exec.unix_sockets and is_taken else "/tmp"


def _refuse_unknown_layers(layers_off: frozenset[str]) -> None:
    refused = sorted(layers_off - REMOVABLE_LAYERS)
    if refused:
        raise UserError(
            "layer-not-removable",
            f"--without-layer={refused[0]}: this layer does not exist yet or is never given up",
            f"what can be given up: {', '.join(sorted(REMOVABLE_LAYERS))}",
        )


def _refuse_missing_layers(layers_off: frozenset[str], host: HostFacts) -> None:
    if host.seal.landlock_abi == 0 and "landlock" not in layers_off:
        from stockade.sandbox.seal_remedies import REMEDIES

        number = host.seal.landlock_errno
        raise HostError(
            "landlock-missing",
            f"layer landlock cannot be had here (errno {number}, {os.strerror(number)}), and no other layer"
            " keeps a permitted program from writing code into itself through /proc/self/mem",
            REMEDIES["landlock"],
        )


# --- the view ------------------------------------------------------------------------------


def plan_mounts(host: HostFacts, has_room: bool = True) -> list[Mount]:
    """The whole view in order; see view.py for why in this order."""
    mounts = base_mounts(
        root_links=host.root_links, root_folders=host.root_folders, etc=host.etc, caches=host.caches
    )
    mounts += proc_mounts(host.proc)
    mounts += identity_mounts(host.uid, host.gid, has_room)
    folders = by_depth([*_library_mounts(host), *_operator_mounts(host)])
    mounts += folders
    writable = [mount.target for mount in folders if mount.kind is MountKind.WRITABLE]
    mounts += _protecting_mounts(host, writable)
    mounts += [
        Mount(kind=MountKind.READ_ONLY, target=path, source="/dev/null", why="a socket of the host")
        for path in host.doors
    ]
    mounts += _hiding_mounts(host, [mount.target for mount in folders])
    mounts += [
        Mount(kind=MountKind.LINK, target=path, source=target, why="leads to the program")
        for path, target in host.links
    ]
    if host.workspace_link:
        came_by = "the path by which you came here"
        mounts.append(
            Mount(kind=MountKind.LINK, target=host.workspace_link, source=host.workspace.path, why=came_by)
        )
    mounts.append(Mount(kind=MountKind.FREEZE, target="/", why="nothing can be added beside the above"))
    return mounts


def _owned(host: HostFacts, fact: PathFact) -> tuple[int, int] | None:
    return fact.owner if host.started_as_root else None


def _operator_mounts(host: HostFacts) -> list[Mount]:
    """Workspace, files.read and files.write; a path inside a wider writable one is writable already."""
    writable = {fact.path: fact for fact in host.write}
    readable = {host.workspace.path: host.workspace} | {fact.path: fact for fact in host.read}
    mounts = []
    for path, fact in (readable | writable).items():
        wider = [folder for folder in writable if folder != path and is_below(path, folder)]
        if wider:
            continue
        kind = MountKind.WRITABLE if path in writable else MountKind.READ_ONLY
        why = (
            "workspace"
            if path == host.workspace.path
            else "files.write"
            if path in writable
            else "files.read"
        )
        mounts.append(bind(path, kind, why, owner=_owned(host, fact), identity=fact.identity))
    return mounts


def _library_mounts(host: HostFacts) -> list[Mount]:
    shown = [fact.path for fact in (host.workspace, *host.read, *host.write)]
    shown += [
        f"/etc/{name}" for name, _is_folder in host.etc
    ]  # there already; and what we write in /etc comes first
    shown += [mount.target for mount in identity_mounts(host.uid, host.gid)]
    return [
        bind(fact.path, MountKind.READ_ONLY, why, owner=_owned(host, fact), identity=fact.identity)
        for fact, why in host.libraries
        if not any(is_below(fact.path, folder) for folder in shown)
    ]


def _protecting_mounts(host: HostFacts, writable: Sequence[str]) -> list[Mount]:
    """Read-only binds on what must stay, and a bind on each folder above it up to the writable root.

    Without the latter the worker would rename ``.git`` away and put one with other hooks
    in its place, or move the ledger's folder; a mount point cannot be renamed.
    """
    pinned: dict[str, Mount] = {}
    covers: list[Mount] = []
    for fact in (*host.protected, *host.held):
        root = _root_of(fact.path, writable)
        if root:
            pinned |= _pins(host, root, fact.path)
            why = "run or obeyed by other programs later"
            covers.append(_late(fact.path, MountKind.READ_ONLY, why, fact.identity))
    for path, _is_folder, _is_there in host.invisible:
        root = _root_of(path, writable)
        if root:
            pinned |= _pins(host, root, path)
    # Below a cover nothing can be renamed anyway.
    pins = [pin for path, pin in pinned.items() if not any(is_below(path, cover.target) for cover in covers)]
    return by_depth([*pins, *covers])


def _root_of(path: str, writable: Sequence[str]) -> str:
    """The innermost writable folder that a path lies in, itself left out; empty if none."""
    return max(
        (folder for folder in writable if folder != path and is_below(path, folder)), key=len, default=""
    )


def _pins(host: HostFacts, root: str, path: str) -> dict[str, Mount]:
    identities = {fact.path: fact.identity for fact in host.pinned}
    return {
        folder: _late(folder, MountKind.WRITABLE, "cannot be renamed", identities.get(folder))
        for folder in chain_below(root, path)
    }


def _late(path: str, kind: MountKind, why: str, identity: tuple[int, int] | None) -> Mount:
    return Mount(kind=kind, target=path, source=path, why=why, identity=identity, is_late=True)


def _folders_to_make(host: HostFacts) -> list[tuple[str, int]]:
    """Hook folders that git would make too, and the ledger's, which the run is about to make itself."""
    shown = [fact.path for fact in (host.workspace, *host.read, *host.write)]
    found = [(fact.path, 0o755) for fact in host.protected if fact.identity is None and fact.is_folder]
    found += [
        (path, 0o700)
        for path, _is_folder, is_there in host.invisible
        if not is_there and any(is_below(path, folder) for folder in shown)
    ]
    return found


def _hiding_mounts(host: HostFacts, shown: Sequence[str]) -> list[Mount]:
    wanted = {fact.path: (fact.is_folder, "files.hide", fact.identity) for fact in host.hide}
    for path, is_folder, _is_there in host.invisible:
        if any(is_below(path, folder) for folder in shown):
            wanted[path] = (is_folder, "Stockade's own", host.own_identities.get(path))
    outermost = [
        path for path in wanted if not any(path != other and is_below(path, other) for other in wanted)
    ]
    return [mount for path in sorted(outermost) for mount in hide_mounts(path, *wanted[path])]
