"""Who made a call that the eye reported, and who started it.

It is asked for each command, so nothing is read twice: the program of a parent cannot
change without its image in memory changing, and is remembered by that.
"""

from __future__ import annotations

from msgspec import Struct

from stockade.sandbox.processes import read_ids, read_program, read_stat

PARENTS_KEPT = 1000


class Caller(Struct, frozen=True, kw_only=True):
    """A process, as far as the kernel still says it.

    Attributes:
        pid: Process (not thread) on the host, 0 if it is gone.
        thread: The thread that was asked about: the first one may have ended, and then the process shows
            neither program nor image.
        inner_pid: The same as the worker knows it.
        parent_pid: Its parent on the host.
        start_time: In clock ticks since boot; with the pid it names one process.
        image: What it runs now, by which it is seen whether an exec has really happened.
    """

    pid: int = 0
    thread: int = 0
    inner_pid: int = 0
    parent_pid: int = 0
    start_time: int = 0
    image: tuple[bytes, ...] = ()

    @property
    def program(self) -> str:
        """The file that it runs now, empty if it is gone."""
        return read_program(self.thread)


class Parent(Struct, frozen=True, kw_only=True):
    """A process that started another one, and the file that it runs."""

    process: Caller
    program: str


def probe_caller(thread: int) -> Caller:
    """Look a thread's process up."""
    ids = read_ids(thread)
    stat = None if ids is None else read_stat(ids[0])
    own = stat if ids is None or ids[0] == thread else read_stat(thread)
    if ids is None or stat is None or own is None:
        return Caller()
    return Caller(
        pid=ids[0],
        thread=thread,
        inner_pid=ids[1],
        parent_pid=stat.parent,
        start_time=stat.start_time,
        image=own.image,
    )


class Parents:
    """Looks parents up; one that still runs the same image is known already."""

    def __init__(self) -> None:
        self._known: dict[int, Parent] = {}

    def probe(self, pid: int) -> Parent:
        """What a process is; all empty if it has ended."""
        stat = read_stat(pid)
        known = self._known.get(pid)
        if known is not None and stat is not None:
            process = known.process
            if stat.image and (stat.start_time, stat.image) == (process.start_time, process.image):
                return known
        found = Parent(process=probe_caller(pid), program=read_program(pid))
        if len(self._known) >= PARENTS_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[pid] = found
        return found
