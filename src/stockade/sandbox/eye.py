"""The eye: seccomp's user notification, by which the kernel asks us before it runs a command.

A thread that calls execve, or a call that the filter reports, sleeps in the kernel until
it is answered here (seccomp_unotify(2)). Two answers exist: go on, or fail with an errno.

What the eye is not: a lock. What it read may have been changed by another thread by the
time the kernel reads it again; so nothing rests on it that Landlock and the mounts do
not hold as well (docs/concepts/boundary.md). What it is: the place where each command is
judged with its name and arguments, and on record before it runs. When the descriptor is
closed, for whatever reason, each new command fails with ENOSYS.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct

from msgspec import Struct

from stockade.sandbox import kernel

# WAIT_KILLABLE_RECV (5.19) with NEW_LISTENER: a signal does not tear a command out of a judgement.
LISTENER_FLAGS = 1 << 5 | 1 << 3

_RECEIVE, _SEND, _ID_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif with its seccomp_data, 80 bytes
_RESPONSE = struct.Struct("=QqiI")
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE


class Sighting(Struct, frozen=True):
    """One call that waits for an answer.

    Attributes:
        id: The kernel's cookie for the answer.
        pid: The calling thread, in our own PID namespace.
        number, arch, args: The call itself (`struct seccomp_data`).
    """

    id: int
    pid: int
    number: int
    arch: int
    args: tuple[int, ...]


class Eye:
    """The listener's descriptor. Watch `fileno()` for reading, then `receive` one sighting at a time."""

    def __init__(self, fd: int, stage_pid: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self.stage_pid = stage_pid

    def fileno(self) -> int:
        return self._fd

    def receive(self) -> Sighting | None:
        """The next sighting; None if whoever called was killed in the meantime, or nobody is left."""
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._fd, _RECEIVE, buffer, True)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                return None
            raise
        cookie, pid, _flags, number, arch, _ip, *args = _NOTIFICATION.unpack(buffer)
        return Sighting(cookie, pid, number, arch, tuple(args))

    def verify_reading(self) -> None:
        """See that memory inside can be read, at an address where none is: EFAULT comes after the permission.

        Raises:
            HostError: It cannot be read. Then nobody could say what a command is, and each would be denied.
        """
        try:
            kernel.read_memory(self.stage_pid, 8, 1)
        except OSError as error:
            if error.errno == errno.EFAULT:
                return
            from stockade.sandbox.seal_remedies import refuse_layer

            raise refuse_layer(
                "notify (the eye, which cannot read commands' memory)", error.errno or 0, "reading"
            ) from error

    def has_more(self) -> bool:
        """True if `receive` would give another one at once."""
        return self._fd >= 0 and bool(self._poll.poll(0))

    def is_waiting(self, sighting: Sighting) -> bool:
        """True if the caller still waits, so that what was read of its memory belonged to it."""
        try:
            fcntl.ioctl(self._fd, _ID_VALID, struct.pack("=Q", sighting.id))
        except OSError:
            return False
        return True

    def let_go_on(self, sighting: Sighting) -> None:
        self._answer(sighting, 0, _GO_ON)

    def refuse(self, sighting: Sighting, number: int) -> None:
        """Let the call fail with this errno."""
        self._answer(sighting, -number, 0)

    def _answer(self, sighting: Sighting, error: int, flags: int) -> None:
        if self._fd < 0:
            return  # closed with everything else: the kernel has answered already
        try:
            fcntl.ioctl(self._fd, _SEND, _RESPONSE.pack(sighting.id, 0, error, flags))
        except OSError as fault:
            if fault.errno != errno.ENOENT:  # the caller was killed
                raise

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
