"""Every contestant as one context manager that yields a client whose traffic goes through it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import peers
import rig
from rig import HERE, ORIGIN_PORT, PYTHON, Client, Failed

STOCKADE = HERE.parent / ".venv/bin/stockade"
POLICY = f"""\
version: 1
rules:
  - allow: app.test
    ports: [{ORIGIN_PORT}]
    protocol: tcp
internal:
  - host: app.test
    networks: [127.0.0.1/32]
    ports: [{ORIGIN_PORT}]
limits: {{connections: 4096}}
"""


class Subject(NamedTuple):
    """One row of the tables.

    Attributes:
        name: As printed.
        peer: Key in `peers.missing`, or None for what is always there.
        view: `inside` as a sandboxed client sees it, `proxy` as a plain proxy, `direct`.
        start: Starts it, given a folder for configuration and logs.
        is_cpu_whole: False where children's processor time cannot be seen.
    """

    name: str
    peer: str | None
    view: str
    start: Callable[[Path], Iterator[Client]]
    is_cpu_whole: bool = True


def client_command(via: str, host: str = "127.0.0.1") -> list[str]:
    """Return the command line of a client."""
    return [PYTHON, "load.py", "client", via, host, str(ORIGIN_PORT)]


def run_client(folder: Path, via: str, host: str = "127.0.0.1") -> Client:
    """Start a client outside any sandbox."""
    return Client(client_command(via, host), folder / "client.log")


def direct(folder: Path) -> Iterator[Client]:
    """Nothing in between."""
    yield run_client(folder, "direct")


def stockade_command(folder: Path) -> list[str]:
    """Return `stockade run` for the bench's policy, up to the command."""
    (folder / "policy.yaml").write_text(POLICY)
    run = [str(STOCKADE), "run", "-p", str(folder / "policy.yaml"), "--ledger", str(folder / "ledger")]
    return [*run, "--resolve", "app.test=127.0.0.1", "--"]


def stockade_transparent(folder: Path) -> Iterator[Client]:
    """The worker just connects."""
    command = [*stockade_command(folder), *client_command("direct", "app.test")]
    yield Client(command, folder / "stockade.log")


def stockade_room_proxy(folder: Path) -> Iterator[Client]:
    """The worker is configured with the room's proxy."""
    command = [*stockade_command(folder), *client_command("http://198.18.0.1:3128", "app.test")]
    yield Client(command, folder / "stockade.log")


def stockade_proxy(folder: Path) -> Iterator[Client]:
    """The same gateway on an ordinary socket, without a room."""
    (folder / "policy.yaml").write_text(POLICY)
    script = [
        sys.executable,
        str(HERE / "plain_gateway.py"),
        str(folder / "policy.yaml"),
        str(folder / "ledger"),
    ]
    with daemon(script, folder, "198.18.0.1"):
        yield run_client(folder, "http://198.18.0.1:3128", "app.test")


def codex_command() -> list[str]:
    """Return `codex sandbox` up to the command."""
    return [str(peers.CODEX), "sandbox", "-P", "bench", "--"]


def codex_environment() -> dict[str, str]:
    """Return what codex needs in its environment."""
    return {"CODEX_HOME": str(peers.codex_home())}


def codex_inside(folder: Path) -> Iterator[Client]:
    """The client uses the proxy variables that codex sets, which lead to its bridge."""
    command = [*codex_command(), *client_command("environment")]
    yield Client(command, folder / "codex.log", codex_environment())


def codex_proxy(folder: Path) -> Iterator[Client]:
    """The host side of the same proxy: it listens on a port of its own choice, without a token."""
    before = rig.listening()
    keeper = Client([*codex_command(), *client_command("direct")], folder / "codex.log", codex_environment())
    try:
        port = next(port for address, port in rig.listening() - before if speaks_connect(address, port))
        yield run_client(folder, f"http://127.0.0.1:{port}")
    finally:
        keeper.close()


