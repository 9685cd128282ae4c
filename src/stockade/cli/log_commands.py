"""`stockade log --by-command`: each command with what it tried on the network.

Commands stand in the order of the `exec` attempts that started them. Where none is on record
(the seal is off, or the process was forked from one that has ended) a command is a process and
its program, and stands where its first attempt does. What nobody is known for comes last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from stockade.cli.log_words import (
    COLORS,
    describe_attempt,
    is_colored,
    paint,
    show_argv,
    show_clock,
    show_text,
    show_verdict,
)
from stockade.ledger.record import ATTEMPT, OUTCOME
from stockade.ledger.shelf import Record

ARGUMENTS_SHOWN = 100
_OUTCOME_KEYS = ("outcome", "sent_bytes", "received_bytes", "status", "detail")


class Unknown(StrEnum):
    """Why no command stands with an attempt."""

    NOT_FOUND = "not-found"
    NOT_ASKED = "not-asked"


class Command(Struct):
    """One command and what is on record of it.

    Attributes:
        place: The number of the record by which it stands in its order.
        start: Its exec attempt, if that is on record.
        process: The ``command`` of its first attempt on the network.
        unknown: Set for the collections of what has no command.
    """

    place: int
    start: Record | None = None
    process: Mapping[str, object] = {}
    unknown: Unknown | None = None
    attempts: list[Record] = []

    @property
    def denied(self) -> int:
        return sum(record.get("verdict") == "deny" for record in self.attempts)

    @property
    def was_refused(self) -> bool:
        """The command itself did not run."""
        return self.start is not None and self.start.get("verdict") == "deny"

    @property
    def pid(self) -> object:
        return self._told("pid")

    @property
    def program(self) -> object:
        return self._told("program")

    @property
    def argv(self) -> list[object]:
        argv = self._told("argv")
        return argv if isinstance(argv, list) else []

    def _told(self, key: str) -> object:
        """As the exec attempt says it, else as the process showed it."""
        started = None if self.start is None else self.start.get(key)
        return self.process.get(key) if started is None else started


def group_by_command(records: Iterable[Record], wanted: Callable[[Record], bool]) -> list[Command]:
    """Put the attempts of one run below their commands.

    Args:
        wanted: Which attempts are shown; a command with none of them is left out unless its
            own exec attempt is wanted.
    """
    commands: dict[object, Command] = {}
    outcomes: dict[object, Record] = {}
    for record in records:
        if record["kind"] == OUTCOME:
            outcomes[record.get("of")] = record
        elif record["kind"] != ATTEMPT or record.get("by") == "gateway":
            continue  # what the gateway itself looked up belongs to no command
        elif record.get("entry") == "exec" and "call" not in record:
            commands[record["seq"]] = Command(record["seq"], start=record)
        elif wanted(record):
            _command_of(record, commands).attempts.append(record)
    shown = [c for c in commands.values() if c.attempts or (c.start is not None and wanted(c.start))]
    for command in shown:
        command.attempts = [_with_outcome(record, outcomes) for record in command.attempts]
    return sorted(shown, key=lambda command: (command.unknown is not None, command.place))


def _process_of(record: Record) -> Mapping[str, object] | None:
    """Who tried it: looked up for what came over the network, known at once for a refused system call."""
    if isinstance(record.get("command"), dict):
        process: Mapping[str, object] = record["command"]
        return process
    return record if record.get("program") is not None else None


def _command_of(record: Record, commands: dict[object, Command]) -> Command:
    process = _process_of(record)
    if process is None:
        unknown = Unknown.NOT_FOUND if "command" in record else Unknown.NOT_ASKED
        return commands.setdefault(unknown, Command(record["seq"], unknown=unknown))
    started = commands.get(process.get("exec"))
    if started is not None:
        started.process = started.process or process
        return started
    key = (process.get("pid"), process.get("program"))
    return commands.setdefault(key, Command(record["seq"], process=process))


def _with_outcome(record: Record, outcomes: Mapping[object, Record]) -> Record:
    outcome = outcomes.get(record["seq"], {})
    return record | {key: outcome[key] for key in _OUTCOME_KEYS if outcome.get(key) is not None}


# --- output ----------------------------------------------------------------------------


def print_json(run: str, commands: Iterable[Command]) -> None:
    """One object for each command."""
    import msgspec

    for command in commands:
        line = msgspec.json.encode(describe_command(run, command), order="deterministic")
        sys.stdout.write(line.decode() + "\n")


def describe_command(run: str, command: Command) -> dict[str, object]:
    """A command as plain values: its own fields, and its attempts without what they repeat."""
    start, left_out = command.start, ("command", "run", "kind")
    return {
        "run": run,
        "exec": None if start is None else start["seq"],
        "verdict": None if start is None else start.get("verdict"),
        "pid": command.pid,
        "program": command.program,
        "argv": command.argv,
        "unknown": command.unknown,
        "denied": command.denied,
        "attempts": [{k: v for k, v in a.items() if k not in left_out} for a in command.attempts],
    }


def print_table(run: str, commands: Iterable[Command], *, whole: bool) -> None:
    """Each command on a line, below it what it tried. Refusals are said first on every line."""
    with_color = is_colored(sys.stdout.isatty())
    is_first = True
    for command in commands:
        if is_first:
            first = command.start or command.attempts[0]
            sys.stdout.write(f"run {run}  {show_text(first.get('time'))[:10]}\n")
            is_first = False
        for line, verdict in _lines(command, whole):
            sys.stdout.write(paint(line, COLORS.get(str(verdict), "") if with_color else "") + "\n")


def _lines(command: Command, whole: bool) -> Iterator[tuple[str, object]]:
    is_bad = command.was_refused or command.denied > 0
    yield f"{_summary(command):16}  {_title(command, whole)}", "deny" if is_bad else ""
    for record in command.attempts:
        head = f"    {show_verdict(record):12}  {show_clock(record)}  {show_text(record.get('id')):10}"
        reason, rule = show_text(record.get("reason")), show_text(record.get("rule"))
        yield f"{head}  {reason:21}  {describe_attempt(record)}  ({rule})", record.get("verdict")


def _summary(command: Command) -> str:
    if command.was_refused:
        return "not permitted"
    count = len(command.attempts)
    if count == 0:
        return "tried nothing"
    if command.denied == 0:
        return f"{count} let through"
    return f"{command.denied} denied" if command.denied == count else f"{command.denied} of {count} denied"


def _title(command: Command, whole: bool) -> str:
    if command.unknown is Unknown.NOT_FOUND:
        return "command not known"
    if command.unknown is Unknown.NOT_ASKED:
        return "command not asked for (`stockade run --name-commands` asks for what is let through, too)"
    arguments = show_argv(command.argv, 0 if whole else ARGUMENTS_SHOWN)
    words = [
        "" if command.pid is None else f"pid {show_text(command.pid)}",
        show_text(command.program),
        arguments,
        "" if command.start is None else f"({show_text(command.start.get('id'))})",
    ]
    return "  ".join(word for word in words if word)
