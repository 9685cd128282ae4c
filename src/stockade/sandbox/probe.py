"""What this host has, as far as a sandbox depends on it. Reads, and changes nothing.

`probe_host` gathers the facts for one request; the plan is then pure. What a host can
*enforce* is found out by trying, in trial.py, for `stockade doctor`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable

from stockade.errors import HostError, UserError
from stockade.sandbox.environment import plan_search_path
from stockade.sandbox.obeyed import Protection, Watched
from stockade.sandbox.paths import PathFact, plain_fact, probe_path, probe_workspace, probe_writable
from stockade.sandbox.plan import HostFacts, SandboxRequest
from stockade.sandbox.procfs import probe_proc
from stockade.sandbox.program import resolve_program
from stockade.sandbox.room import RoomTools
from stockade.sandbox.seal_probe import probe_seal
from stockade.sandbox.survey import Survey, bound_sockets, refuse_doors, survey
from stockade.sandbox.view import CACHES_SHOWN, ETC_SHOWN, ETC_SHOWN_PREFIXES, chain_below, is_below

# One below `nobody`, which owns other things (NFS, daemons). No distribution hands it out: Debian's
# static ids end at 65534, its dynamic ones at 59999, systemd's dynamic users at 65519, and
# subordinate ids begin at 100000. If a site has given it away, the next free one below is taken.
FIRST_WORKER_UID = 65533
LAST_WORKER_UID = 65500

_ROOT_NAMES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TOOL_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

_REMEDIES = {
    "bwrap": ("bwrap-missing", "install bubblewrap (Debian, Ubuntu, Fedora, Arch: package bubblewrap)"),
    "nft": ("nft-missing", "install nftables (package nftables)"),
    "ip": ("ip-missing", "install iproute2 (package iproute2, on Fedora iproute)"),
}


def find_tool(name: str) -> str:
    """The program of the host, in the caller's PATH or the usual system folders.

    Raises:
        HostError: It is not there; the code and the remedy name it.
    """
    path = os.environ.get("PATH", "")
    for folder in [*path.split(":"), *(_TOOL_FOLDERS if path else ())]:
        candidate = os.path.join(folder, name)
        if folder.startswith("/") and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    code, remedy = _REMEDIES[name]
    raise HostError(code, f"{name} is not installed, so the command cannot be contained", remedy)


def probe_host(request: SandboxRequest) -> HostFacts:
    """Everything `plan_sandbox` needs to know about this host for this request.

    Raises:
        HostError: A program is missing, or a folder holds sockets of the host.
        UserError: A path of the request cannot be shown.
    """
    started_as_root, uid, gid = probe_worker()
    links, folders = probe_root_layout()
    workspace = probe_workspace(str(request.workspace))

    def real(path: os.PathLike[str]) -> str:
        return _below_real_workspace(os.path.normpath(path), request, workspace)

    read = tuple(probe_path(real(path), "files.read") for path in request.read)
    write = tuple(probe_writable(real(path), "files.write") for path in request.write)
    # What does not exist shows nothing, so it needs no hiding.
    hide = tuple(probe_path(real(path), "files.hide") for path in request.hide if os.path.lexists(real(path)))
    shown = (workspace, *read, *write)
    search_path = plan_search_path(
        request.caller_environment.get("PATH", ""), ["/usr", *(fact.path for fact in shown)]
    )
    etc = probe_etc()
    system = ("/usr", *(path for path, _to in links), *folders, *(f"/etc/{name}" for name, _is_folder in etc))
    program = resolve_program(
        request.argv[0] if request.argv else "",
        workspace=workspace.path,
        visible=(*system, *(fact.path for fact in shown)),
        inside_path=search_path,
        caller_path=request.caller_environment.get("PATH", ""),
    )
    invisible = tuple(_probe_invisible(request, workspace))
    interpreter, interpreter_libraries = probe_interpreter()
    libraries = (*program.libraries, *interpreter_libraries)
    in_view = (*system, *(fact.path for fact in shown), *(fact.path for fact, _why in libraries))
    out_of_view = (*(fact.path for fact in hide), *(path for path, _is_folder, _is_there in invisible))
    seal = probe_seal(
        request.exec,
        launched=program.launched,
        workspace=workspace.path,
        writable=[fact.path for fact in write],
        libraries=[fact for fact, _why in libraries],
        search_path=search_path,
        is_shown=lambda path: (
            any(is_below(path, place) for place in in_view)
            and not any(is_below(path, place) for place in out_of_view)
        ),
        cache_folder=request.cache_folder,
    )
    surveys = _search((*shown, *(fact for fact, _why in libraries)), tuple(fact.path for fact in hide))
    protection = _protection(write, surveys, tuple(fact.path for fact in hide))
    guarded = [fact.path for fact in (*protection.covered, *protection.held)]
    caches = tuple(path for path in CACHES_SHOWN if os.path.isdir(path))
    return HostFacts(
        uid=uid,
        gid=gid,
        started_as_root=started_as_root,
        machine=os.uname().machine,
        bwrap=find_tool("bwrap"),
        tools=RoomTools(ip=find_tool("ip"), nft=find_tool("nft")),
        interpreter=interpreter,
        root_links=links,
        root_folders=folders,
        etc=etc,
        caches=caches,
        proc=probe_proc(),
        doors=bound_sockets(("/usr", "/etc", *folders, *caches)),
        workspace=workspace,
        read=read,
        write=write,
        hide=hide,
        invisible=invisible,
        own_identities={
            path: fact.identity
            for path, _is_folder, _is_there in invisible
            if (fact := plain_fact(path)) is not None and fact.identity is not None
        },
        protected=protection.covered,
        held=protection.held,
        kept_links=protection.links,
        watched=protection.watched,
        homes=probe_homes(fact.uid for fact in write) if write else frozenset(),
        pinned=_pinned(write, [*guarded, *(path for path, _, _ in invisible)]),
        libraries=libraries,
        links=program.links,
        program=program.path,
        workspace_link=_logical_path(request, workspace),
        stdin_is_terminal=_is_terminal(0),
        stdout_is_terminal=_is_terminal(1),
        stderr_is_terminal=_is_terminal(2),
        seal=seal,
        notes=(*_notes_on(workspace), *(_note_on(file) for file in protection.watched)),
    )


# --- who -----------------------------------------------------------------------------------


def probe_worker() -> tuple[bool, int, int]:
    """Whether we have root's rights to give up, and the (uid, gid) of the worker on the host.

    Raises:
        HostError: We are root, and there is nobody else to become.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 and _maps_more_than_root():
        free = _free_uid()
        return (True, free, free)
    if uid == 0 and _is_host_root():
        raise HostError(
            "root-not-given-up",
            "started by root of a user namespace without other ids: the command would be the host's root",
            "start Stockade outside that namespace, or as an ordinary user, or map more ids into it",
        )
    # An ordinary user; or root of a user namespace that knows no other id and is an ordinary user
    # outside: there is nothing to change to and nothing to give up.
    return (False, uid, gid)


