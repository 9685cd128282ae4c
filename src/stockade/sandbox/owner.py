"""Who holds a socket: from a connection in the room to the command that opened it.

Theory. The kernel knows which socket has the worker's end of a connection (`socket_diag`),
and which descriptors a process has (`processes`); it does not keep who opened what. So
the answer is a process that *holds* the socket while the gateway decides. Fork and
descriptor passing make several holders. The one found is replaced by the topmost of its
ancestors that holds the socket too, since a descriptor is inherited downwards: it is the
shell that opened the connection, not the `cat` that it started with it. Other holders that
were seen on the way are told; siblings and receivers of a passed descriptor are not looked for.

What must stay true:

* Only the sandbox's own processes are looked at: its procfs lists no others.
* Never a wrong process. The socket has both ends (`socket_diag`), each process is read
  through a folder held open, and after all is read the descriptor must still be that socket and the
  program still the same. Whatever is gone, unreadable or too much to look at gives None.
* Bounded: so many descriptors for one look-up, however many the worker opens.

Nothing here is on the way to a permitted connection unless the operator asked for it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from msgspec import Struct

from stockade.net.ends import Ends
from stockade.sandbox.processes import (
    Effort,
    ProcessFolder,
    ProcessStat,
    probe_socket_mount,
    read_children,
    read_innermost_pid,
    read_start_time,
)
from stockade.sandbox.socket_diag import SocketTable

# About 20 ms of processor time; 300 descriptors cost 1.2 ms (docs/concepts/boundary.md).
LINKS_LOOKED_AT = 4096
PLACE_COSTS = 8  # opening one process, in links
DESCENDANTS_LOOKED_AT = 256
PARENTS_TOLD = 32
HOLDERS_REMEMBERED = 8
_STAGE = 1  # the sandbox's first process, ours
_NS_GET_TGID_FROM_PIDNS = 0x8004B707  # linux/nsfs.h, 6.11: _IOR(0xb7, 7, int), the id itself as argument


class Process(Struct, frozen=True):
    """One process of the sandbox.

    Attributes:
        pid: Its id where Stockade runs; None if that cannot be told.
        inner_pid: Its id inside.
        start_time: Clock ticks since boot; with either id it names one process for good.
        image: Equal for a process and its parent if neither has called exec since the fork.
    """

    pid: int | None
    inner_pid: int
    start_time: int
    image: tuple[bytes, ...]


class Owner(Struct, frozen=True):
    """A process that holds a socket, as of now.

    Attributes:
        program: Path of the running program, as the sandbox's mounts name it.
        argv: What it shows as its arguments, shortened; a process can overwrite them.
        parents: From its parent up to the stage, which is left out.
        also: Inner ids of processes below that were seen to hold the socket too.
    """

    process: Process
    program: str
    argv: tuple[bytes, ...]
    parents: tuple[Process, ...]
    also: tuple[int, ...] = ()


class OwnerFinder:
    """Finds owners in one sandbox; made when the first is asked for.

    Args:
        diagnosis: The netlink socket that was opened in the room; stays the caller's.
        stage_pid: The sandbox's first process.
        stage_fd: A pidfd of the same, which proves that `stage_pid` is still it.

    Raises:
        OSError: The sandbox has ended.
    """

    def __init__(self, diagnosis: socket.socket, stage_pid: int, stage_fd: int) -> None:
        self._table = SocketTable(diagnosis)
        self._stage_pid = stage_pid
        self._sockets = probe_socket_mount()
        self._recent: dict[str, None] = {}
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with ExitStack() as undo:
            self._root = os.open(f"/proc/{stage_pid}/root/proc", flags)
            undo.callback(os.close, self._root)
            self._namespace = os.open(f"/proc/{stage_pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            undo.callback(os.close, self._namespace)
            if select.select([stage_fd], [], [], 0)[0]:  # it has ended, and its number may be another's
                raise ProcessLookupError(f"process {stage_pid} has ended")
            undo.pop_all()

    def close(self) -> None:
        os.close(self._root)
        os.close(self._namespace)

    def find(self, ends: Ends) -> Owner | None:
        """The process that holds the worker's socket with these ends; None if that is not certain."""
        try:
            inode = self._table.inode_of(ends)
            return self._owner_of(inode) if inode else None
        except (OSError, ValueError):  # something ended while it was looked at
            return None

    def _owner_of(self, inode: int) -> Owner | None:
        effort = Effort(LINKS_LOOKED_AT)
        with ExitStack() as opened:
            found = self._find_holder(inode, effort, opened)
            if found is None:
                return None
            line = list(self._climb(found.folder, opened))
            holders = [(0, found)]
            for step, (folder, _stat) in enumerate(line[1:], 1):
                with suppress(OSError):  # it has ended, or cannot be looked into
                    number = folder.find_socket(inode, effort)
                    if number is not None:
                        holders.append((step, _Holder(folder, number)))
            *below, (step, holder) = holders
            program, argv = holder.folder.program(), holder.folder.argv()
            if holder.folder.program() != program or not holder.folder.has_socket(holder.number, inode):
                return None
            self._remember(holder.folder.path)
            process, *parents = (self._process(folder.pid, stat) for folder, stat in line[step:])
            also = tuple(line[at][0].pid for at, _holder in below)
            return Owner(process, program, argv, tuple(parents), also)

    # --- looking -----------------------------------------------------------------------------

    def _find_holder(self, inode: int, effort: Effort, opened: ExitStack) -> _Holder | None:
        for path in self._places(effort):
            if not effort.spend(PLACE_COSTS):
                return None
            with suppress(OSError), ExitStack() as for_now:  # this one has ended, or cannot be looked into
                folder = for_now.enter_context(ProcessFolder(self._root, path, self._sockets))
                number = folder.find_socket(inode, effort)
                if number is not None:
                    opened.push(for_now.pop_all())
                    return _Holder(folder, number)
        return None

    def _places(self, effort: Effort) -> Iterator[str]:
        """Who held a socket lately, then the youngest first; then threads, which can have own tables."""
        yield from list(self._recent)
        pids = sorted((int(name) for name in os.listdir(self._root) if name.isdigit()), reverse=True)
        pids = [pid for pid in pids if pid != _STAGE]
        for pid in pids:
            if str(pid) not in self._recent:
                yield str(pid)
        for pid in pids:
            if effort.spend(PLACE_COSTS):
                yield from (f"{pid}/task/{thread}" for thread in self._threads(pid) if thread != str(pid))

    def _threads(self, pid: int) -> list[str]:
        with suppress(OSError), ProcessFolder(self._root, str(pid), self._sockets) as folder:
            return folder.threads()
        return []

    def _remember(self, path: str) -> None:
        self._recent.pop(path, None)
        self._recent = {path: None, **self._recent}
        if len(self._recent) > HOLDERS_REMEMBERED:
            self._recent.popitem()

    def _climb(self, folder: ProcessFolder, opened: ExitStack) -> Iterator[tuple[ProcessFolder, ProcessStat]]:
        """The process and its ancestors, up to the stage; fewer if one ends while it is looked at."""
        if folder.is_thread:
            folder = opened.enter_context(ProcessFolder(self._root, str(folder.pid), self._sockets))
        stat = folder.stat()
        yield folder, stat
        with suppress(OSError):
            for _ in range(PARENTS_TOLD):
                if stat.parent <= _STAGE:
                    return
                parent = opened.enter_context(ProcessFolder(self._root, str(stat.parent), self._sockets))
                above = parent.stat()
                if folder.stat().parent != stat.parent:
                    return  # it was handed to another parent, and what was opened may be anybody
                yield parent, above
                folder, stat = parent, above

    # --- numbers outside -------------------------------------------------------------------------

    def _process(self, inner_pid: int, stat: ProcessStat) -> Process:
        pid = self._outer_pid(inner_pid)
        if pid is not None and read_start_time(pid) != stat.start_time:
            pid = None  # it has ended since
        return Process(pid, inner_pid, stat.start_time, stat.image)

    def _outer_pid(self, inner_pid: int) -> int | None:
        try:
            return fcntl.ioctl(self._namespace, _NS_GET_TGID_FROM_PIDNS, inner_pid)
        except OSError as error:
            is_older_kernel = error.errno == errno.ENOTTY
            return search_descendants(self._stage_pid, inner_pid) if is_older_kernel else None


class _Holder(Struct, frozen=True):
    """An open process, and the number of its descriptor that is the socket."""

    folder: ProcessFolder
    number: str


def search_descendants(top: int, inner_pid: int) -> int | None:
    """The process below `top` that has this id in its innermost namespace, for kernels before 6.11.

    The kernel may leave a child out while another ends (proc(5), ``children``): None then.
    """
    waiting, looked_at = [top], 0
    while waiting and looked_at < DESCENDANTS_LOOKED_AT:
        for child in read_children(waiting.pop()):
            looked_at += 1
            if read_innermost_pid(child) == inner_pid:
                return child
            waiting.append(child)
    return None
