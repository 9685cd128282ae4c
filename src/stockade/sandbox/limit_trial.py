"""Which limits this host can hold, found out by going beyond each of them in a throw-away child."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from collections.abc import Callable

from stockade.sandbox import kernel
from stockade.sandbox.cgroup import Group, open_group
from stockade.sandbox.holding import group_remedy
from stockade.sandbox.trial import Trial, become_ordinary, in_child

_MEMORY_BYTES = 32 << 20
_PROCESSES = 4


def _with_group(amounts: dict[str, int], attempt: Callable[[Group], str]) -> str:
    """Try something with a group, made as a run would make it.

    Raises:
        OSError: There is no group, with the reason.
    """
    group, refused = open_group(f"stockade-doctor-{os.urandom(4).hex()}", amounts, may_move=True)
    try:
        for error in refused.values():
            raise error
        return attempt(group)
    finally:
        group.close()


def _try_memory() -> str:
    return _with_group({"memory": _MEMORY_BYTES}, _exceed_memory)


def _exceed_memory(group: Group) -> str:
    """Use twice what is permitted, and see that the kernel ends it and counts that."""
    pid = kernel.fork_quietly()
    if pid == 0:
        try:
            group.join()
            bytearray(2 * _MEMORY_BYTES)
        finally:
            os._exit(0)
    _pid, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL or not group.read_usage().memory_kills:
        raise OSError(errno.EIO, f"twice the limit could be used in {group.folder('memory')}")
    swap = "swap too" if group.limits_swap else "this kernel counts no swap"
    return f"by control group {os.path.dirname(group.folder('memory'))}; {swap}"


def _try_processes() -> str:
    try:
        return _with_group({"pids": _PROCESSES}, _exceed_processes)
    except OSError as error:
        return f"by rlimit, so refusals are not counted (no control group: {error.strerror}); {_try_rlimit()}"


def _exceed_processes(group: Group) -> str:
    def fork_in_group() -> str:
        group.join()
        return _fork_until_refused()

    in_child(fork_in_group)
    return f"by control group {os.path.dirname(group.folder('pids'))}"


def _try_rlimit() -> str:
    def fork_under_rlimit() -> str:
        become_ordinary()
        kernel.unshare(kernel.CLONE_NEWUSER)
        resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
        return _fork_until_refused()

    return in_child(fork_under_rlimit)


def _fork_until_refused() -> str:
    """Fork beyond the limit on processes; the caller counts among them."""
    children: list[int] = []
    try:
        for _ in range(2 * _PROCESSES):
            pid = kernel.fork_quietly()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            children.append(pid)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return f"fork {len(children) + 1} was refused"
        raise
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    raise OSError(errno.EIO, f"{2 * _PROCESSES} processes were started under a limit of {_PROCESSES}")


def _try_files() -> str:
    def exceed() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        file = os.memfd_create("stockade", 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        os.write(file, bytes(4096))
        _expect(errno.EFBIG, lambda: os.write(file, b"x"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (file + 1, file + 1))
        _expect(errno.EMFILE, lambda: os.dup(file))
        return "by rlimit"

    return in_child(exceed)


def _expect(number: int, action: Callable[[], object]) -> None:
    try:
        action()
    except OSError as error:
        if error.errno == number:
            return
        raise
    raise OSError(errno.EIO, f"what the limit should refuse with {errno.errorcode[number]} was done")


LIMIT_TRIALS = (
    Trial(
        "limit-memory",
        "`limits: memory`; a policy that names it is refused",
        group_remedy(),
        _try_memory,
        False,
    ),
    Trial("limit-processes", "`limits: processes`", "kernel: CONFIG_CGROUP_PIDS", _try_processes, False),
    Trial("limit-files", "`limits: open-files` and `file-size`", "none is known", _try_files, False),
)
