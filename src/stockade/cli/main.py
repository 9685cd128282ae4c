"""The command line: find the command, import only that, run it, turn errors into exit codes."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from stockade import __version__
from stockade.errors import StockadeError


def _import_msgspec() -> None:
    """Import it without two modules that it does not need, and that would cost each start 11 ms.

    It takes `get_type_hints` from typing_extensions where that is installed (by mypy, say), which brings
    inspect, ast and tokenize; without it, it uses `typing`. And it imports uuid, which imports platform
    and compiles its expressions to ask for the system's name.
    """
    stand_ins = {
        "typing_extensions": None,
        "platform": SimpleNamespace(system=lambda: os.uname().sysname),
    }
    put_in = {name: stand_in for name, stand_in in stand_ins.items() if name not in sys.modules}
    sys.modules.update(put_in)  # type: ignore[arg-type]
    import_module("msgspec")
    for name in put_in:
        del sys.modules[name]


_import_msgspec()

# Command → its module and its line in the help. Each module has `add_parser(subparsers)` and `run(args)`.
COMMANDS = {
    "run": ("stockade.cli.run", "run a command with default-deny egress"),
    "decide": ("stockade.cli.decide", "say what would be decided about one attempt, and why"),
    "policy": ("stockade.cli.policy", "check, show and compare policy files"),
    "log": ("stockade.cli.log", "read what runs have recorded"),
    "browse": ("stockade.cli.browse", "let an agent use a contained browser"),
    "phase": ("stockade.cli.phase", "move a running room to its next phase"),
    "prove": ("stockade.cli.prove", "attack a contained worker and show what stops each attack"),
    "evidence": ("stockade.cli.evidence", "verify, review and print evidence records"),
    "lab": ("stockade.cli.lab", "learn the egress call on real traffic"),
    "doctor": ("stockade.cli.doctor", "say what this host can enforce, by trying"),
}
# The stations at which `run` itself can fail are told apart from the command's own codes by this much.
RUN_OFFSET = 100


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns the exit code (docs/reference/exit-codes.md)."""
    words = sys.argv[1:] if argv is None else argv
    chosen = words[0] if words and words[0] in COMMANDS else None
    if chosen == "run":
        gc.disable()  # importing makes no garbage; the session switches it on before the worker starts
    parser, modules = _parser_for(chosen)
    offset = RUN_OFFSET if chosen == "run" else 0
    try:
        args = parser.parse_args(words)
    except SystemExit as end:  # argparse has said what is wrong, or printed the help
        return offset + 2 if end.code else 0
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return int(modules[args.command].run(args))
    except StockadeError as error:
        print_error(error)
        return offset + error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output went away (`stockade log | head`): not a fault, and nothing to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:  # noqa: BLE001  # the other of two places, with each flow
        return offset + _report_fault(error)


def print_error(error: StockadeError) -> None:
    """Say what is wrong in one line and what to do in the next."""
    print(f"stockade: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)


class _Help(argparse.HelpFormatter):
    """Knows the terminal's width by itself: argparse makes one for each option, and would import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:
        return 80


class _Parser(argparse.ArgumentParser):
    """The parsers of the commands are of the same class."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _Help, **options})


def _parser_for(chosen: str | None) -> tuple[argparse.ArgumentParser, dict[str, ModuleType]]:
    """The parser for the chosen command alone, or for all of them when help is wanted."""
    parser = _Parser(
        prog="stockade",
        description="Egress containment for AI agent executors: default-deny, explained, recorded.",
    )
    parser.add_argument("--version", action="version", version=f"stockade {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    modules = {}
    for name, (module_name, _) in COMMANDS.items():
        if chosen is None or name == chosen:
            modules[name] = import_module(module_name)
            modules[name].add_parser(subparsers)
    return parser, modules


def _report_fault(error: Exception) -> int:
    import traceback

    print(f"stockade: internal: {type(error).__name__}: {error}", file=sys.stderr)
    if os.environ.get("STOCKADE_DEBUG"):
        traceback.print_exc()
    else:
        print(
            "hint: this is a fault of ours; run again with STOCKADE_DEBUG=1 and report what it prints",
            file=sys.stderr,
        )
    return 1


def _open_missing_streams() -> None:
    """Fill a closed standard stream with /dev/null: else the next descriptor would take its number."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, "r" if fd == 0 else "w", closefd=False))  # noqa: SIM115


def console() -> None:
    """Entry point of the ``stockade`` script.

    Leaves without the interpreter's long good-bye (about 5 ms): everything that must be
    closed is closed by the command itself, and what is printed is flushed here.
    """
    _open_missing_streams()
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = code or 128 + signal.SIGPIPE
    os._exit(code)


if __name__ == "__main__":
    console()
