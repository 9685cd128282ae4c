"""Start the lab's server, say where it is, and end it with everything that it started.

It ends by Ctrl-C, SIGTERM or the end of its terminal, and that is how a server is meant to end: exit
code 0, as with other servers of this kind. A second Ctrl-C does not wait for anything.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.errors import UserError

if TYPE_CHECKING:
    from uvicorn import Server

BACKLOG = 256
CONNECTION_LIMIT = 512
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_lab(port: int, data: Path | None, own_pack: Path | None, may_open: bool) -> int:
    """Serve until a signal ends it.

    Raises:
        UserError: The port is taken, the data folder cannot be used, or the pack does not load.
    """
    listener = listen(port)
    port = listener.getsockname()[1]
    from stockade.lab.web.app import build_app
    from stockade.lab.web.guard import Guard
    from stockade.lab.web.lab import open_lab

    guard = Guard(port)
    lab = open_lab(data, own_pack)
    try:
        server = make_server(build_app(guard, lab))
        address = f"http://127.0.0.1:{port}/?token={guard.token}"

        def tell() -> None:
            print(address, flush=True)
            print("stockade lab: open this address in a browser; Ctrl-C ends the lab", file=sys.stderr)
            if may_open:
                open_browser(f"http://127.0.0.1:{port}/?token={guard.make_once()}")

        asyncio.run(_serve(server, listener, tell))
    finally:
        lab.close()
    return 0


def listen(port: int) -> socket.socket:
    """A socket on loopback that already takes connections.

    Raises:
        UserError: The port is taken, or this user may not have it.
    """
    # Named, since asyncio sends small answers at once (TCP_NODELAY) only where it sees the protocol's
    # number: without it the second part of each answer waits 40 ms for an acknowledgment.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # else a restart waits a minute
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OverflowError):
            raise UserError("bad-port", f"{port} is no port", "0 to 65535; 0 takes a free one") from error
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} of 127.0.0.1 is taken, perhaps by another `stockade lab`"
            raise UserError("port-taken", message, "leave --port out, and a free one is taken") from error
        raise UserError("no-port", f"port {port}: {error.strerror}", "a port from 1024 on") from error
    return listener


def make_server(app: object) -> Server:
    """uvicorn, without what a server for the outside needs: no log of accesses, no reload, no WebSocket."""
    from uvicorn import Config, Server

    from stockade.lab.web.protocol import PatientProtocol

    return Server(
        Config(
            app,  # type: ignore[arg-type]
            http=PatientProtocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTION_LIMIT,
            timeout_graceful_shutdown=1,
        )
    )


async def _serve(server: Server, listener: socket.socket, tell: Callable[[], None]) -> None:
    """uvicorn's own loop, with our signals: its handlers would end us by the signal once more."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    for number in _ENDING:
        loop.add_signal_handler(number, end)
    loop.call_soon(tell)
    await server._serve([listener])


def open_browser(address: str) -> None:
    """Show the page, where there is a desktop to show it on. Nothing depends on it.

    Not by `webbrowser`, which falls back to text browsers in our terminal. As arguments, never through a
    shell; and not as root: a browser should not run as root, and most refuse to. Other users of the
    machine can read a command's arguments, so the token in this address is good for one use.
    """
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) or os.geteuid() == 0:
        return
    with suppress(OSError):
        subprocess.Popen(
            ["xdg-open", address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in our terminal is not for the browser
        )
