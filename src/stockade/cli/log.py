"""`stockade log`: what was tried, what was decided, and why.

Records go to standard output, notes about how a ledger ends to standard error.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stockade.cli.log_words import (
    COLORS,
    DIM,
    describe_attempt,
    describe_command,
    is_colored,
    paint,
    show_argv,
    show_clock,
    show_text,
    show_verdict,
)
from stockade.errors import UserError
from stockade.ledger.record import (
    ATTEMPT,
    CLOSED,
    HEARTBEAT,
    KINDS,
    OPENED,
    OUTCOME,
    STEP_OUTCOME,
    VERDICTS,
    clean_text,
)
from stockade.ledger.shelf import Record, RunReader, RunState, ShelfFollower, find_run, list_resting_runs
from stockade.vocabulary import Entry

ENTRIES = [str(entry) for entry in Entry]
POLL_S = 0.2
"""How often `-f` looks for new records; a person does not see the difference to at once."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command and its flags to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "log",
        help="show what was tried, what was decided and why",
        description="Show the records of the runs on a shelf, oldest run first. The table shows attempts and,"
        " shortened, what frames them; --json gives every record whole. Filters leave attempts only, unless"
        " --kind says more.",
    )
    parser.add_argument(
        "--ledger", metavar="DIR", help="the shelf (default: $XDG_STATE_HOME/stockade/ledger)"
    )
    parser.add_argument("--run", metavar="ID", help="only this run: its name, the end of its name, or `last`")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="one object per line, all records, all fields")
    parser.add_argument(
        "--why",
        action="store_true",
        help="add to the table what explains each decision and what came of it (with --id always)",
    )
    parser.add_argument(
        "--by-command",
        action="store_true",
        help="show each command with what it tried on the network; with --json one object per command",
    )
    parser.add_argument("--verdict", choices=sorted(VERDICTS), action="append", help="only these decisions")
    parser.add_argument(
        "--entry", choices=ENTRIES, action="append", help="only attempts that came this way (may be repeated)"
    )
    parser.add_argument("--kind", choices=sorted(KINDS), action="append", help="only records of these kinds")
    parser.add_argument("--host", metavar="NAME", help="only this name or address; `*.name` for all below it")
    parser.add_argument(
        "--id", metavar="ID", help="only the decision with this id, as a refused client sees it"
    )
    parser.add_argument(
        "--since", metavar="WHEN", help="only from then on: 10m, 2h, 3d, or 2026-11-30[T08:00:00Z]"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the log and give the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # whatever the locale: JSON is UTF-8, a table never fails
        sys.stdout.reconfigure(encoding="utf-8" if args.json else None, errors="backslashreplace")
    try:
        _show(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # `stockade log | head`: nobody reads on. The interpreter would complain at exit without this.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _show(args: argparse.Namespace) -> None:
    if args.by_command and (args.follow or args.kind):
        other = "--follow" if args.follow else "--kind"
        raise UserError("log-flags", f"--by-command and {other} exclude each other", "leave one of them out")
    shelf = _shelf_of(args)
    wanted = build_filter(args, time.time())
    printer = JsonPrinter() if args.json else TablePrinter(sys.stdout.isatty(), args)
    if args.follow:
        _follow(_follower(shelf, args), wanted, printer)
    elif args.ledger is None and not shelf.exists():
        _note(f"nothing was recorded yet in {shelf}")
    elif not shelf.exists():
        raise UserError("ledger-unreadable", f"there is no shelf {shelf}")
    else:
        follower = ShelfFollower(shelf, find_run(shelf, args.run) if args.run else None)
        if args.by_command:
            count = _print_commands(follower, wanted, args)
        else:
            count = _print_new(follower, wanted, printer)
        if not count and any((args.kind, args.verdict, args.entry, args.host, args.id, args.since)):
            _note("no record is like that")
        for reader in follower.readers():
            _say_how_it_ends(reader)
        _raise_damage(follower)


def _shelf_of(args: argparse.Namespace) -> Path:
    if args.ledger is not None:
        return Path(args.ledger)
    from stockade.ledger.store import default_shelf

    return default_shelf()


def _follower(shelf: Path, args: argparse.Namespace) -> ShelfFollower:
    """Begin with the last run and with all that still run, or with what the flags say."""
    if not shelf.exists():
        _note(f"waiting for {shelf}")
        return ShelfFollower(shelf)
    if args.run:
        return ShelfFollower(shelf, find_run(shelf, args.run))
    return ShelfFollower(shelf, passed_over=() if args.since else list_resting_runs(shelf))


def _follow(follower: ShelfFollower, wanted: Filter, printer: JsonPrinter | TablePrinter) -> None:
    try:
        while True:
            _print_new(follower, wanted, printer)
            sys.stdout.flush()
            _raise_damage(follower)
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        pass  # the way to end it


def _print_new(follower: ShelfFollower, wanted: Filter, printer: JsonPrinter | TablePrinter) -> int:
    """Print the records that are wanted, and say how many that were."""
    count = 0
    for reader, record in follower.read():
        if wanted(record):
            count += 1
            printer.show(reader.run, record)
    return count


def _print_commands(follower: ShelfFollower, wanted: Filter, args: argparse.Namespace) -> int:
    """Print the commands with what is wanted of them, run by run, and say how many those are."""
    from stockade.cli.log_commands import group_by_command, print_json, print_table

    runs: dict[str, list[Record]] = {}
    for reader, record in follower.read():
        runs.setdefault(reader.run, []).append(record)
    count = 0
    for run, records in runs.items():
        commands = group_by_command(records, wanted)
        count += len(commands)
        if args.json:
            print_json(run, commands)
        else:
            print_table(run, commands, whole=args.why)
    return count


def _raise_damage(follower: ShelfFollower) -> None:
    for damage in follower.damages[1:]:
        _note(str(damage))
    if follower.damages:
        raise follower.damages[0]


def _say_how_it_ends(reader: RunReader) -> None:
    if reader.torn_bytes:
        _note(
            f"run {reader.run}: ignored {reader.torn_bytes} bytes after the last whole record (a torn write)"
        )
    state = reader.state()
    if state is RunState.OPEN:
        _note(f"run {reader.run} is open: no closing record and no writer, so records may be missing")
    elif state is RunState.RUNNING:
        _note(f"run {reader.run} is still running")


def _note(text: str) -> None:
    print(f"stockade log: {text}", file=sys.stderr)


# --- filters ---------------------------------------------------------------------------

Filter = Callable[[Record], bool]


def build_filter(args: argparse.Namespace, now: float) -> Filter:
    """Give the test that a record must pass to be shown.

    Raises:
        UserError: `--since` says no time.
    """
    tests: list[Filter] = []
    attempts_only = args.verdict or args.entry or args.host or args.id
    if args.kind or attempts_only:
        kinds = frozenset(args.kind or (ATTEMPT,))
        tests.append(lambda r: r["kind"] in kinds)
    if args.entry:
        entries = frozenset(args.entry)
        tests.append(lambda r: r.get("entry") in entries)
    if args.verdict:
        verdicts = frozenset(args.verdict)
        tests.append(lambda r: r.get("verdict") in verdicts)
    if args.host:
        tests.append(_host_filter(args.host.lower().rstrip(".")))
    if args.id:
        tests.append(lambda r: r.get("id") == args.id)
    if args.since is not None:
        since = parse_since(args.since, now)
        tests.append(lambda r: str(r.get("time", "")) >= since)
    return lambda record: all(test(record) for test in tests)


def _host_filter(wanted: str) -> Filter:
    def of_one(value: object) -> bool:
        text = str(value or "").lower()
        return text.endswith(wanted[1:]) if wanted.startswith("*.") else text == wanted

    return lambda r: any(of_one(r.get(key)) for key in ("name", "address", "sni", "host", "raw"))


def parse_since(text: str, now: float) -> str:
    """Turn `10m` or a date into the RFC 3339 UTC text that records are compared with.

    Raises:
        UserError: It is neither a span nor a date.
    """
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if text[-1:] in units and text[:-1].isascii() and text[:-1].isdigit():
        # Not beyond 1970: a span of a million days means all records, not a fault.
        return _timestamp(max(0.0, now - int(text[:-1]) * units[text[-1]]))
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            "since", f"{clean_text(text, 40)!r} is no time", "write 10m, 2h, 3d or 2026-11-30T08:00:00Z"
        ) from None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _timestamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(at))


