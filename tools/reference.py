"""Write docs/reference and docs/attacks from the code, or say with --check what no longer agrees with it.

Usage: .venv/bin/python tools/reference.py [--check]

What a table in the code knows is not written a second time by hand: commands and flags
come from the parsers, reason words from `vocabulary`, policy keys from `policy.keys`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from stockade.cli.main import COMMANDS
from stockade.evidence.schema import write_schema
from stockade.lab.pack.reference import write_pack_reference
from stockade.ledger.record import KINDS
from stockade.policy.reference import write_reference
from stockade.sandbox.filter import Refusal, load_filter_table
from stockade.vocabulary import (
    REASONS,
    Control,
    Entry,
    Identity,
    Phase,
    PlaceClass,
    Protocol,
    Risk,
    Verdict,
)

sys.path.insert(0, str(Path(__file__).resolve().parent))

from attack_pages import attack_pages  # tools is no package

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTE = "<!-- Written by tools/reference.py (`make docs`). Change the code, not this page. -->\n"


def commands_page() -> str:
    """Every command with its flags, as its own parser tells them."""
    lines = ["# Commands", NOTE]
    lines.append(
        "Data goes to standard output, talk to standard error. Exit codes: [exit-codes.md](exit-codes.md).\n"
    )
    for parser in command_parsers():
        lines += [f"## `{parser.prog}`\n", parser.description or "", ""]
        lines += list(_arguments(parser))
        if parser.epilog:
            is_laid_out = "\n" in parser.epilog.strip()
            lines += ["```", parser.epilog.strip("\n"), "```", ""] if is_laid_out else [parser.epilog, ""]
    return "\n".join(lines)


def command_parsers() -> list[argparse.ArgumentParser]:
    """The parsers of all commands that are built, sub-commands after their command."""
    root = argparse.ArgumentParser(prog="stockade")
    subparsers = root.add_subparsers()
    for module, _ in COMMANDS.values():
        if find_spec(module) is not None:
            import_module(module).add_parser(subparsers)
    return [inner for parser in subparsers.choices.values() for inner in _with_actions(parser)]


def _with_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, inner in action.choices.items():
                inner.description = inner.description or _sentence(helps.get(name) or "")
                yield from _with_actions(inner)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = [
        a for a in parser._actions if not isinstance(a, (argparse._HelpAction, argparse._SubParsersAction))
    ]
    shown = [a for a in shown if a.help is not argparse.SUPPRESS]
    if shown:
        yield "| argument | means |"
        yield "|---|---|"
    for action in shown:
        yield f"| {_cell(_argument_names(action))} | {_cell(action.help or '')} |"
    if shown:
        yield ""


def _argument_names(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else None)
    value = " ".join(value) if isinstance(value, tuple) else value
    if not action.option_strings:
        return f"`{value or action.dest}`"
    takes_value = action.nargs != 0
    return ", ".join(
        f"`{o} {value or action.dest.upper()}`" if takes_value else f"`{o}`" for o in action.option_strings
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def reasons_page() -> str:
    """Every word that stands in a decision."""
    lines = [
        "# The words of a decision",
        NOTE,
        "The same words stand in the ledger, in refusals and in reports.\n",
    ]
    lines += ["## Reasons\n", "| reason | when |", "|---|---|"]
    lines += [f"| `{reason.value}` | {_cell(sentence)} |" for reason, sentence in REASONS.items()]
    lines += ["", "## The other closed sets\n", "| what | words |", "|---|---|"]
    lines.append(
        "| verdict | " + ", ".join(f"`{v.word}`" for v in Verdict) + " (`proxy` is shown as “proxy+log”) |"
    )
    for what, words in (
        ("risk", Risk),
        ("class of the destination", PlaceClass),
        ("control", Control),
        ("phase", Phase),
        ("identity", Identity),
        ("entry", Entry),
        ("protocol", Protocol),
        ("kind of record", sorted(KINDS)),
    ):
        lines.append(f"| {what} | " + ", ".join(f"`{getattr(w, 'value', w)}`" for w in words) + " |")
    return "\n".join([*lines, ""])


EXIT_CODES = (
    (0, "done"),
    (1, "a fault in Stockade itself: please report it; of `prove`: an attack could not be judged"),
    (2, "your input: a flag, a policy, a file"),
    (3, "this host cannot do what was asked"),
    (4, "containment could not be promised any more; of `prove`: an attack leaked"),
    (5, "a ledger or an evidence record does not verify"),
    (6, "a ledger or an evidence record is open, not complete"),
    (10, "`decide --exit-code`: denied"),
    (
        "101–105",
        "`run`'s own failures: 100 + the code above, so that they differ from the command's own codes",
    ),
    (126, "`run`: the command cannot be executed"),
    (127, "`run`: the command was not found"),
    ("128+N", "`run`: the command died of signal N"),
)


def exit_codes_page() -> str:
    lines = [
        "# Exit codes",
        NOTE,
        "`stockade run` passes the command's own code through.\n",
        "| code | means |",
        "|---|---|",
    ]
    return "\n".join([*lines, *(f"| {code} | {means} |" for code, means in EXIT_CODES), ""])


def system_calls_page() -> str:
    """Every line of the system-call filter."""
    table = load_filter_table()
    lines = [
        "# Refused system calls",
        NOTE,
        "What the filter refuses ([how](../concepts/boundary.md#the-filter)). A record of such a try has the "
        "rule `filter:LINE`. Recorded “quietly” means that ordinary programs try it too, so that a summary "
        "may leave it out.\n",
        "| line | calls | answer | when | recorded | why |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_refusal_row(line) for line in (*table.refusals, table.foreign, table.newer)]
    return "\n".join([*lines, ""])


def _refusal_row(line: Refusal) -> str:
    calls = " ".join(f"`{call}`" for call in line.calls) or "by number"
    when = " or ".join(f"`code: {code}`" for code in line.codes) if len(line.codes) < 3 else "always"
    if line.granted_by:
        when = f"without `{line.granted_by}: true`"
    recorded = "no" if not line.record else "quietly" if line.common else "yes"
    return f"| `{line.name}` | {calls} | {line.errno} | {when} | {recorded} | {_cell(line.why)} |"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("%%", "%")).replace("|", "\\|")


PAGES = {
    "commands.md": commands_page,
    "evidence.schema.json": write_schema,
    "exit-codes.md": exit_codes_page,
    "pack-keys.md": write_pack_reference,
    "policy-keys.md": write_reference,
    "reasons.md": reasons_page,
    "system-calls.md": system_calls_page,
}


def main() -> int:
    is_check = "--check" in sys.argv
    pages = {f"reference/{name}": write() for name, write in PAGES.items()}
    pages |= {f"attacks/{name}": text for name, text in attack_pages().items()}
    stale = [name for name, text in pages.items() if not _has(DOCS / name, text)]
    gone = [path for path in DOCS.glob("attacks/*.md") if f"attacks/{path.name}" not in pages]
    if is_check:
        behind = ", ".join([*stale, *(f"attacks/{path.name}" for path in gone)])
        if behind:
            print(f"docs is behind the code: {behind} (run `make docs`)", file=sys.stderr)
        return 1 if behind else 0
    for name in stale:
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(pages[name])
    for path in gone:
        path.unlink()
    return 0


def _has(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
