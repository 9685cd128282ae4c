"""The worker's standard streams: copied through pipes or a terminal of ours, never handed over.

A descriptor of the caller inside the sandbox would be a way out (a folder can be walked
from, a file opened again for writing through /proc/self/fd). Copying keeps what a plain
command's streams do: end of file passes both ways, a slow reader slows the writer, and
a reader that goes away gives the writer SIGPIPE.

The caller's descriptors stay in blocking mode: that flag belongs to the open file,
which a shell and others share with us. So we write at most what a ready pipe takes at
once (PIPE_BUF), and read only when there is something.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import struct
import termios
from collections.abc import Callable

from stockade.reactor import READ, WRITE, Reactor

CHUNK_BYTES = 1 << 16
SAFE_WRITE_BYTES = select.PIPE_BUF  # POLLOUT promises that this much is taken without waiting (pipe(7))
BUFFER_LIMIT_BYTES = 1 << 18
MESSAGE_LIMIT_BYTES = 1 << 26  # a picture of a page, in base64, has a few million bytes


class Turn:
    """Who is in the middle of something that a terminal must get in one piece.

    Two streams may lead to one terminal. Half a sequence of the one, followed by letters of
    the other, would be a sequence that no filter has seen.
    """

    def __init__(self) -> None:
        self.holder: OutputPump | None = None


class MessageLimit:
    """Lets messages that end with a NUL byte pass, and nothing more once one of them is too long.

    Who reads messages keeps the piece that has no end yet, whatever it comes to: a driven browser that was
    taken over could fill the memory of its driver.
    """

    def __init__(self, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._open_bytes = 0
        self.is_over = False

    def feed(self, data: bytes) -> bytes:
        """What of this goes on: all of it, or nothing any more."""
        longest = max(map(len, data.split(b"\0")[1:-1]), default=0)
        first, nul, _ = data.partition(b"\0")
        longest = max(longest, self._open_bytes + len(first))
        self._open_bytes = len(data) - data.rfind(b"\0") - 1 if nul else self._open_bytes + len(data)
        self.is_over |= longest > self._limit_bytes
        return b"" if self.is_over else data


class OutputPump:
    """Copies what the worker writes to a descriptor of the caller, then calls `on_done` once.

    Args:
        source: Our end of the worker's stream, non-blocking; owned and closed here.
        sink: The caller's descriptor; never closed, never switched to non-blocking.
        clean: Applied to each piece: takes answer-back sequences out of terminal output.
        turn: Shared by those whose sinks may be one terminal; with it pieces end before an escape.
    """

    def __init__(
        self,
        reactor: Reactor,
        source: int,
        sink: int,
        on_done: Callable[[], None],
        clean: Callable[[bytes], bytes] = bytes,
        owns_source: bool = True,
        turn: Turn | None = None,
    ) -> None:
        self._reactor = reactor
        self._source = source
        self._sink = sink
        self._on_done = on_done
        self._clean = clean
        self._turn = turn
        self._owns_source = owns_source
        self._pending = memoryview(b"")
        self._ended = False
        self._waits_for_sink = False
        self._sink_can_wait = can_be_watched(sink)
        self.is_done = False
        reactor.watch(source, READ, self._read)

    def _read(self, _events: int) -> None:
        try:
            data = os.read(self._source, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:  # EIO: the last process with the terminal open has closed it
            data = b""
        self._pending = memoryview(self._clean(data))
        self._ended = not data
        self._write()

    def _write(self, _events: int = 0) -> None:
        try:
            while self._pending and self._is_free() and (not self._sink_can_wait or is_writable(self._sink)):
                size = self._piece_bytes()
                written = os.write(self._sink, self._pending[:size])
                self._pending = self._pending[written:]
                if self._turn is not None:
                    self._turn.holder = self if written < size else None
        except BlockingIOError:
            pass  # the caller had made it non-blocking itself
        except OSError:
            # Nobody reads any more (EPIPE), or the disk is full: close our end, so that the
            # worker gets what a plain command would get on its next write.
            self._pending = memoryview(b"")
            self._ended = True
        if self._pending:
            self._wait_for_sink()
        elif self._ended:
            self.finish()
        elif self._waits_for_sink:
            self._stop_waiting()
            self._reactor.rewatch(self._source, READ)

    def _is_free(self) -> bool:
        return self._turn is None or self._turn.holder in (None, self)

    def _piece_bytes(self) -> int:
        """How much goes out at once: to a terminal nothing that ends within an escape sequence.

        The filter lets no sequence pass that is longer than a piece (terminal.py).
        """
        if not self._sink_can_wait:
            return len(self._pending)
        if self._turn is None or len(self._pending) <= SAFE_WRITE_BYTES:
            return min(len(self._pending), SAFE_WRITE_BYTES)
        last_escape = bytes(self._pending[:SAFE_WRITE_BYTES]).rfind(b"\x1b")
        return last_escape if last_escape > 0 else SAFE_WRITE_BYTES

    def _wait_for_sink(self) -> None:
        if not self._waits_for_sink:
            self._waits_for_sink = True
            self._reactor.unwatch(self._source)
            self._reactor.watch(self._sink, WRITE, self._write)

    def _stop_waiting(self) -> None:
        self._waits_for_sink = False
        self._reactor.unwatch(self._sink)
        self._reactor.watch(self._source, READ, self._read)

    def finish(self) -> None:
        """Stop copying, whatever is left."""
        if self.is_done:
            return
        self.is_done = True
        if self._turn is not None and self._turn.holder is self:
            self._turn.holder = None
        if self._waits_for_sink:
            self._reactor.unwatch(self._sink)
        self._reactor.unwatch(self._source)
        if self._owns_source:
            os.close(self._source)
        self._on_done()


class InputPump:
    """Copies the caller's standard input to the worker until either side ends.

    A regular file is read without moving the caller's position; at the end the position
    is set to what the worker really took, so that ``while read line; do stockade run ...``
    leaves the loop its other lines, as a plain command does.
    """

    def __init__(
        self,
        reactor: Reactor,
        source: int,
        sink: int,
        *,
        seen: Callable[[bytes], None] = lambda _data: None,
        owns_sink: bool = True,
    ) -> None:
        self._reactor = reactor
        self._source = source
        self._sink = sink
        self._seen = seen
        self._owns_sink = owns_sink
        self._pending = memoryview(b"")
        self._ended = False
        self._is_file, self._start = _file_position(source)
        self._taken = 0
        self._source_watched = False
        self._observer = -1
        self.is_done = False
        reactor.watch(sink, 0, self._sink_event)
        self.resume()

    def resume(self) -> None:
        """Look at the caller's input (again): at the start, and when we are in the foreground again."""
        if self.is_done or self._pending or self._source_watched:
            return
        if not can_be_watched(self._source):
            self._reactor.call_soon(self._fill_from_file)
        elif is_in_foreground(self._source):
            self._source_watched = True
            self._reactor.watch(self._source, READ, self._fill)

    def pause(self) -> None:
        if self._source_watched:
            self._source_watched = False
            self._reactor.unwatch(self._source)

    def _fill(self, _events: int) -> None:
        if not is_in_foreground(self._source):
            self.pause()  # reading from a background job would stop us with SIGTTIN
            return
        self._take(self._read())

    def _fill_from_file(self) -> None:
        while not self.is_done and not self._pending and not self._ended:
            self._take(self._read())

    def _read(self) -> bytes | None:
        try:
            if self._is_file:
                return os.pread(self._source, CHUNK_BYTES, self._start + self._taken)
            return os.read(self._source, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # closed, a folder, or a terminal that hung up: an end of input

    def _take(self, data: bytes | None) -> None:
        if data is None:
            return
        self._seen(data)
        self._taken += len(data)
        self._ended = not data
        self._pending = memoryview(data)
        self._write()

    def _sink_event(self, events: int) -> None:
        if events & (select.EPOLLERR | select.EPOLLHUP):
            self.finish()
        else:
            self._write()

    def _write(self) -> None:
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._sink, self._pending) :]
        except BlockingIOError:
            self.pause()
            self._reactor.rewatch(self._sink, WRITE)
            return
        except OSError:
            self._pending = memoryview(b"")
            self._ended = True
        if self._ended:
            self.finish()
            return
        self._reactor.rewatch(self._sink, 0)
        self.resume()

    def finish(self) -> None:
        """Stop copying; the worker sees end of file."""
        if self.is_done:
            return
        self.is_done = True
        self.pause()
        self._reactor.unwatch(self._sink)
        if self._is_file:
            # A reading end of the same pipe: it shows what the worker leaves in it, after we have
            # closed the writing end to say end of file.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            self._observer = os.open(f"/proc/self/fd/{self._sink}", flags)
        if self._owns_sink:
            os.close(self._sink)

    def hand_back(self) -> None:
        """Set the caller's position to what the worker took. Call it after the worker has ended."""
        self.finish()
        if self._observer >= 0:
            unread = len(self._pending) + bytes_waiting(self._observer)
            os.close(self._observer)
            self._observer = -1
            os.lseek(self._source, self._start + self._taken - unread, os.SEEK_SET)


def can_be_watched(fd: int) -> bool:
    """Whether epoll takes it; regular files and /dev/null are always ready and are refused."""
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode):
            return False
        probe = select.epoll()
        try:
            probe.register(fd, 0)
        finally:
            probe.close()
    except OSError:
        return False
    return True


def is_writable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def bytes_waiting(pipe: int) -> int:
    """What was written to a pipe and not read yet (FIONREAD works on either end)."""
    try:
        answer = fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", answer)[0])


def is_in_foreground(fd: int) -> bool:
    """Whether reading from this terminal is ours to do; anything else that is not a terminal is."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError as error:
        return error.errno in (errno.ENOTTY, errno.EBADF)


def _file_position(fd: int) -> tuple[bool, int]:
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return True, os.lseek(fd, 0, os.SEEK_CUR)
    except OSError:
        pass  # closed: reading it will say end of file
    return False, 0
