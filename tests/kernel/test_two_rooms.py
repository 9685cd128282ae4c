"""Two workers on one machine at the same time: neither reaches the other, and both are on record."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "bwrap")]

LISTENER = (
    "import os, socket, sys\n"
    "tcp = socket.create_server(('0.0.0.0', 7777))\n"
    "six = socket.create_server(('::', 7778), family=socket.AF_INET6)\n"
    "unix = socket.socket(socket.AF_UNIX); unix.bind('\\0neighbor'); unix.listen()\n"
    "open('/tmp/mine', 'w').write('x')\n"
    "own = [socket.create_connection(('127.0.0.1', 7777), 2)]  # the control: it is there for its own room\n"
    "print('listening', flush=True)\nsys.stdin.read()\n"
    "tcp.setblocking(False); tcp.accept()\n"
    "try: tcp.accept(); print('visited')\n"
    "except BlockingIOError: print('alone')\n"
)
VISITOR = (
    "import os, socket\n"
    "def tries(family, address):\n"
    " s = socket.socket(family); s.settimeout(3)\n"
    " try:\n  s.connect(address); s.send(b'hello'); return 'data' if s.recv(1) else 'closed'\n"
    " except OSError as e: return type(e).__name__\n"
    "print(tries(2, ('127.0.0.1', 7777)), tries(10, ('::1', 7778)), tries(1, '\\0neighbor'))\n"
    "processes = [name for name in os.listdir('/proc') if name.isdigit()]\n"
    "print(tries(2, ('198.18.0.1', 7777)), os.path.exists('/tmp/mine'), len(processes) < 4)\n"
)


def test_workers_do_not_reach_each_other(stockade: Any, world: World) -> None:
    unix_too = "exec: {mode: any, unix-sockets: true}\n"  # so that the abstract name is tried in earnest
    first = stockade.start([sys.executable, "-c", LISTENER], unix_too)
    shelf = stockade.ledger
    assert first.stdout is not None
    assert first.stdout.readline() == b"listening\n"
    visit = stockade([sys.executable, "-c", VISITOR], unix_too)
    loopback, outside = visit.out.splitlines()
    assert loopback == "ConnectionRefusedError ConnectionRefusedError ConnectionRefusedError"
    assert outside == "ConnectionResetError False True"
    out, err = first.communicate(b"", timeout=15)
    assert out == b"alone\n", err
    assert [r["kind"] for r in stockade.read_ledger(shelf)][-1] == "run.closed"
    assert [r["kind"] for r in visit.records][-1] == "run.closed"


def test_two_runs_share_a_shelf(stockade: Any, world: World, tmp_path: Path) -> None:
    shelf = ["--ledger", str(tmp_path / "shared")]
    first = stockade.start([sys.executable, "-c", "import sys; sys.stdin.read()"], extra=shelf)
    deadline = time.monotonic() + 10
    while not (tmp_path / "shared").is_dir() or not os.listdir(tmp_path / "shared"):
        assert time.monotonic() < deadline
    second = stockade(["true"], extra=shelf)
    assert second.code == 0
    first.communicate(b"", timeout=15)
    records = stockade.read_ledger(tmp_path / "shared")
    assert len({record["run"] for record in records}) == 2
    assert sorted(r["kind"] for r in records) == [
        *["attempt"] * 2,  # the launched commands
        *["run.closed"] * 2,
        *["run.opened"] * 2,
    ]
