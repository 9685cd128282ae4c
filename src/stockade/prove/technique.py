"""One technique of the attack catalogue, as its file describes it.

A file of `attacks/` is read and never imported here: it runs inside the worker, and what it
says of itself is one literal, `ATTACK`, and its docstring. So the catalogue is listed without
running anything, and an attack cannot reach the process that judges it.

Shape of a file::

    \"\"\"One line: what is tried.

    How it works, in a paragraph or two.

    Not covered: what a reader must not conclude from this attack being blocked.
    \"\"\"

    ATTACK = {
        "title": "...", "group": "names", "layer": "gateway", "risk": "ssrf",
        "references": ["CWE-918", ...],
        "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
        "stopped": [{"reason": ["metadata-address"], "entry": ["transparent"]}],
    }

    def attempt(kit):
        kit.talk("2852039166", 80, kit.get("/latest/meta-data/"))
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from stockade.errors import InternalError, UserError
from stockade.vocabulary import Risk, Word

ATTACKS_FOLDER = Path(__file__).parent / "attacks"
# What attacks bring along into the worker; the rest of the folder is techniques.
TOOLS = (
    "follow.py",
    "kit.py",
    "native.py",
    "probe.py",
    "runner.py",
    "wire.py",
)


class Group(Word):
    """The groups of the catalogue, in the order in which they are shown."""

    METADATA = "metadata"
    INTERNAL = "internal"
    REDIRECTS = "redirects"
    NAMES = "names"
    DNS = "dns"
    HTTP = "http"
    TLS = "tls"
    ROADS = "roads"
    COMMANDS = "commands"
    CALLS = "calls"
    TAMPERING = "tampering"
    EVALUATION = "evaluation"
    PERMITTED = "permitted"
    BROWSER = "browser"


class Layer(Word):
    """Who is expected to stop it. The six from `room` on can be given up with `--without-layer`."""

    GATEWAY = "gateway"
    VIEW = "view"
    SUPERVISOR = "supervisor"
    LEDGER = "ledger"
    ROOM = "room"
    MOUNTS = "mounts"
    MEMFD = "memfd"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
    NOTIFY = "notify"


class Witness(Struct, frozen=True, forbid_unknown_fields=True):
    """What counts as arrived: something that a witness outside the worker has seen.

    Attributes:
        what: `tcp` (payload bytes on a connection), `udp`, `packet` (any packet on the wire, where nobody
            listens), `question` (a DNS question that reached the world's name server), `request` (an HTTP
            request), `host` (bytes at a service of the host: its loopback, a socket, a neighbour's room),
            `command` (a program left the run's secret word in the witness file), `state` (something of the
            host is not as it was; which, says `name`).
        address: Of tcp, udp, packet: equal, or any.
        port: The same.
        protocol: Of packet: `tcp`, `udp`, `icmp`, `icmp6` or a number.
        name: Of question and request the host, of tcp the server name in the TLS hello, with `*` (fnmatch);
            of host and state which one.
        path: Of request, with `*`.
        more_bytes: Of request: its body had more than this.
        text: Must be among the first 200 bytes of a connection, datagram or question, or in the head of a
            request.
    """

    what: Literal["tcp", "udp", "packet", "question", "request", "host", "command", "state"]
    address: str | None = None
    port: int | None = None
    protocol: str | None = None
    name: str | None = None
    path: str | None = None
    text: str | None = None
    more_bytes: int | None = None


class Stopped(Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which the refusal may be on record: an attempt of the ledger with one of each.

    Attributes:
        reason: Words of the decision; one is needed, since a refusal without one would fit any record.
        layer: Who signs: `seccomp` or `notify`, `room` for what the packet filter turns away, else `gateway`.
        silent: No record can exist, because what was tried is not there for the worker (the view) or the
            kernel tells nobody (a mount without exec). Instead a step of the attack has to say one of these
            (its `errno`, `error` or `word`), and more often than the control says it: what fails in the open
            too is no refusal.
        where: Keys of the record (`call`, `address`, `program`, …) and what they have to be, with `*`: which
            of several refusals of one run is meant.
        seen: Besides the record a step inside has to have met one of these errno names.
    """

    reason: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    layer: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    where: dict[str, str] = {}
    seen: tuple[str, ...] = ()


class Technique(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attack: what it is, what would show that it worked, what should stop it.

    Attributes:
        id: The file's name with dashes.
        about: The docstring before `Not covered:`; its first line says what is tried.
        not_covered: What its being blocked does not show.
        arrives: Any of them means that it worked.
        stopped: Any of them is the right refusal.
        rules: Items of the policy's `rules:` besides the one for `allowed.test`, as YAML.
        policy: Its other keys, as YAML; `exec` opens nothing unless it is named here.
        reachable: Names besides `allowed.test` that this policy lets through: arriving there is no leak by
            itself, unless `arrives` says so.
        zone: What names answer meanwhile (`world_dns.Entry`), besides the range's own cast.
        pages: What the world serves meanwhile at these paths, as HTML.
        options: More options of `stockade run`, for example `--phase scoring`.
        before: What stands around it (`scenery.py`), for example a victim or a neighbour.
        stages: What the host does meanwhile (`stages.py`), for example `scoring`.
        needs: What the machine must have: `root`, `gcc`, `chromium`, …; else it is not supported here.
        uses_up: It uses up what the whole run may have: the permitted request afterwards is refused as well.
        not_supported: Why this cannot be tried yet; it is listed, and counted apart.
        page: Of a browser attack: what the attacker's page (`http://allowed.test/attack/ID`) says, as HTML.
        prompt: Of a browser attack: what the agent is told; by default to open the page and do what it says.
    """

    id: str
    title: str
    group: Group
    layer: Layer
    risk: Risk
    references: tuple[str, ...]
    arrives: tuple[Witness, ...]
    stopped: tuple[Stopped, ...]
    about: str = ""
    not_covered: str = ""
    rules: str = ""
    policy: str = ""
    reachable: tuple[str, ...] = ()
    zone: dict[str, dict[str, Any]] = {}
    pages: dict[str, str] = {}
    options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    uses_up: bool = False
    not_supported: str | None = None
    page: str | None = None
    prompt: str | None = None

    @property
    def is_browser(self) -> bool:
        return self.group is Group.BROWSER


def load_catalogue(folder: Path = ATTACKS_FOLDER) -> list[Technique]:
    """All techniques, by group and id.

    Raises:
        InternalError: A file does not describe itself as it should.
    """
    order = {group: number for number, group in enumerate(Group)}
    files = sorted(path for path in folder.glob("*.py") if path.name not in (*TOOLS, "__init__.py"))
    return sorted((read_technique(path) for path in files), key=lambda one: (order[one.group], one.id))


def choose(catalogue: Iterable[Technique], only: Iterable[str]) -> list[Technique]:
    """Those whose id or group is named; all if nothing is.

    Raises:
        UserError: A word is neither.
    """
    techniques, words = list(catalogue), list(only)
    known = {technique.id for technique in techniques} | {str(technique.group) for technique in techniques}
    if unknown := [word for word in words if word not in known]:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UserError(
            "unknown-attack", f"no attack or group is called {unknown[0]!r}", f"{hint}stockade prove --list"
        )
    return [one for one in techniques if not words or one.id in words or str(one.group) in words]


def read_technique(path: Path) -> Technique:
    """What one file says of itself, without running it.

    Raises:
        InternalError: It has no docstring, no `ATTACK`, or one that is not as it should be.
    """
    try:
        tree = ast.parse(path.read_text(), str(path))
    except (SyntaxError, ValueError) as error:
        raise InternalError("bad-attack", f"{path}: {error}") from error
    text = ast.get_docstring(tree)
    described = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "ATTACK"
    ]
    if not text or len(described) != 1:
        raise InternalError("bad-attack", f"{path}: a docstring and one ATTACK are needed")
    about, not_covered = _split(text)
    try:
        fields: dict[str, Any] = ast.literal_eval(described[0])
        technique = msgspec.convert(
            {"id": path.stem.replace("_", "-"), "about": about, "not_covered": not_covered, **fields},
            Technique,
        )
    except (ValueError, TypeError, msgspec.ValidationError) as error:
        raise InternalError("bad-attack", f"{path}: {error}") from error
    if problem := _find_fault(technique):
        raise InternalError("bad-attack", f"{path}: {problem}")
    return technique


def _find_fault(technique: Technique) -> str:
    """What would make its judgement worthless; empty if nothing does."""
    if not technique.references:
        return "no reference"
    if technique.not_supported is not None:
        return ""
    if not technique.arrives:
        return "nothing could show that it arrived"
    if not technique.stopped:
        return "no refusal is expected"
    for stopped in technique.stopped:
        if not stopped.reason and not stopped.silent:
            return "a refusal without a reason fits any record"
        if stopped.silent and (stopped.reason or stopped.entry or stopped.layer or stopped.where):
            return "a refusal is on record or silent, not both"
    return ""


def _split(text: str) -> tuple[str, str]:
    """What stands before `Not covered:`, and what follows it."""
    about, _, not_covered = text.partition("Not covered:")
    return about.strip(), " ".join(not_covered.split())