def speaks_connect(address: str, port: int) -> bool:
    """Say whether an HTTP proxy listens there; codex's SOCKS port does not answer like one."""
    with socket.create_connection((address, port), 2) as probe:
        probe.settimeout(2)
        probe.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % ORIGIN_PORT)
        try:
            return probe.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


def srt_command(folder: Path) -> list[str]:
    """Return `srt` up to the command, which it takes as one string."""
    return [peers.node(), str(peers.SRT), "-s", str(folder / "srt.json"), "-c"]


def srt_inside(folder: Path) -> Iterator[Client]:
    """The client uses srt's variables, which lead to socat."""
    command = " ".join(client_command("environment"))
    yield Client([*srt_command(folder), command], folder / "srt.log")


def srt_proxy(folder: Path) -> Iterator[Client]:
    """The host side of the same proxy, with the token that it gave its sandbox."""
    keeper = Client([*srt_command(folder), " ".join(client_command("direct"))], folder / "srt.log")
    try:
        told = keeper.hello["proxies"]
        token = told["http_proxy"].removeprefix("http://").rpartition("@")[0]
        port = told["CLAUDE_CODE_HOST_HTTP_PROXY_PORT"]
        yield run_client(folder, f"http://{token}@127.0.0.1:{port}")
    finally:
        keeper.close()


def sandlock_inside(folder: Path) -> Iterator[Client]:
    """No proxy: sandlock's supervisor makes the connect on the client's behalf."""
    command = [str(peers.SANDLOCK), str(folder / "sandlock_run.py"), str(HERE), *client_command("direct")]
    yield Client(command, folder / "sandlock.log")


def plain_proxy(command: list[str]) -> Callable[[Path], Iterator[Client]]:
    """Return the start of an ordinary proxy on 127.0.0.1:3128."""

    def start(folder: Path) -> Iterator[Client]:
        words = [word.format(folder=folder) for word in command]
        with daemon(words, folder, "127.0.0.1"):
            yield run_client(folder, "http://127.0.0.1:3128")

    return start


@contextmanager
def daemon(command: list[str], folder: Path, address: str) -> Iterator[None]:
    """Run a proxy until the block ends; it listens on port 3128 of `address`."""
    log = folder / "proxy.log"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log.open("w"))
    try:
        rig.wait_for_port(3128, address)
        yield
    except Failed as problem:
        raise Failed(f"{problem}; {rig.last_line(log)}") from problem
    finally:
        process.terminate()
        rig.stop(process)


TINYPROXY = ["tinyproxy", "-d", "-c", "{folder}/tinyproxy.conf"]
SQUID = [peers.which("squid") or "squid", "-N", "-f", "{folder}/squid.conf"]

SUBJECTS = (
    Subject("direct", None, "direct", direct),
    Subject("stockade, transparent", "stockade", "inside", stockade_transparent),
    Subject("stockade, room's proxy", "stockade", "inside", stockade_room_proxy),
    Subject("codex, through its bridge", "codex", "inside", codex_inside),
    Subject("srt, through socat", "srt", "inside", srt_inside, is_cpu_whole=False),
    Subject("sandlock, supervised connect", "sandlock", "inside", sandlock_inside),
    Subject("stockade, its proxy entry", "stockade", "proxy", stockade_proxy),
    Subject("codex, host side", "codex", "proxy", codex_proxy),
    Subject("srt, host side", "srt", "proxy", srt_proxy),
    Subject("tinyproxy", "tinyproxy", "proxy", plain_proxy(TINYPROXY)),
    Subject("squid", "squid", "proxy", plain_proxy(SQUID)),
)


@contextmanager
def running(subject: Subject, folder: Path) -> Iterator[Client]:
    """Start a subject, and leave nothing of it behind."""
    try:
        with contextmanager(subject.start)(folder) as client:
            try:
                yield client
            finally:
                client.close()
    except (OSError, StopIteration, KeyError) as problem:
        raise Failed(repr(problem)) from problem
    finally:
        rig.end_leftovers()
