"""`stockade policy`: check, show and compare policy files, and print what belongs to the language.

Each command prints data on standard output. FILE may also be ``preset:NAME``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stockade.errors import UserError
from stockade.policy.model import CatalogueEntry, Finding, InternalEntry, Policy, RubricEntry, Rule
from stockade.policy.problems import PolicyError


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command and its subcommands to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "policy",
        help="check, show and compare policy files",
        description="Check, show and compare policy files.",
        epilog="FILE may also be preset:NAME. Exit codes: 0 done, 2 a file does not load.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    lint = actions.add_parser("lint", help="say what is wrong with a file, and what its author may not know")
    show = actions.add_parser(
        "show", help="print the effective policy, with the origin of each line and the digest"
    )
    diff = actions.add_parser("diff", help="print what a second file permits and closes otherwise")
    schema = actions.add_parser("schema", help="print the JSON Schema of policy files")
    replace = actions.add_parser(
        "replace", help="put a file in force in a running room; connections that it does not permit are cut"
    )
    replace.add_argument(
        "file", metavar="FILE", type=Path, help="the policy file that is to hold from now on"
    )
    replace.add_argument(
        "--run", default="last", metavar="ID", help="the run (default: the last one that runs)"
    )
    replace.add_argument("--ledger", type=Path, metavar="DIR", help="shelf on which to look for the run")
    replace.add_argument("--json", action="store_true", help="one object")
    presets = actions.add_parser("presets", help="list the presets that ship with the package, or print one")
    for action in (lint, show, diff):
        action.add_argument("file", metavar="FILE", help="a policy file, or preset:NAME")
        action.add_argument("--json", action="store_true", help="one object")
    diff.add_argument("other", metavar="OTHER", help="the file to compare it with, or preset:NAME")
    presets.add_argument("name", metavar="NAME", nargs="?", help="print this preset")
    presets.add_argument("--json", action="store_true", help="one object per line")
    schema.add_argument("--json", action="store_true", help=argparse.SUPPRESS)  # it is JSON anyway
    return parser


def run(args: argparse.Namespace) -> int:
    """Run one of the subcommands and give the exit code."""
    return _ACTIONS[args.action](args)


def _load(name: str) -> Policy:
    from stockade.policy.load import load_policy, load_preset

    return (
        load_preset(name.removeprefix("preset:")) if name.startswith("preset:") else load_policy(Path(name))
    )


# lint


def _lint(args: argparse.Namespace) -> int:
    from stockade.policy.lint import lint_policy

    try:
        policy = _load(args.file)
    except PolicyError as error:
        _print_findings(args, list(error.problems), None)
        return error.exit_code
    findings = lint_policy(policy)
    _print_findings(args, findings + _run_refusals(policy, findings), policy.digest)
    return 0


def _run_refusals(policy: Policy, findings: list[Finding]) -> list[Finding]:
    """What `run` would refuse, as warnings: the file loads and means what it says, and cannot be run with."""
    from msgspec.structs import replace

    from stockade.policy.runnable import run_refusals

    told = {finding.origin for finding in findings if finding.code == "inspection-needed"}
    refused = (problem for error in run_refusals(policy) for problem in error.problems)
    return [
        replace(problem, severity="warning", message=f"`stockade run` refuses this file: {problem.message}")
        for problem in refused
        if problem.origin not in told
    ]


def _print_findings(args: argparse.Namespace, findings: list[Finding], digest: str | None) -> None:
    counts = {word: sum(f.severity == word for f in findings) for word in ("error", "warning", "note")}
    if args.json:
        rows = [_finding_row(finding) for finding in findings]
        print(json.dumps({"file": args.file, "digest": digest, **counts, "findings": rows}))
        return
    for finding in findings:
        print(f"{finding.origin}: {finding.severity}: {finding.code}: {finding.message}")
        if finding.better:
            print(f"    {finding.better}")
    summary = ", ".join(
        f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count
    )
    print(f"{args.file}: {summary or 'nothing to remark'}")


def _finding_row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("severity", "code", "origin", "message", "better")}


# show


def _show(args: argparse.Namespace) -> int:
    from stockade.policy.canonical import canonical_document

    policy = _load(args.file)
    if args.json:
        lists: dict[str, tuple[Any, ...]] = {
            "rules": policy.rules,
            "rubric": policy.rubric,
            "internal": policy.internal,
            "catalogue": policy.catalogue,
        }
        origins = {name: [entry.origin for entry in entries] for name, entries in lists.items()}
        if policy.exec is not None:
            origins["exec.allow"] = list(policy.exec.origins)
        shown = {"source": policy.source, "digest": policy.digest, "policy": canonical_document(policy)}
        print(json.dumps({**shown, "origins": origins}))
    else:
        print("\n".join(_describe_policy(policy)))
    return 0


def _describe_policy(policy: Policy) -> list[str]:
    lines = [f"{policy.source}  digest {policy.digest}"]
    lines += _table("rules (what no rule names is denied)", [_rule_cells(rule) for rule in policy.rules])
    lines += _table(
        "rubric, closed to the agent while scoring", [_rubric_cells(entry) for entry in policy.rubric]
    )
    lines += _table(
        "internal, the only private addresses", [_internal_cells(entry) for entry in policy.internal]
    )
    lines += _table("catalogue", [_catalogue_cells(entry) for entry in policy.catalogue])
    return lines + _describe_rest(policy)


def _describe_rest(policy: Policy) -> list[str]:
    from stockade.policy.canonical import canonical_document

    document = canonical_document(policy)
    lines = [
        "",
        f"unknown: {policy.unknown}"
        + (f", held for {policy.hold_s:.0f}s" if policy.unknown == "ask" else ""),
    ]
    lines += _describe_exec(policy)
    for name in ("files", "limits"):
        values = document.get(name) or {}
        shown = [
            f"{key} {' '.join(map(str, v)) if isinstance(v, list) else v}" for key, v in values.items() if v
        ]
        if shown:
            lines.append(f"{name}: {'; '.join(shown)}")
    return lines


def _describe_exec(policy: Policy) -> list[str]:
    programs = policy.exec
    if programs is None:
        return [
            "exec: no key: only the launched command may run, and if it is a script its interpreters",
            "  (for more: include: [exec/coding], exec/python, exec/node or exec/browser)",
        ]
    sockets = "permitted" if programs.unix_sockets else "refused"
    who = "every program may run" if programs.mode == "any" else "what is listed may run"
    levels = [f"code {programs.code}", f"Unix sockets {sockets}"]
    if programs.libraries:
        levels.append(f"libraries {' '.join(programs.libraries)}")
    by_file: dict[str, list[str]] = {}
    for entry in programs.allow:
        by_file.setdefault(programs.origin_of(entry).rpartition(":")[0], []).append(entry)
    listed = [f"  {file}  {' '.join(entries)}" for file, entries in by_file.items()]
    return [f"exec: {who}; {'; '.join(levels)}", *listed]


def _rule_cells(rule: Rule) -> list[str]:
    from stockade.policy.canonical import rule_document

    document = rule_document(rule)
    ports = ",".join(map(str, rule.ports)) or "every port"
    skipped = {rule.level.word, "ports", "protocol", "class", "why"}
    if len(rule.phases) == 3:
        skipped.add("phases")
    if len(rule.identities) == 1 and rule.identities[0] == "agent":
        skipped.add("identities")
    rest = [f"{key} {_value_text(value)}" for key, value in document.items() if key not in skipped]
    place = rule.place.value if rule.place else ""
    return [
        rule.level.word,
        rule.host.text,
        f"{ports}/{rule.protocol or 'any'}",
        place,
        rule.origin,
        "; ".join(rest),
    ]


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value_text(item)}" for key, item in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rubric_cells(entry: RubricEntry) -> list[str]:
    return [entry.host.text, entry.origin, " ".join(path.text for path in entry.paths)]


def _internal_cells(entry: InternalEntry) -> list[str]:
    networks = " ".join(str(network) for network in entry.networks)
    return [entry.host, networks, ",".join(map(str, entry.ports)), entry.origin]


def _catalogue_cells(entry: CatalogueEntry) -> list[str]:
    calls = " ".join(str(word) for word in (entry.risk, entry.control) if word)
    return [entry.place.value, " ".join(host.text for host in entry.hosts), calls, entry.origin]


def _table(title: str, rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    widths = [min(40, max(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return ["", title, *lines]


# diff


def _diff(args: argparse.Namespace) -> int:
    first, second = _load(args.file), _load(args.other)
    removed, added = _difference(first, second), _difference(second, first)
    if args.json:
        ends = {"from": first.digest, "to": second.digest, "same": first.digest == second.digest}
        print(json.dumps({**ends, "removed": removed, "added": added}))
        return 0
    if first.digest == second.digest:
        print(f"the same policy, digest {first.digest}")
        return 0
    print(f"- {first.source}  {first.digest}\n+ {second.source}  {second.digest}")
    for sign, rows in (("-", removed), ("+", added)):
        for row in rows:
            print(f"{sign} {row['origin']}: {row['in']}: {_value_text(row['value'])}")
    return 0


def _difference(policy: Policy, other: Policy) -> list[dict[str, Any]]:
    """What the first has and the second has not, with its section and line."""
    there = {json.dumps((name, value), sort_keys=True) for name, value, _ in _pieces(other)}
    return [
        {"in": name, "origin": origin, "value": value}
        for name, value, origin in _pieces(policy)
        if json.dumps((name, value), sort_keys=True) not in there
    ]


def _pieces(policy: Policy) -> list[tuple[str, Any, str]]:
    from stockade.policy.canonical import canonical_document

    document = canonical_document(policy)
    pieces: list[tuple[str, Any, str]] = []
    for name in ("rules", "rubric", "internal", "catalogue"):
        origins = [entry.origin for entry in getattr(policy, name)]
        pieces += [(name, value, origin) for value, origin in zip(document[name], origins, strict=True)]
    for name in ("unknown", "hold", "files", "limits"):
        if document.get(name):
            pieces.append((name, document[name], policy.source))
    if policy.exec is not None:
        programs = dict(document["exec"])
        for name in ("allow", "libraries"):
            entries = programs.pop(name, [])
            pieces += [(f"exec.{name}", entry, policy.exec.origin_of(entry)) for entry in entries]
        pieces.append(("exec", programs, policy.exec.origin))
    return pieces


# schema and presets


def _schema(args: argparse.Namespace) -> int:
    from stockade.policy.schema import build_schema

    print(json.dumps(build_schema(), indent=2))
    return 0


def _presets(args: argparse.Namespace) -> int:
    from stockade.policy.load import list_presets, read_preset

    if args.name:
        if args.name not in list_presets():
            raise UserError("preset-unknown", f"no preset is called {args.name!r}", "stockade policy presets")
        print(read_preset(args.name), end="")
        return 0
    for name in list_presets():
        summary = _first_sentence(read_preset(name))
        print(json.dumps({"name": name, "summary": summary}) if args.json else f"{name:<16} {summary}")
    return 0


def _first_sentence(text: str) -> str:
    comment = " ".join(line.lstrip("# ") for line in text.split("version:")[0].splitlines())
    return comment.partition(". ")[0].rstrip(".") + "."


def _replace(args: argparse.Namespace) -> int:
    from stockade.ledger.shelf import find_running
    from stockade.ledger.store import default_shelf
    from stockade.run.control import ask_run
    from stockade.run.prepare import load_runnable

    load_runnable(args.file)  # the run reads it again; here its faults are told as `run` tells them
    run_id = find_running(args.ledger or default_shelf(), args.run)
    answer = ask_run(run_id, {"do": "policy", "file": str(args.file.absolute())})
    digest = answer["policy"]
    print(json.dumps({"run": run_id, "policy": digest}) if args.json else f"{run_id}: policy {digest}")
    return 0


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "lint": _lint,
    "show": _show,
    "diff": _diff,
    "schema": _schema,
    "presets": _presets,
    "replace": _replace,
}
