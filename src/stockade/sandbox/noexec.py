"""Mounts under the seal: everything is noexec but what the plan names. Put on from outside.

The stage holds no capability, ever, so a short-lived child of the supervisor joins the
mount namespace and does it there, after the stage is ready (bubblewrap has then finished,
docs/concepts/boundary.md) and before the seal. The kernel locks these flags against all
that the worker could do, and refuses to map a file of a noexec mount as code: that is
what stops ``ld.so PROGRAM``, a library of the worker's own and every copied program.

A file or folder is opened again by putting a clone of it, made before, over itself, and is
read-only from then on: what the worker may write it may not execute. That is said of a file and
not of a name, so other names of it in writable folders become read-only as well. Files
that are programs inside an opened folder get a noexec clone of themselves in turn, and so does
a writable folder in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from stockade.errors import ContainmentError, HostError, StockadeError
from stockade.sandbox import kernel
from stockade.sandbox.finish_view import cut_loose, protect
from stockade.sandbox.other_names import files_in, find_other_names
from stockade.sandbox.view import is_below


class MountSeal(Struct, frozen=True, kw_only=True):
    """What stays executable. Paths are real ones, and the same outside and inside.

    Attributes:
        programs: Files that may run, loaders among them.
        libraries: Folders besides the system's from which code may be loaded.
        writable: What the worker may write, in which those files may have other names.
        worker_uid: Whose files in them are compared one by one (library_scan.py).
        cache_folder: Where the search is remembered; empty: nowhere.
    """

    programs: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    worker_uid: int = 0
    cache_folder: str = ""

    def work_out(self) -> MountSteps:
        """Search the library folders, and say what is to be put where."""
        from stockade.sandbox.library_scan import scan_libraries

        found = scan_libraries(
            self.libraries,
            wanted=self.programs,
            writable=self.writable,
            worker_uid=self.worker_uid,
            cache_folder=self.cache_folder,
            on_progress=_say_progress,
        )
        # No worker could ever write in /usr (paths.py), or leave another name of what lies there.
        may_be_linked = [
            path for path in self.programs if not is_below(path, "/usr") or _is_in(path, self.writable)
        ]
        steps = plan_steps(found.opened, found.closed, found.programs, self.programs, self.writable)
        others = find_other_names(
            [*may_be_linked, *found.linked], writable=self.writable, read_only=steps.opened
        )
        return msgspec.structs.replace(steps, other_names=tuple(others))


class MountSteps(Struct, frozen=True, kw_only=True):
    """What is put over itself, in this order, once everything is noexec.

    Attributes:
        folders: (path, is opened): the longest entry that contains a path counts.
        programs: Permitted files outside opened folders.
        covered: Program files inside opened folders that are not permitted.
        other_names: Of what may run or be loaded, in what may be written: they become read-only as well.
    """

    folders: tuple[tuple[str, bool], ...]
    programs: tuple[str, ...]
    covered: tuple[str, ...]
    other_names: tuple[str, ...] = ()

    @property
    def opened(self) -> list[str]:
        return [*(path for path, is_opened in self.folders if is_opened), *self.programs]


def plan_steps(
    opened: Iterable[str],
    closed: Iterable[str],
    programs: Iterable[str],
    permitted: Iterable[str],
    writable: Iterable[str] = (),
) -> MountSteps:
    """Put the findings of a search and the list of permitted files in order; pure."""
    folders = sorted([*((path, True) for path in opened), *((path, False) for path in closed)])
    known = {path for path, _is_opened in folders}
    folders += [(path, False) for path in writable if path not in known and _is_opened(path, folders)]
    folders.sort()
    listed = set(permitted)
    return MountSteps(
        folders=tuple(folders),
        programs=tuple(path for path in sorted(listed) if not _is_opened(path, folders)),
        covered=tuple(path for path in programs if path not in listed and _is_opened(path, folders)),
    )


def _is_opened(path: str, folders: Sequence[tuple[str, bool]]) -> bool:
    """By the longest entry above it."""
    above = [entry for entry in folders if is_below(path, entry[0])]
    return bool(above) and max(above, key=lambda entry: len(entry[0]))[1]


def _say_progress(names: int) -> None:
    print(
        f"stockade: looking for programs among libraries, {names} files so far (remembered)", file=sys.stderr
    )


def apply_steps(steps: MountSteps) -> None:
    """Do it in the mount namespace that this process is in.

    Raises:
        OSError: The path and the step are in its text.
    """
    entries = (*steps.folders, *((path, True) for path in steps.programs))
    clones = {path: kernel.open_tree(path) for path, _is_opened in entries}  # as they still are
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    kernel.set_mount_attributes(root, kernel.MOUNT_ATTR_NOEXEC)
    os.close(root)
    for path, is_opened in entries:
        _put(clones[path], path, kernel.MOUNT_ATTR_RDONLY if is_opened else kernel.MOUNT_ATTR_NOEXEC)
    for path in steps.covered:
        _put(kernel.open_tree(path), path, kernel.MOUNT_ATTR_NOEXEC)
    _protect_names(steps.other_names)


def _protect_names(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # hidden in this view
            protect(path, is_read_only=True)


def _put(tree: int, path: str, attributes: int) -> None:
    kernel.set_mount_attributes(tree, attributes)
    kernel.move_mount(tree, path)
    os.close(tree)


def executable_mounts(mountinfo: str) -> dict[str, bool]:
    """Mount points from which the kernel would execute or map code, by ``/proc/PID/mountinfo`` (proc(5)).

    Of several mounts at one point the last one counts: it covers the others.

    Returns:
        For each whether it is read-only.
    """
    found: dict[str, list[str]] = {}
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > 5:
            found[_unescape(fields[4])] = fields[5].split(",")
    return {path: "ro" in options for path, options in found.items() if "noexec" not in options}


def _unescape(path: str) -> str:
    """Space, tab, newline and backslash stand as three octal digits."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def read_mounts(pid: int) -> str:
    """The kernel's own list of what a process has mounted; it takes a millisecond for some hundred.

    Raises:
        ContainmentError: It cannot be read.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise ContainmentError("seal-failed", f"the sandbox's mounts cannot be read: {error}") from error


def verify_mounts(mountinfo: str, opened: Sequence[str]) -> None:
    """Compare what the kernel says with what was to stay executable.

    Raises:
        ContainmentError: Something else is executable, or something that is can be written.
    """
    for path, is_read_only in sorted(executable_mounts(mountinfo).items()):
        # With a folder comes what is mounted in it: protected settings, for one.
        if not _is_in(path, opened):
            raise ContainmentError("seal-failed", f"programs could be run from {path}, which is not planned")
        if not is_read_only:
            raise ContainmentError("seal-failed", f"what the worker writes in {path} could be run")


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(is_below(path, place) for place in places)


class MountSealer:
    """The supervisor's handle on the child that does it.

    It is forked before the sandbox is ready, since the search for program files can be
    done meanwhile, on another processor. It also gives the view its last touches
    (finish_view.py), without an order these alone.

    Args:
        protected: Paths in the view, outer ones first, each with whether it becomes read-only.
        order: What stays executable, None for everything.
        guarded: Files and folders that the worker must not change by another name either.
        writable: Where such a name could be.
    """

    def __init__(
        self,
        protected: Sequence[tuple[str, bool]],
        order: MountSeal | None,
        *,
        guarded: Sequence[str] = (),
        writable: Sequence[str] = (),
    ) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = kernel.fork_quietly()
        if self.pid == 0:
            try:
                self._control.close()
                own = theirs.fileno()
                os.closerange(3, own)  # above all the lifelines: EOF must not wait for us
                os.closerange(own + 1, 1 << 20)
                _be_sealer(theirs, protected, order, guarded, writable)
            finally:
                os._exit(0)
        theirs.close()

    def begin(self, pid: int) -> None:
        """Name the process whose view is to be sealed."""
        self._control.send(pid.to_bytes(8, "big"))

    def finish(self, timeout_s: float) -> list[str]:
        """Wait until it is done; gives what stayed executable.

        Raises:
            HostError: The kernel refused a step.
            ContainmentError: No answer.
        """
        self._control.settimeout(timeout_s)
        try:
            answer = self._control.recv(1 << 20)
        except OSError as error:
            raise ContainmentError("seal-failed", f"the mounts could not be sealed: {error}") from error
        finally:
            self.close()
        if not answer.startswith(b"["):
            from stockade.sandbox.seal_remedies import REMEDIES

            said = answer.decode(errors="replace") or "its builder ended without an answer"
            raise HostError(
                "seal-failed", f"layer mounts (noexec) could not be put up: {said}", REMEDIES["mounts"]
            )
        opened: list[str] = msgspec.json.decode(answer, type=list[str])
        return opened

    def close(self) -> None:
        """End the child, whatever it is doing, and reap it."""
        if self.pid > 0:
            self._control.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = -1


def _be_sealer(
    control: socket.socket,
    protected: Sequence[tuple[str, bool]],
    order: MountSeal | None,
    guarded: Sequence[str],
    writable: Sequence[str],
) -> None:
    """The child's whole life. It ends by `os._exit` in any case, and with its parent."""
    kernel.die_with_parent(signal.SIGKILL)
    try:
        steps = None if order is None else order.work_out()
        names = find_other_names(files_in(guarded), writable=writable, read_only=guarded)
        pid = int.from_bytes(control.recv(8), "big")  # an empty message (the supervisor is gone) is 0
        if pid == 0:
            return
        enter_view(pid)
        for path, is_read_only in protected:
            protect(path, is_read_only=is_read_only)
        _protect_names(names)
        cut_loose()
        if steps is not None:
            apply_steps(steps)
    except StockadeError as error:
        control.send(str(error).encode()[:4000])
        return
    except OSError as error:
        control.send(f"errno {error.errno}, {error.strerror or error}".encode()[:4000])
        return
    control.send(msgspec.json.encode([] if steps is None else steps.opened))


def enter_view(pid: int) -> None:
    """Join the mount namespace of a process, with the rights of the user namespace that owns it."""
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(mounts, kernel.NS_GET_USERNS)
    kernel.setns(owner, kernel.CLONE_NEWUSER)
    kernel.setns(mounts, kernel.CLONE_NEWNS)