# --- output ----------------------------------------------------------------------------


class JsonPrinter:
    """Prints each record as it stands in the ledger: one object per line."""

    def show(self, run: str, record: Record) -> None:
        import msgspec

        line = msgspec.json.encode(record, order="deterministic")
        sys.stdout.write(line.decode() + "\n")


_COLUMNS = (("time utc", 12), ("id", 10), ("decision", 9), ("risk", 20), ("control", 24), ("reason", 21))

# What the table shows of a record that is no attempt, save where --kind asks for that kind.
_BRIEF = {
    OPENED: ("argv", "policy_source", "phase", "identity", "commands", "layers_off", "enforced.notes"),
    CLOSED: (
        "exit_code",
        "exit_of",
        "signal",
        "failure",
        "limits_reached",
        "attempts",
        "complete",
        "left_behind",
    ),
}


class TablePrinter:
    """Prints one line per attempt, as they come: the columns do not wait for the last record.

    Words and columns say everything; color only helps. Texts are cleaned again, since
    a ledger may come from somebody else's machine.
    """

    def __init__(self, is_terminal: bool, args: argparse.Namespace) -> None:
        self._colored = is_colored(is_terminal)
        self._width = shutil.get_terminal_size().columns if is_terminal else 0
        self._with_why: bool = args.why or args.id is not None
        self._left_out = () if args.why or args.kind else (OUTCOME, HEARTBEAT)
        self._brief = {} if args.kind else _BRIEF
        self._run = ""

    def show(self, run: str, record: Record) -> None:
        if record["kind"] in self._left_out:
            return
        if run != self._run:
            self._start_run(run, record)
        if record["kind"] == ATTEMPT:
            self._attempt(record)
        else:
            what = (
                f"↳ of {record.get('of')}:" if record["kind"] in (OUTCOME, STEP_OUTCOME) else record["kind"]
            )
            words = _summary(record, self._brief.get(record["kind"]))
            self._print(f"{show_clock(record)}  {what}  {words}", DIM)

    def _start_run(self, run: str, record: Record) -> None:
        self._run = run
        self._print(f"run {run}  {show_text(record.get('time'))[:10]}", "")
        self._print("  ".join(name.upper().ljust(width) for name, width in _COLUMNS) + "  WHAT  (RULE)", DIM)

    def _attempt(self, record: Record) -> None:
        cells = {
            "time utc": show_clock(record),
            "id": show_text(record.get("id")),
            "decision": show_verdict(record),
            **{key: show_text(record.get(key)) for key in ("risk", "control", "reason")},
        }
        line = "  ".join(cells[name].ljust(width) for name, width in _COLUMNS)
        color = COLORS.get(str(record.get("verdict")), "")
        by = describe_command(record.get("command"))  # at the end: where there is no room it is cut first
        end = f"  {by}" if by and not self._with_why else ""
        self._print(f"{line}  {describe_attempt(record)}  ({show_text(record.get('rule'))}){end}", color)
        if self._with_why:
            self._print(f"{'':14}{show_text(record.get('why'))}", DIM)
            if by:
                words = show_argv(record["command"].get("argv"))
                self._print(f"{'':14}{by}: {words}", DIM)

    def _print(self, line: str, color: str) -> None:
        if self._width and len(line) > self._width and not self._with_why:
            line = line[: self._width - 1] + "…"
        sys.stdout.write(paint(line, color if self._colored else "") + "\n")


def _summary(record: Record, brief: tuple[str, ...] | None) -> str:
    """The fields as words: all of them, or those of `brief` that hold something."""
    skipped = {"seq", "time", "mono_ns", "kind", "run", "of"}
    fields = [(key, show_text(value)) for key, value in _flat(record) if key not in skipped]
    if brief is not None:
        order = brief if record.get("complete") is not False else (*brief, "completeness")
        fields = [
            (key, text) for part in order for key, text in fields if text and f"{key}.".startswith(f"{part}.")
        ]
    return " ".join(f"{key}={text}" for key, text in fields)


def _flat(record: Record) -> Iterator[tuple[str, object]]:
    for key, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", _joined(v)) for inner, v in value.items() if v is not None)
        elif value is not None:
            yield key, _joined(value)


def _joined(value: object) -> object:
    if not isinstance(value, list):
        return value
    return " ".join(show_text(item.get("message") if isinstance(item, dict) else item) for item in value)