def _is_host_root() -> bool:
    """Whether uid 0 here is the machine's: the top of /proc belongs to that one, in any namespace."""
    return os.stat("/proc").st_uid == 0


def _maps_more_than_root() -> bool:
    with open("/proc/self/uid_map", encoding="ascii") as file:
        ranges = [tuple(map(int, line.split())) for line in file]
    return any(first <= FIRST_WORKER_UID < first + count for first, _outside, count in ranges)


def _free_uid() -> int:
    import grp
    import pwd

    for number in range(FIRST_WORKER_UID, LAST_WORKER_UID, -1):
        try:
            pwd.getpwuid(number)
        except KeyError:
            try:
                grp.getgrgid(number)
            except KeyError:
                return number
    raise HostError(
        "no-free-uid",
        f"started by root, and every user id from {LAST_WORKER_UID + 1} to {FIRST_WORKER_UID} is taken",
        "start Stockade as an ordinary user",
    )


# --- the base of the view ------------------------------------------------------------------


def probe_root_layout() -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """How this host makes /bin and its like: links (as ``(path, target)``) or folders."""
    links, folders = [], []
    for name in _ROOT_NAMES:
        path = f"/{name}"
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            folders.append(path)
    return tuple(links), tuple(folders)


def probe_etc() -> tuple[tuple[str, bool], ...]:
    """Those of the shown names of /etc that exist here, and whether each is a folder."""
    listed = [name for name in sorted(os.listdir("/etc")) if name.startswith(ETC_SHOWN_PREFIXES)]
    found = []
    for name in (*ETC_SHOWN, *listed):
        path = f"/etc/{name}"
        if os.path.isdir(path):
            found.append((name, True))
        elif _is_public(path):
            found.append((name, False))
    return tuple(found)


