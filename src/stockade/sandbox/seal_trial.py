"""Whether this host can put up each layer of the seal, found out by being refused something under it."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
from collections.abc import Callable

from stockade.sandbox import kernel, landlock
from stockade.sandbox.command_reader import read_command
from stockade.sandbox.eye import LISTENER_FLAGS, Eye, Sighting
from stockade.sandbox.filter import FilterWish, compile_filter, load_filter_table
from stockade.sandbox.noexec import MountSteps, apply_steps, enter_view
from stockade.sandbox.seal_remedies import REMEDIES
from stockade.sandbox.trial import Trial, become_ordinary, in_child

_PROGRAM = "/bin/true"
_AF_VSOCK = 40
_ANSWER_S = 5.0


def _expect_refusal(action: Callable[[], object], what: str, *numbers: int) -> None:
    """Raises OSError: it was not refused, or for another reason."""
    try:
        action()
    except OSError as error:
        if error.errno in numbers:
            return
        raise
    raise OSError(errno.EIO, f"{what} all the same")


def _start_program() -> None:
    os.waitpid(os.posix_spawn(_PROGRAM, [_PROGRAM], {}), 0)


# --- mounts --------------------------------------------------------------------------------


def _try_mounts() -> str:
    """Join the view of another process, as the child does that seals, and make all of it noexec."""

    def seal(view: int) -> str:
        enter_view(view)
        apply_steps(MountSteps(folders=(), programs=(), covered=()))
        _expect_refusal(_start_program, f"{_PROGRAM} ran", errno.EACCES)
        return f"{_PROGRAM} was refused in a view that was joined from outside"

    return in_child(lambda: _with_view(seal))


def _with_view(action: Callable[[int], str]) -> str:
    """A process with a mount namespace of its own, made as the worker's is, for as long as this takes."""
    ready_in, ready_out = os.pipe()
    pid = kernel.fork_quietly()
    if pid == 0:
        try:
            kernel.die_with_parent(signal.SIGKILL)
            become_ordinary()
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
            os.write(ready_out, b"0")
        except OSError as error:
            os.write(ready_out, b"%d" % (error.errno or errno.EIO))
        signal.pause()
    try:
        number = int(os.read(ready_in, 16))
        if number:
            raise OSError(number, f"no mount namespace: {os.strerror(number)}")
        return action(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# --- landlock ------------------------------------------------------------------------------


def _try_landlock() -> str:
    abi, number = landlock.probe_landlock()
    if not abi:
        raise OSError(number, os.strerror(number))

    def restrict() -> str:
        kernel.forbid_privileges()
        ruleset = landlock.compile_ruleset(abi)
        kernel.restrict_files(ruleset, [(landlock.READ & landlock.known_rights(abi), "/")])
        _expect_refusal(_start_program, f"{_PROGRAM} ran", errno.EACCES)
        return f"ABI {abi}; a program that no rule permits was refused"

    return in_child(restrict)


# --- seccomp, memfd ------------------------------------------------------------------------


def _try_filter() -> str:
    program = compile_filter(load_filter_table(), os.uname().machine, FilterWish())

    def install() -> str:
        kernel.forbid_privileges()
        kernel.install_filter(program, 0)
        vsock = socket.socket, _AF_VSOCK, socket.SOCK_STREAM
        _expect_refusal(lambda: vsock[0](*vsock[1:]), "a VSOCK socket was made", errno.EAFNOSUPPORT)
        _expect_refusal(lambda: os.memfd_create("x"), "a file in memory was made", errno.ENOSYS)
        return f"{len(program) // 8} instructions; a VSOCK socket and a file in memory were refused"

    return in_child(install)


def _try_memory_code() -> str:
    def forbid() -> str:
        try:
            kernel.forbid_new_code()
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise OSError(errno.EINVAL, "this kernel has no PR_SET_MDWE") from error
            raise
        _expect_refusal(kernel.map_writable_code, "writable code was mapped", errno.EACCES)
        return "memory that can be written and executed was refused"

    return in_child(forbid)


# --- notify --------------------------------------------------------------------------------


def _try_eye() -> str:
    """Two commands: one is let go on, one is refused."""
    _watch_command(Eye.let_go_on, 0)
    _watch_command(lambda eye, sighting: eye.refuse(sighting, errno.EACCES), errno.EACCES)
    return "a command waited, and did as it was told"


def _try_reading() -> str:
    read: list[str] = []

    def look(eye: Eye, sighting: Sighting) -> None:
        tried = read_command(sighting, is_at=False)
        eye.let_go_on(sighting)
        if tried.unreadable:
            raise OSError(errno.EPERM, tried.unreadable)
        read.append(f"{tried.path} with {len(tried.argv)} argument, the file {tried.file}")

    _watch_command(look, 0)
    return f"of a waiting command: {read[0]}"


def _watch_command(look: Callable[[Eye, Sighting], None], code: int) -> None:
    """Start a command in a user namespace of its own, under a listener, and see how it ends.

    Args:
        look: Answers.
        code: What it is to end with: 0, or the errno of its execve.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_ANSWER_S)
    program = compile_filter(
        load_filter_table(),
        os.uname().machine,
        FilterWish(refuse_calls=False, refuse_memory_code=False, watch=True),
    )
    pid = kernel.fork_quietly()
    if pid == 0:
        _be_watched(theirs, program)
    theirs.close()
    try:
        said, fds, _flags, _address = socket.recv_fds(ours, 64, 1)
        if not fds:
            number = int(said or b"5")
            raise OSError(number, f"no listener: {os.strerror(number)}")
        eye = Eye(fds[0], pid)
        try:
            if not select.select([eye], [], [], _ANSWER_S)[0]:
                raise OSError(errno.ETIMEDOUT, "a command was not reported")
            sighting = eye.receive()
            if sighting is not None:
                look(eye, sighting)
            ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            pid = 0
        finally:
            eye.close()
        if ended != code:
            raise OSError(errno.EIO, f"a command that was answered {code} ended with {ended}")
    finally:
        ours.close()
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _be_watched(channel: socket.socket, program: bytes) -> None:
    """The child: its descriptor goes out, then it calls execve. Never returns."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        become_ordinary()
        kernel.unshare(kernel.CLONE_NEWUSER)
        kernel.forbid_privileges()
        fd = kernel.install_filter(program, LISTENER_FLAGS)
    except OSError as error:
        channel.send(b"%d" % (error.errno or errno.EIO))
        os._exit(1)
    try:
        socket.send_fds(channel, [b"0"], [fd])
        os.close(fd)
        os.execv(_PROGRAM, [_PROGRAM])
    except OSError as error:
        os._exit(error.errno or 1)
    finally:
        os._exit(1)


SEAL_TRIALS = (
    Trial(
        "mounts",
        "the noexec mounts: which files may run, and what may be loaded as code",
        REMEDIES["mounts"],
        _try_mounts,
    ),
    Trial(
        "landlock",
        "which files may run, whatever path leads to them; no code through /proc/self/mem",
        REMEDIES["landlock"],
        _try_landlock,
    ),
    Trial(
        "seccomp",
        "the system-call filter: namespaces, neighbors, other sockets, code in memory",
        REMEDIES["seccomp"],
        _try_filter,
    ),
    Trial(
        "code-in-memory",
        "a second lock on new code in memory; the system-call filter is the first",
        "kernel 6.3 (PR_SET_MDWE)",
        _try_memory_code,
        False,
    ),
    Trial("eye", "the record of each command before it runs", REMEDIES["notify"], _try_eye),
    Trial("eye-reads", "what a command is, so that each is denied", REMEDIES["reading"], _try_reading),
)
