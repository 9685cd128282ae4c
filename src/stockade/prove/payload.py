"""Runs one payload as a child process, and lets nothing that it does hold the lane up.

What it prints is foreign: it may hang, never stop, print nonsense, die, or leave children that
keep its output open. Memory and time are bounded here, and the reason is given in words, so
that the judge can say `inconclusive` and why.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

LINE_LIMIT_BYTES = 128 * 1024  # one answer: 4,000 characters of a reply, each up to six bytes, several times
OUTPUT_LIMIT_BYTES = 4 * 1024 * 1024
ANSWERS_LIMIT = 1000
TEXT_LIMIT = 300
ERRORS_LIMIT_BYTES = 2000
TERMINATION_S = 3.0
# Children of an ended payload may hold its output open; what they still say within this is heard.
GRACE_S = 0.1
MARK = "STOCKADE_PROVE_TRY"

Said = dict[str, Any]


class PayloadEnd(Struct, frozen=True, kw_only=True):
    """What a payload said and how it ended.

    Attributes:
        said: Its answers, in order.
        code: Its exit code; None if it had to be ended.
        problem: Why its end says nothing about the attack, if so.
    """

    said: tuple[Said, ...]
    code: int | None
    problem: str | None


def run_payload(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    mark: str,
    limit_s: float,
    answer: Callable[[str], None],
    descriptors: Sequence[int] = (),
) -> PayloadEnd:
    """Run it to its end, or to ours.

    Args:
        descriptors: Those of ours that it inherits besides its standard streams.
        mark: A word that its processes carry in their environment, so that none outlives it.
        answer: Does what the payload asks the host for; the payload waits meanwhile.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, MARK: mark},
        start_new_session=True,
        pass_fds=tuple(descriptors),
    )
    reading = _Reading(process, time.monotonic() + limit_s, answer)
    try:
        problem = reading.read_to_the_end(limit_s)
    finally:
        code = _end(process)
        end_marked(mark)
    return PayloadEnd(
        said=tuple(reading.said),
        code=None if problem else code,
        problem=problem or _find_problem(reading.said, reading.errors, code),
    )


class _Reading:
    """Reads answers and errors of one payload until it ends, or until there is a reason to end it."""

    def __init__(
        self, process: subprocess.Popen[bytes], deadline: float, answer: Callable[[str], None]
    ) -> None:
        self.said: list[Said] = []
        self.errors = b""
        self._process = process
        self._deadline = deadline
        self._answer = answer
        self._rest = b""
        self._size_bytes = 0

    def read_to_the_end(self, limit_s: float) -> str | None:
        """Returns when it has ended; the reason why it has to be ended otherwise."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        ended = os.pidfd_open(self._process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for stream in (self._process.stdout, self._process.stderr):
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream.fileno(), selectors.EVENT_READ)
                selector.register(ended, selectors.EVENT_READ)
                has_ended = False
                while (left := self._deadline - time.monotonic()) > 0:
                    ready = {key.fd for key, _ in selector.select(left)}
                    if problem := self._read_ready(ready - {ended}, selector):
                        return problem
                    if ended in ready and ready == {ended}:
                        return None
                    if ended in ready and not has_ended:  # its children may go on for a moment only
                        has_ended = True
                        self._deadline = min(self._deadline, time.monotonic() + GRACE_S)
                return None if has_ended else f"it did not end within {limit_s:g} s"
        finally:
            os.close(ended)

    def _read_ready(self, ready: set[int], selector: selectors.BaseSelector) -> str | None:
        assert self._process.stdout is not None
        for fd in ready:
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                continue
            if not data:
                selector.unregister(fd)
            elif fd != self._process.stdout.fileno():
                self.errors = (self.errors + data)[:ERRORS_LIMIT_BYTES]
            elif problem := self._take(data):
                return problem
        return None

    def _take(self, data: bytes) -> str | None:
        self._size_bytes += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            said = parse_answer(line)
            if "ask" in said:
                if problem := self._serve(str(said["ask"])):
                    return problem
            else:
                self.said.append(said)
        if self._size_bytes > OUTPUT_LIMIT_BYTES or len(self.said) > ANSWERS_LIMIT:
            del self.said[ANSWERS_LIMIT:]
            return f"it printed more than {OUTPUT_LIMIT_BYTES >> 20} MiB or {ANSWERS_LIMIT} lines"
        if len(self._rest) > LINE_LIMIT_BYTES:
            return f"it printed a line of more than {LINE_LIMIT_BYTES >> 10} KiB"
        return None

    def _serve(self, asked: str) -> str | None:
        try:
            self._answer(asked)
        except Exception as problem:  # noqa: BLE001  # a stage of ours failed: this trial says nothing
            return f"the host could not do {asked[:TEXT_LIMIT]!r}: {problem}"
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"done\n")
            self._process.stdin.flush()
        return None


def parse_answer(line: bytes) -> Said:
    """One line of a payload: an object of plain JSON, or its text."""
    try:
        said = msgspec.json.decode(line)
        msgspec.json.encode(said)  # what cannot be handed on is text, too
    except (ValueError, OverflowError, RecursionError):
        said = None
    if isinstance(said, dict):
        return said
    return {"text": line[: 4 * TEXT_LIMIT].decode(errors="replace")[:TEXT_LIMIT]}


def _find_problem(said: Sequence[Said], errors: bytes, code: int) -> str | None:
    broken = next((one["broken"] for one in said if "broken" in one), None)
    if broken is not None:
        return f"the attack itself failed: {broken}"
    if any(one.get("done") for one in said):
        return None
    told = errors.decode(errors="replace").strip()
    nonsense = next((one["text"] for one in said if "text" in one), None)
    if told:
        return f"it ended with code {code} before its end: {told[-ERRORS_LIMIT_BYTES:]}"
    if nonsense is not None:
        return f"it ended with code {code} before its end, and printed {nonsense!r}"
    return f"it ended with code {code} before its end"


def _end(process: subprocess.Popen[bytes]) -> int:
    """End it if it runs: first by request, so that a run can close its ledger and remove its groups."""
    try:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(TERMINATION_S)
    finally:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
    return process.wait()


def end_marked(mark: str) -> None:
    """End what carries this mark in its environment: children that a payload left in the open."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(5):  # one that forks while we look is found in the next turn
        found = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _carries(pid, wanted)]
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.005)


def _carries(pid: int, wanted: bytes) -> bool:
    if pid == os.getpid():
        return False
    try:
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