def _is_public(path: str) -> bool:
    """A regular file that everybody may read: started by root, we could copy others too."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & stat.S_IROTH)


def probe_interpreter() -> tuple[str, list[tuple[PathFact, str]]]:
    """The Python that runs the stage, and what must be shown for it if it is not in /usr."""
    from stockade.sandbox.program import python_libraries

    own = os.path.realpath(getattr(sys, "_base_executable", sys.executable) or sys.executable)
    for candidate in (own, "/usr/bin/python3", "/usr/local/bin/python3"):
        if candidate.startswith("/usr/") and os.access(candidate, os.X_OK):
            return candidate, []
    return own, python_libraries(own, "Python of the stage")


# --- the operator's folders ----------------------------------------------------------------


def _below_real_workspace(path: str, request: SandboxRequest, workspace: PathFact) -> str:
    """A path written relative to a workspace that was reached by a link: the same below the real one."""
    logical = os.path.normpath(request.workspace)
    return workspace.path + path[len(logical) :] if is_below(path, logical) else path


def _probe_invisible(request: SandboxRequest, workspace: PathFact) -> list[tuple[str, bool, bool]]:
    """Our own paths with their links resolved; what is not there yet will be a folder (the ledger's)."""
    found = []
    for path in request.invisible:
        real = os.path.realpath(path)
        is_there = os.path.exists(real)
        if workspace.path == real:
            raise UserError(
                "own-files-in-workspace",
                f"{real} is both the workspace and a folder of Stockade's own",
                "keep ledger and policy outside the workspace, or in a folder below it",
            )
        found.append((real, os.path.isdir(real) or not is_there, is_there))
    return found


def _search(shown: tuple[PathFact, ...], hidden: tuple[str, ...]) -> dict[str, Survey]:
    """Search what will be bound for doors to the host; the outermost folders cover the inner ones."""
    surveys: dict[str, Survey] = {}
    for fact in sorted(shown, key=lambda fact: len(fact.path)):
        if fact.is_folder and not any(is_below(fact.path, root) for root in surveys):
            surveys[fact.path] = survey(fact.path)
            refuse_doors(fact.path, surveys[fact.path], hidden)
    return surveys


def _protection(
    write: tuple[PathFact, ...], surveys: dict[str, Survey], hidden: tuple[str, ...]
) -> Protection:
    """What in writable folders must stay as it is, all of them together."""
    if not write:
        return Protection()  # and no start pays for the import
    from stockade.sandbox.protection import probe_protection

    home = os.path.expanduser("~")
    opened = frozenset(fact.path for fact in write)
    parts = []
    for root in write:
        found = next((known for path, known in surveys.items() if is_below(root.path, path)), None)
        if found is not None and root.is_folder:
            parts.append(probe_protection(root, found, hidden=hidden, opened=opened, home=home))
    return Protection(
        covered=tuple({fact.path: fact for part in parts for fact in part.covered}.values()),
        held=tuple({fact.path: fact for part in parts for fact in part.held}.values()),
        links=tuple({link.path: link for part in parts for link in part.links}.values()),
        watched=tuple({file.path: file for part in parts for file in part.watched}.values()),
    )


def probe_homes(owners: Iterable[int]) -> frozenset[str]:
    """The home folders of whoever started us and of these users."""
    import pwd

    homes = {os.path.realpath(os.path.expanduser("~"))}
    for uid in {os.geteuid(), *owners}:
        with contextlib.suppress(KeyError):
            homes.add(os.path.realpath(pwd.getpwuid(uid).pw_dir))
    return frozenset(homes)


def _pinned(write: tuple[PathFact, ...], guarded: list[str]) -> tuple[PathFact, ...]:
    """The folders between a writable folder and what is guarded in it, as far as they exist."""
    folders = {
        folder
        for path in guarded
        for root in write
        if is_below(path, root.path)
        for folder in chain_below(root.path, path)
    }
    facts = map(plain_fact, sorted(folders))
    return tuple(fact for fact in facts if fact is not None)


def _logical_path(request: SandboxRequest, workspace: PathFact) -> str:
    """The path with links by which the operator came (PWD), if it is one and free inside."""
    logical = request.caller_environment.get("PWD", "")
    if not logical.startswith("/") or os.path.normpath(logical) != logical or logical == workspace.path:
        return ""
    try:
        status = os.stat(logical)
    except OSError:
        return ""
    if (status.st_dev, status.st_ino) != workspace.identity or not os.path.islink(logical):
        return ""
    taken = ("/usr", "/etc", "/proc", "/dev", "/sys", workspace.path)
    return "" if any(is_below(logical, folder) for folder in taken) else logical


def _notes_on(workspace: PathFact) -> list[str]:
    home = os.path.realpath(os.path.expanduser("~"))
    if workspace.path == home:
        return ["the workspace is your home folder: the command can read what is in it, keys included"]
    return []


def _note_on(file: Watched) -> str:
    return f"git on this machine uses {file.path} ({file.why}), and the command may write it"


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False
