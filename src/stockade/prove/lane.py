"""A lane: one range, in which techniques are tried one after the other.

Runs in *host* of its own range, so lanes do not see each other's traffic and what arrives needs
no guessing whose it was. Orders come in as JSON lines, trials go out as JSON lines; the first
line out says that the lane is sealed and ready.

Usage: ``python -m stockade.prove.lane`` (inside the range).
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from stockade.errors import HostError, StockadeError
from stockade.prove.execution import Execution, prepare_tools
from stockade.prove.host_services import HostServices, has_vsock_loopback
from stockade.prove.sealed import sealed_proof
from stockade.prove.technique import Technique, load_catalogue
from stockade.prove.trial import Order, Trial, Try
from stockade.prove.world_client import World

if TYPE_CHECKING:
    from stockade.prove.browser_execution import Browsers

READY = b'{"ready":true}'


class Lane:
    """Tries techniques in this range.

    Raises:
        ContainmentError: This network has a way out; nothing was tried.
        HostError: There is no world here that could be attacked.
    """

    def __init__(self) -> None:
        if sealed_proof().device is None:
            raise HostError("no-range", "a lane runs in a range and nowhere else", "stockade prove")
        self._base = Path(tempfile.mkdtemp(prefix="lane-"))
        self._base.chmod(0o755)
        self._world = World()
        try:
            self._services = HostServices(self._base, secrets.token_hex(4))
        except OSError as problem:
            shutil.rmtree(self._base, ignore_errors=True)
            raise HostError("range-broken", f"the range is not whole: {problem.strerror}") from problem
        self._tools = prepare_tools(self._base)
        self._catalogue = {technique.id: technique for technique in load_catalogue()}
        self._browsers: Browsers | None = None

    def close(self) -> None:
        if self._browsers is not None:
            self._browsers.close()
        self._services.close()
        shutil.rmtree(self._base, ignore_errors=True)

    def perform(self, order: Order) -> Trial:
        """Try one technique in the open, then contained."""
        technique = self._catalogue[order.id]
        if technique.not_supported is not None:
            return Trial(id=order.id, control=Try(), attempt=Try(), not_supported=technique.not_supported)
        if missing := find_missing(technique.needs):
            return Trial(id=order.id, control=Try(), attempt=Try(), not_supported=missing)
        if technique.is_browser:
            return self._perform_in_browser(technique, order)
        control = self._try(technique, order, is_open=True) if order.has_control else Try()
        attempt = self._try(technique, order, is_open=False)
        return Trial(id=order.id, control=control, attempt=attempt, layers_off=order.layers_off)

    def _perform_in_browser(self, technique: Technique, order: Order) -> Trial:
        try:
            if self._browsers is None:
                from stockade.prove.browser_execution import Browsers  # few lanes need it, and it is slow

                self._browsers = Browsers(self._world, self._services, self._base)
            return self._browsers.perform(technique, order)
        except Exception as problem:  # noqa: BLE001  # as below
            said = Try(problem=f"{type(problem).__name__}: {problem}")
            return Trial(id=order.id, control=said, attempt=said, layers_off=order.layers_off)

    def _execution(self, technique: Technique, order: Order, folder: Path, is_open: bool) -> Execution:
        return Execution(technique, order, self._world, self._services, folder, self._tools, is_open)

    def _try(self, technique: Technique, order: Order, is_open: bool) -> Try:
        folder = Path(tempfile.mkdtemp(dir=self._base))
        folder.chmod(0o755)
        try:
            return self._execution(technique, order, folder, is_open).run()
        except Exception as problem:  # noqa: BLE001  # one trial says nothing; the lane goes on with the next
            return Try(problem=f"{type(problem).__name__}: {problem}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


SOCKETS = {"mptcp": (2, 1, 262), "udp-lite": (2, 2, 136), "sctp": (2, 1, 132)}


def _opens(family: int, kind: int, protocol: int) -> bool:
    try:
        socket.socket(family, kind, protocol).close()
    except OSError:
        return False
    return True


def _has_x32_calls() -> bool:
    """Whether getpid answers by the x32 convention, which a kernel may be built without."""
    libc = ctypes.CDLL(None)
    return os.uname().machine == "x86_64" and libc.syscall(0x40000000 | 39) == os.getpid()


def find_missing(needs: tuple[str, ...]) -> str | None:
    """What of this the machine does not have, and how to get it; None if nothing is missing."""
    for need in needs:
        if need == "root":
            if os.geteuid() != 0:
                return "needs root: an ordinary user cannot do this even in the open"
        elif need in SOCKETS:
            if not _opens(*SOCKETS[need]):
                return f"needs {need}: this kernel has no such sockets"
        elif need == "vsock-loopback":
            if not has_vsock_loopback():
                return "needs a VSOCK loopback: modprobe vsock_loopback, and a kernel that has it here"
        elif need == "x32-calls":
            if not _has_x32_calls():
                return "needs x32 calls: this kernel was built without them, so the attack does nothing here"
        elif need == "x86-64":
            if os.uname().machine != "x86_64":
                return "needs x86-64: the machine code of this attack is for it"
        elif shutil.which(need) is None:
            return f"needs {need}: apt install {need}"
    return None


def main() -> int:
    """Serve orders until there are no more; SIGTERM ends what runs and then us."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        lane = Lane()
    except StockadeError as problem:
        print(f"lane: {problem}", *([problem.hint] if problem.hint else []), sep="\n", file=sys.stderr)
        return problem.exit_code
    try:
        _say(READY)
        for line in sys.stdin.buffer:
            _say(msgspec.json.encode(lane.perform(msgspec.json.decode(line, type=Order))))
    finally:
        lane.close()
    return 0


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
