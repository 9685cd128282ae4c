"""One technique run once, in the open or contained: prepare, run its payload, look at what arrived."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from string import Template
from typing import Any

from stockade.errors import UserError
from stockade.ledger.shelf import RunReader
from stockade.prove.host_services import HostServices
from stockade.prove.payload import PayloadEnd, run_payload
from stockade.prove.scenery import Scenery
from stockade.prove.stages import OPEN_TOO, STAGES, STOCKADE, Scene
from stockade.prove.technique import ATTACKS_FOLDER, TOOLS, Technique
from stockade.prove.trial import EXPECTATION_NAME, Order, Try
from stockade.prove.witnesses import Permitted, Sorted, find_places, list_seen, sort_seen
from stockade.prove.world_client import World
from stockade.prove.world_dns import cast

# Without site-packages, and without writing bytecode into the workspace: 30 ms in the life of a payload.
PYTHON = ("/usr/bin/python3", "-S", "-B")
LIMIT_S = 20.0
BROWSER_LIMIT_S = 60.0
WITNESS_LIMIT_BYTES = 65536
# `RANGE_KEY` is what a rule's `credential:` may name: the gateway's own account at the range's provider.
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "RANGE_KEY": "range-provider-key"}
BASE_POLICY = "version: 1\nrules:\n  - allow: allowed.test\n    ports: [80, 443]\n"
_DENIAL_KEYS = (
    "seq", "id", "entry", "protocol", "reason", "control", "rule", "risk", "name", "address", "port",
    "method", "path", "raw", "sni", "host", "argv", "program", "call", "layer", "file", "query_type", "why",
    "repeated",
)  # fmt: skip


def prepare_tools(base: Path) -> Path:
    """What every payload brings along, compiled once for a lane instead of twice for each technique."""
    folder = base / "tools"
    folder.mkdir()
    for name in TOOLS:
        shutil.copy2(ATTACKS_FOLDER / name, folder / name)
    subprocess.run([PYTHON[0], "-m", "compileall", "-q", str(folder)], check=False, capture_output=True)
    return folder


class Execution:
    """One technique run once."""

    def __init__(
        self,
        technique: Technique,
        order: Order,
        world: World,
        services: HostServices,
        folder: Path,
        tools: Path,
        is_open: bool,
    ) -> None:
        self._technique = technique
        self._order = order
        self._world = world
        self._services = services
        self._folder = folder
        self._tools = tools
        self._is_open = is_open
        self._word = secrets.token_hex(6)
        self._workspace = folder / "work"
        self._policy = folder / "policy.yaml"
        self._shelf = Path(order.evidence) / "ledger"
        self._said: tuple[dict[str, Any], ...] = ()
        self._staged: list[dict[str, Any]] = []
        self._runs_before: frozenset[str] = frozenset()
        self._run = ""
        self._scenery = Scenery(folder, self._workspace, self._shelf, self._word, is_open, order.layers_off)

    def run(self) -> Try:
        try:
            self._prepare()
            started = time.monotonic()
            end = self._execute()
            seconds = time.monotonic() - started
            self._said = (*end.said, *self._staged)
            seen = self._look()
        finally:
            self._scenery.take_down()
        records = self._read_records()
        closing = records[-1] if records and records[-1]["kind"] == "run.closed" else {}
        return Try(
            said=self._said,
            is_done=any(said.get("done") for said in end.said),
            allowed_before=self._worked("before", seen),
            allowed_after=self._worked("after", seen),
            arrived=seen.arrived,
            stray=() if self._is_open else seen.stray,
            denials=tuple(shorten_record(one) for one in records if one.get("verdict") == "deny"),
            closing=closing,
            exit_code=end.code,
            problem=end.problem,
            seconds=round(seconds, 3),
            run=self._run_name(),
        )

    # --- before -------------------------------------------------------------------------------

    def _prepare(self) -> None:
        shutil.copytree(self._tools, self._workspace)
        shutil.copy(ATTACKS_FOLDER / f"{self._module}.py", self._workspace)
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
        self._runs_before = self._list_runs()

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
            "expectation": digest_expectation(self._order.evidence),
        }
        worker = [*PYTHON, "runner.py", json.dumps(told)]
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

    def _execute(self) -> PayloadEnd:
        return run_payload(
            self._command(),
            folder=self._workspace,
            environment={**os.environ, **ENVIRONMENT},
            descriptors=self._scenery.descriptors,
            mark=self._word,
            limit_s=BROWSER_LIMIT_S if self._technique.is_browser else LIMIT_S,
            answer=self._serve,
        )

    def _serve(self, asked: str) -> None:
        if self._is_open and asked not in OPEN_TOO:
            return
        scene = Scene(
            self._folder, self._workspace, self._shelf, self._run_name(), self._policy, self._facts(),
            self._is_open, self._order.layers_off,
        )  # fmt: skip
        word = STAGES[asked](scene)
        if word is not None:
            self._staged.append({"stage": asked, "word": word})

    # --- afterwards ---------------------------------------------------------------------------

    def _look(self) -> Sorted:
        seen = list_seen(*self._world.everything())
        seen += self._services.take()
        if self._word.encode() in read_start(self._workspace / "witness"):
            seen.append({"what": "command", "text": self._word})
        seen += self._scenery.look(list(self._said))
        return sort_seen(seen, self._technique.arrives, find_permitted(self._technique, self._word))

    def _worked(self, when: str, seen: Sorted) -> bool:
        """The permitted request was answered, and the world saw it: neither alone would do."""
        word = f"permitted={when}-{self._word}"
        answered = any(
            said.get("allowed") == when and " 200 " in said.get("reply", "") for said in self._said
        )
        return answered and any(word in one.get("path", "") for one in seen.permitted)

    def _run_name(self) -> str:
        """The run's name; other lanes write to the same shelf, so its first record says whose it is."""
        if not self._run and not self._is_open:
            new = self._list_runs() - self._runs_before
            self._run = next((name for name in sorted(new) if self._is_own(name)), "")
        return self._run

    def _list_runs(self) -> frozenset[str]:
        return frozenset(os.listdir(self._shelf)) if self._shelf.is_dir() else frozenset()

    def _is_own(self, name: str) -> bool:
        try:
            first = next(RunReader(self._shelf / name).read(), {})
        except UserError:  # a lock or a folder whose first record is not there yet
            return False
        return any(self._word in str(word) for word in first.get("argv", ()))

    def _read_records(self) -> list[dict[str, Any]]:
        name = self._run_name()
        return list(RunReader(self._shelf / name).read()) if name else []


def find_permitted(technique: Technique, word: str) -> Permitted:
    """What may arrive while this technique is tried, by its policy and by what names answer."""
    zone = {**cast(), **technique.zone}
    return Permitted(word, find_places(technique.reachable, zone, "internal:" in technique.policy))


def shorten_record(record: dict[str, Any]) -> dict[str, Any]:
    """A refusal as the judge and the evidence need it."""
    return {key: record[key] for key in _DENIAL_KEYS if key in record}


def read_start(path: Path) -> bytes:
    """The first bytes of a file that the worker may have made: it may be a link, a pipe, or endless."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, WITNESS_LIMIT_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)


def digest_expectation(evidence: str) -> str:
    """SHA-256 of what was written down before; empty if nothing was.

    It stands in the worker's command, so the first record of the run holds it: the expectation was there
    before the attempt that it is about.
    """
    path = Path(evidence) / EXPECTATION_NAME
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
