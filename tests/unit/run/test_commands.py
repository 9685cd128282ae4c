"""Commands and refused calls as the supervisor answers them: the record first, one answer, never a guess."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stockade.decision.engine import Engine
from stockade.decision.request import Attempt
from stockade.gateway.journal import Journal
from stockade.policy.load import load_policy_text
from stockade.run import commands
from stockade.run.commands import SIGHTINGS_AT_ONCE, Commands
from stockade.sandbox.eye import Sighting
from stockade.sandbox.filter import load_filter_table
from stockade.sandbox.programs import Program, ProgramSet
from stockade.sandbox.seal import SealFacts, plan_seal
from stockade.vocabulary import Identity, Phase, Verdict

MACHINE = os.uname().machine
ARCHITECTURE = load_filter_table().architectures[MACHINE]
PTRACE_ATTACH = 16
AT_FDCWD, AT_EXECVE_CHECK = 2**32 - 100, 0x10000


class EyeDouble:
    """Holds sightings ready and keeps the answers."""

    def __init__(self) -> None:
        self.stage_pid = 1
        self.sightings: list[Sighting] = []
        self.answers: list[tuple[int, str | int]] = []
        self.waits = True

    def receive(self) -> Sighting | None:
        return self.sightings.pop(0) if self.sightings else None

    def has_more(self) -> bool:
        return bool(self.sightings)

    def is_waiting(self, _sighting: Sighting) -> bool:
        return self.waits

    def let_go_on(self, sighting: Sighting) -> None:
        self.answers.append((sighting.id, "go on"))

    def refuse(self, sighting: Sighting, number: int) -> None:
        self.answers.append((sighting.id, number))


class LedgerDouble:
    """Keeps records; none is durable before `sync`."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._waiting: list[tuple[int, Callable[[int], None]]] = []

    def append(
        self, kind: str, fields: Mapping[str, object], on_durable: Callable[[int], None] | None = None
    ) -> int:
        self.records.append(dict(fields))
        if on_durable is not None:
            self._waiting.append((len(self.records), on_durable))
        return len(self.records)

    def sync(self) -> None:
        waiting, self._waiting = self._waiting, []
        for seq, tell in waiting:
            tell(seq)


class Scene:
    """One run with one listed program, and this process as the worker."""

    def __init__(self, program: Path, policy: str = "") -> None:
        loaded = load_policy_text(f"version: 1\nexec: {{allow: ['{program}']}}\n{policy}", "policy.yaml")
        status = program.stat()
        listed = Program(path=str(program), identity=(status.st_dev, status.st_ino), why=f"exec: {program}")
        seal = plan_seal(
            loaded.exec,
            SealFacts(programs=ProgramSet((listed,))),
            writable=(),
            worker_uid=1,
            layers_off=frozenset(),
        )
        engine = Engine(loaded, Phase.WORK, Identity.AGENT, programs=seal.reasons_to_run())
        self.eye, self.ledger = EyeDouble(), LedgerDouble()
        self.journal = Journal(self.ledger, "digest")
        plan: Any = SimpleNamespace(machine=MACHINE, seal=seal)
        eye: Any = self.eye
        self.commands = Commands(eye, plan, lambda: engine, self.journal, lambda: None)
        self._kept: list[object] = []

    def call_exec(
        self, path: str | Path, cookie: int = 1, *, word: str = "", flags: int | None = None
    ) -> None:
        """The worker calls execve with one argument, the path if no other; execveat if there are flags."""
        text = ctypes.create_string_buffer(os.fsencode(path))
        argument = ctypes.create_string_buffer(os.fsencode(word or path))
        vector = (ctypes.c_void_p * 2)(ctypes.addressof(argument))
        self._kept += [text, argument, vector]
        pointers = ctypes.addressof(text), ctypes.addressof(vector)
        if flags is None:
            self.call("execve", *pointers, cookie=cookie)
        else:
            self.call("execveat", AT_FDCWD, *pointers, 0, flags, cookie=cookie)

    def call(self, name: str, *arguments: int, cookie: int = 1) -> None:
        padded = (*arguments, *[0] * (6 - len(arguments)))
        number = ARCHITECTURE.numbers[name]
        self.eye.sightings.append(Sighting(cookie, os.getpid(), number, ARCHITECTURE.audit, padded))
        self.commands.look(1)  # POLLIN

    def told(self, *keys: str) -> list[tuple[object, ...]]:
        return [tuple(record.get(key) for key in keys) for record in self.ledger.records]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "tool"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    return path


@pytest.fixture
def scene(program: Path) -> Scene:
    return Scene(program)


