"""A lane: one range, in which techniques are tried one after the other.

Runs in *host* of its own range, so lanes do not see each other's traffic and what arrives needs
no guessing whose it was. Orders come in as JSON lines, trials go out as JSON lines.

Usage: ``python -m stockade.prove.lane`` (inside the range).
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any

import msgspec
from msgspec import Struct

from stockade.ledger.shelf import RunReader, list_runs
from stockade.prove.host_services import HostServices, has_vsock_loopback
from stockade.prove.scenery import Scenery
from stockade.prove.sealed import sealed_proof
from stockade.prove.stages import OPEN_TOO, STAGES, STOCKADE, Scene
from stockade.prove.technique import ATTACKS_FOLDER, Technique, load_catalogue
from stockade.prove.trial import Trial, Try
from stockade.prove.witnesses import Sorted, list_seen, sort_seen
from stockade.prove.world_client import World

PYTHON = "/usr/bin/python3"
LIMIT_S = 20.0
# `RANGE_KEY` is what a rule's `credential:` may name: the gateway's own account at the range's provider.
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "RANGE_KEY": "range-provider-key"}
TOOLS = ("kit.py", "native.py", "probe.py", "runner.py")
BASE_POLICY = "version: 1\nrules:\n  - allow: allowed.test\n    ports: [80, 443]\n"
_DENIAL_KEYS = (
    "seq", "id", "entry", "protocol", "reason", "rule", "risk", "name", "address", "port", "method", "path",
    "raw", "sni", "host", "argv", "program", "call", "layer", "file", "query_type", "why", "repeated",
)  # fmt: skip


class Order(Struct, frozen=True, kw_only=True):
    """What a lane is asked to do.

    Attributes:
        id: The technique.
        layers_off: `--without-layer` of the contained execution; `everything` runs it in the open once more.
        has_control: False where an ablation has the control already.
        evidence: Folder into which ledgers and screenshots go.
    """

    id: str
    evidence: str
    layers_off: tuple[str, ...] = ()
    has_control: bool = True


class Lane:
    """Tries techniques in this range."""

    def __init__(self) -> None:
        sealed_proof()
        self._base = Path(tempfile.mkdtemp(prefix="lane-"))
        self._base.chmod(0o755)
        self._world = World()
        self._services = HostServices(self._base, secrets.token_hex(4))
        self._catalogue = {technique.id: technique for technique in load_catalogue()}

    def close(self) -> None:
        shutil.rmtree(self._base, ignore_errors=True)

    def perform(self, order: Order) -> Trial:
        """Try one technique in the open, then contained."""
        technique = self._catalogue[order.id]
        if technique.not_supported is not None:
            return Trial(id=order.id, control=Try(), attempt=Try(), not_supported=technique.not_supported)
        if missing := find_missing(technique.needs):
            return Trial(id=order.id, control=Try(), attempt=Try(), not_supported=missing)
        control = self._try(technique, order, is_open=True) if order.has_control else Try()
        attempt = self._try(technique, order, is_open=False)
        return Trial(id=order.id, control=control, attempt=attempt, layers_off=order.layers_off)

    def _try(self, technique: Technique, order: Order, is_open: bool) -> Try:
        folder = Path(tempfile.mkdtemp(dir=self._base))
        folder.chmod(0o755)
        try:
            return Execution(technique, order, self._world, self._services, folder, is_open).run()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Execution:
    """One technique run once."""

    def __init__(
        self,
        technique: Technique,
        order: Order,
        world: World,
        services: HostServices,
        folder: Path,
        is_open: bool,
    ) -> None:
        self._technique = technique
        self._order = order
        self._world = world
        self._services = services
        self._folder = folder
        self._is_open = is_open
        self._word = secrets.token_hex(6)
        self._workspace = folder / "work"
        self._policy = folder / "policy.yaml"
        self._shelf = Path(order.evidence) / "ledger"
        self._said: list[dict[str, Any]] = []
        self._runs_before: frozenset[str] = frozenset()
        self._scenery = Scenery(folder, self._workspace, self._word, is_open)

    def run(self) -> Try:
        try:
            self._prepare()
            started = time.monotonic()
            code, problem = self._execute()
            seconds = time.monotonic() - started
            seen = self._look()
        finally:
            self._scenery.take_down()
        records = self._read_records()
        closing = records[-1] if records and records[-1]["kind"] == "run.closed" else {}
        return Try(
            said=tuple(self._said),
            is_done=any(said.get("done") for said in self._said),
            allowed_before=self._worked("before", seen),
            allowed_after=self._worked("after", seen),
            arrived=seen.arrived,
            stray=() if self._is_open else seen.stray,
            denials=tuple(_shorten(one) for one in records if one.get("verdict") == "deny"),
            closing=closing,
            exit_code=code,
            problem=problem,
            seconds=round(seconds, 3),
            run=self._run_name(),
        )

    # --- before -------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._workspace.mkdir()
        for name in (*TOOLS, f"{self._module}.py"):
            shutil.copy(ATTACKS_FOLDER / name, self._workspace / name)
        if os.getuid() == 0:
            self._workspace.chmod(0o777)
        self._world.reset()
        self._scenery.put_up(self._technique.before)
        self._policy = self._scenery.policy or self._policy
        text = BASE_POLICY + self._technique.rules.rstrip() + "\n" + self._technique.policy
        self._policy.write_text(self._name_places(text))
        self._services.take()
        if self._technique.zone:
            self._world.set_dns(dict(self._technique.zone))
        if self._technique.pages:
            self._world.set_pages(self._technique.pages)
        if self._shelf.is_dir():
            self._runs_before = frozenset(list_runs(self._shelf))

    @property
    def _module(self) -> str:
        return self._technique.id.replace("-", "_")

    def _command(self) -> list[str]:
        told = {
            "attack": self._module,
            "word": self._word,
            "facts": self._facts(),
            "folder": str(self._workspace),
            "open": self._is_open,
        }
        worker = [PYTHON, "runner.py", json.dumps(told)]
        if self._is_open:
            return worker
        return [
            *STOCKADE, "run", "-q", "-p", str(self._policy), "--ledger", str(self._shelf),
            "--write", str(self._workspace),
            *(f"--without-layer={name}" for name in self._order.layers_off),
            *(word for option in self._technique.options for word in shlex.split(self._name_places(option))),
            "--", *worker,
        ]  # fmt: skip

    def _facts(self) -> dict[str, Any]:
        own = {
            "witness": str(self._workspace / "witness"),
            "ledger": str(self._shelf),
            "policy": str(self._policy),
        }
        return {**self._services.facts, **own, **self._scenery.facts}

    def _name_places(self, text: str) -> str:
        """`$shared`, `$report` and the other facts by their names."""
        return Template(text).safe_substitute(self._facts())

    # --- meanwhile ----------------------------------------------------------------------------

    def _execute(self) -> tuple[int | None, str | None]:
        with (self._folder / "stderr").open("w+b") as errors:
            worker = subprocess.Popen(
                self._command(),
                cwd=self._workspace,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **ENVIRONMENT},
                pass_fds=self._scenery.descriptors,
            )
            timer = threading.Timer(LIMIT_S, worker.kill)
            timer.start()
            try:
                self._listen(worker)
                code = worker.wait()
            finally:
                timer.cancel()
                for stream in (worker.stdin, worker.stdout):
                    if stream is not None:
                        with suppress(OSError):
                            stream.close()
            if not self._said:
                errors.seek(0)
                return code, errors.read(2000).decode(errors="replace").strip() or "the payload said nothing"
        broken = next((said["broken"] for said in self._said if "broken" in said), None)
        return code, None if broken is None else f"the attack itself failed: {broken}"

    def _listen(self, worker: subprocess.Popen[bytes]) -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        for line in worker.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                said = {"text": line.decode(errors="replace")[:300]}
            if not isinstance(said, dict):
                said = {"text": str(said)[:300]}
            if "ask" not in said:
                self._said.append(said)
                continue
            if not self._is_open or said["ask"] in OPEN_TOO:
                self._said += self._play(said["ask"])
            with suppress(BrokenPipeError):
                worker.stdin.write(b"done\n")
                worker.stdin.flush()

    def _play(self, stage: str) -> list[dict[str, Any]]:
        scene = Scene(
            self._folder, self._workspace, self._shelf, self._run_name(), self._policy, self._facts(),
            self._is_open, self._order.layers_off,
        )  # fmt: skip
        word = STAGES[stage](scene)
        return [] if word is None else [{"stage": stage, "word": word}]

    # --- afterwards ---------------------------------------------------------------------------

    def _look(self) -> Sorted:
        world = self._world
        seen = list_seen(world.arrivals(), world.packets(), world.dns_questions())
        seen += self._services.take()
        witness = self._workspace / "witness"
        if witness.exists() and self._word in witness.read_text(errors="replace"):
            seen.append({"what": "command", "text": self._word})
        seen += self._scenery.look(self._said)
        return sort_seen(seen, self._technique.arrives, self._word, self._technique.reachable)

    def _worked(self, when: str, seen: Sorted) -> bool:
        """The permitted request was answered, and the world saw it: neither alone would do."""
        word = f"permitted={when}-{self._word}"
        answered = any(
            said.get("allowed") == when and " 200 " in said.get("reply", "") for said in self._said
        )
        return answered and any(word in one.get("path", "") for one in seen.permitted)

    def _run_name(self) -> str:
        if self._is_open or not self._shelf.is_dir():
            return ""
        new = [
            name for name in list_runs(self._shelf) if name not in self._runs_before and self._is_own(name)
        ]
        return new[-1] if new else ""

    def _is_own(self, name: str) -> bool:
        """Other lanes write to the same shelf: the first record says which command a run has."""
        first = next(RunReader(self._shelf / name).read(), {})
        return any(self._word in str(word) for word in first.get("argv", ()))

    def _read_records(self) -> list[dict[str, Any]]:
        name = self._run_name()
        return list(RunReader(self._shelf / name).read()) if name else []


SOCKETS = {"mptcp": (2, 1, 262), "udp-lite": (2, 2, 136), "sctp": (2, 1, 132)}


def _opens(family: int, kind: int, protocol: int) -> bool:
    try:
        socket.socket(family, kind, protocol).close()
    except OSError:
        return False
    return True


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
        elif need == "x86-64":
            if os.uname().machine != "x86_64":
                return "needs x86-64: the machine code of this attack is for it"
        elif shutil.which(need) is None:
            return f"needs {need}: apt install {need}"
    return None


def _shorten(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record[key] for key in _DENIAL_KEYS if key in record}


def main() -> int:
    lane = Lane()
    encoder = msgspec.json.Encoder()
    try:
        for line in sys.stdin.buffer:
            trial = lane.perform(msgspec.json.decode(line, type=Order))
            sys.stdout.buffer.write(encoder.encode(trial) + b"\n")
            sys.stdout.buffer.flush()
    finally:
        lane.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