def test_a_permitted_command_goes_on_when_its_record_is_durable_and_not_before(
    scene: Scene, program: Path
) -> None:
    scene.call_exec(program)
    assert scene.told("verdict", "file", "program") == [("allow", str(program), str(program))]
    assert scene.eye.answers == []
    scene.ledger.sync()
    assert scene.eye.answers == [(1, "go on")]


def wait_together(scene: Scene, program: Path, count: int) -> list[object]:
    """So many commands wait when the eye is looked at; what is given back must be kept until then."""
    text = ctypes.create_string_buffer(os.fsencode(program))
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(text))
    args = (ctypes.addressof(text), ctypes.addressof(vector), 0, 0, 0, 0)
    number = ARCHITECTURE.numbers["execve"]
    for cookie in range(count):
        scene.eye.sightings.append(Sighting(cookie, os.getpid(), number, ARCHITECTURE.audit, args))
    return [text, vector]


def test_commands_that_wait_at_once_are_recorded_before_the_first_is_answered(
    scene: Scene, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So they go to the disk by one write and one sync; but other connections wait meanwhile, so not all.
    monkeypatch.setattr(commands, "time", SimpleNamespace(monotonic=lambda: 0.0))
    _kept = wait_together(scene, program, SIGHTINGS_AT_ONCE + 3)
    scene.commands.look(1)
    assert len(scene.ledger.records) == SIGHTINGS_AT_ONCE
    assert scene.eye.answers == []
    scene.ledger.sync()
    assert scene.eye.answers == [(cookie, "go on") for cookie in range(SIGHTINGS_AT_ONCE)]
    scene.commands.look(1)
    assert len(scene.ledger.records) == SIGHTINGS_AT_ONCE + 3


def test_commands_that_take_long_leave_room_for_others_between_them(
    scene: Scene, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100))  # a second goes by from one look at it to the next
    monkeypatch.setattr(commands, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    _kept = wait_together(scene, program, 3)
    for count in (1, 2, 3):
        scene.commands.look(1)
        assert len(scene.ledger.records) == count


def test_a_denied_command_is_answered_permission_denied_when_its_record_is_durable(scene: Scene) -> None:
    scene.call_exec("/bin/sh")
    assert scene.told("verdict", "program", "layer") == [("deny", "/bin/sh", "notify")]
    assert scene.eye.answers == []
    scene.ledger.sync()
    assert scene.eye.answers == [(1, errno.EACCES)]


def test_what_a_record_says_of_a_command_is_about_its_path_and_not_about_its_first_argument(
    scene: Scene, program: Path
) -> None:
    """The caller chooses argv[0]: execve(2)."""
    scene.call_exec("/bin/sh", word=str(program))
    scene.call_exec(program, word="/usr/bin/git")
    (denied, allowed), (denial,) = scene.told("why", "argv"), list(scene.journal.denials)
    assert '"/bin/sh"' in str(denied[0])
    assert str(program) not in str(denied[0])
    assert "git" not in str(allowed[0])
    assert (denied[1], allowed[1]) == ([str(program)], ["/usr/bin/git"])
    assert denial.target == "/bin/sh"
    scene.call_exec("/usr/bin/id", word="id")
    assert [denial.target for denial in scene.journal.denials] == ["/bin/sh", "id"]  # shorter, and true
    scene.call_exec(program, word=program.name)
    assert scene.ledger.records[-1]["why"] == allowed[0]  # here a worker could have named the file so


def test_a_question_whether_a_program_may_run_is_answered_as_a_command_and_is_none(
    scene: Scene, program: Path
) -> None:
    scene.call_exec(program, 1, flags=AT_EXECVE_CHECK)
    scene.call_exec("/bin/sh", 2, flags=AT_EXECVE_CHECK)
    assert scene.eye.answers == [(1, "go on"), (2, errno.EACCES)]
    assert scene.ledger.records == []
    scene.call_exec(program, 3, flags=0)
    assert scene.told("verdict") == [("allow",)]


def test_what_was_read_of_a_caller_that_is_gone_is_neither_recorded_nor_answered(scene: Scene) -> None:
    """Its number may belong to another process by now, and so may all that was read."""
    scene.eye.waits = False
    scene.call_exec("/bin/sh")
    scene.call("ptrace", PTRACE_ATTACH, 7)
    scene.ledger.sync()
    assert (scene.ledger.records, scene.eye.answers) == ([], [])
    assert scene.commands.refused_calls == 0


@pytest.mark.parametrize(
    ("path", "number"),
    [("/no/such/file", errno.ENOENT), ("/etc", errno.EACCES), ("/etc/passwd", errno.EACCES)],
)
def test_a_path_that_leads_to_no_program_is_answered_here_and_never_let_go_on(
    scene: Scene, path: str, number: int
) -> None:
    """The kernel would look again, and by then another thread may have put a program there."""
    scene.call_exec(path)
    assert scene.eye.answers == [(1, number)]
    assert scene.ledger.records == []


def test_r141_another_file_in_the_place_of_a_permitted_one_is_another_program(
    scene: Scene, program: Path
) -> None:
    os.link(
        "/bin/sh" if False else program, program.with_name("kept")
    )  # so that its number is not used again
    program.unlink()
    program.write_bytes(b"\x7fELF, of somebody else")
    program.chmod(0o755)
    scene.call_exec(program)
    scene.ledger.sync()
    assert scene.told("verdict", "file") == [("deny", f"{program} (another file since the start)")]
    assert scene.eye.answers == [(1, errno.EACCES)]


def test_a_permitted_file_by_another_name_is_the_permitted_program(scene: Scene, program: Path) -> None:
    other = program.with_name("other")
    os.link(program, other)
    scene.call_exec(other)
    scene.ledger.sync()
    assert scene.told("verdict", "program", "file") == [("allow", str(other), str(program))]
    assert scene.eye.answers == [(1, "go on")]


def test_what_cannot_be_read_is_denied_with_what_could_be(scene: Scene, program: Path) -> None:
    scene.call("execve", 8, 8)
    text = ctypes.create_string_buffer(os.fsencode(program))
    scene.call("execve", ctypes.addressof(text), 8, cookie=2)
    scene.ledger.sync()
    assert scene.told("verdict", "program") == [("deny", ""), ("deny", str(program))]
    assert scene.eye.answers == [(1, errno.EACCES), (2, errno.EACCES)]


def test_a_refused_call_is_answered_with_its_errno_when_its_record_is_durable(scene: Scene) -> None:
    scene.call("ptrace", PTRACE_ATTACH, 7)
    assert scene.told("verdict", "call", "layer", "risk") == [
        ("deny", "ptrace(PTRACE_ATTACH, 7)", "seccomp", "boundary-tampering")
    ]
    assert scene.eye.answers == []
    scene.ledger.sync()
    assert scene.eye.answers == [(1, errno.EPERM)]


def test_equal_calls_beyond_the_fifth_are_counted_and_the_count_is_written_at_the_end(scene: Scene) -> None:
    for cookie in range(1, 13):
        scene.call("ptrace", PTRACE_ATTACH, 7, cookie=cookie)
    scene.call("ptrace", PTRACE_ATTACH, 8, cookie=13)
    scene.ledger.sync()
    assert sorted(cookie for cookie, _number in scene.eye.answers) == list(range(1, 14))
    assert scene.told("call", "repeated") == [
        *[("ptrace(PTRACE_ATTACH, 7)", None)] * 5,
        ("ptrace(PTRACE_ATTACH, 8)", None),
    ]
    scene.commands.close()
    assert scene.told("call", "repeated")[6:] == [("ptrace(PTRACE_ATTACH, 7)", 7)]
    assert scene.commands.refused_calls == 13


def test_equal_commands_beyond_the_fifth_are_denied_counted_and_written_at_the_end(
    scene: Scene, program: Path
) -> None:
    unlisted = program.with_name("unlisted")
    unlisted.write_bytes(b"\x7fELF, of somebody else")
    unlisted.chmod(0o755)
    for cookie in range(1, 13):
        scene.call_exec(unlisted, cookie=cookie)
    scene.call_exec(program, cookie=13)
    scene.ledger.sync()
    assert sorted(scene.eye.answers) == [*((cookie, errno.EACCES) for cookie in range(1, 13)), (13, "go on")]
    assert scene.told("verdict", "repeated") == [*[("deny", None)] * 5, ("allow", None)]
    scene.commands.close()
    assert scene.told("verdict", "repeated")[6:] == [("deny", 7)]
    assert (scene.journal.attempts[Verdict.DENY], scene.journal.commands_started) == (12, 1)


def test_a_command_that_was_answered_is_not_kept(
    scene: Scene, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A permitted connection is kept until its outcome; a command has none, and a run may start a million."""
    seen: list[Attempt] = []
    record = scene.journal.attempt

    def look(attempt: Attempt, *rest: Any, **more: Any) -> int:
        seen.append(attempt)
        return record(attempt, *rest, **more)

    monkeypatch.setattr(scene.journal, "attempt", look)
    scene.call_exec(program)
    scene.ledger.sync()
    holders = sys.getrefcount(seen[0])  # the list here, and the argument itself
    assert holders == 2
