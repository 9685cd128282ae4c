"""The pages of docs/attacks, one for each technique of the catalogue, from what its file says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from stockade.prove.describe import LAYERS, describe_control, describe_witness
from stockade.prove.judge import describe_stopped
from stockade.prove.technique import Group, Stopped, Technique, load_catalogue

NOTE = "<!-- Written by tools/reference.py (`make docs`) from src/stockade/prove/attacks. -->\n"
GROUPS = {
    Group.METADATA: "Cloud metadata services",
    Group.INTERNAL: "Internal services, the host and neighbours",
    Group.REDIRECTS: "Redirects",
    Group.NAMES: "Names and their addresses",
    Group.DNS: "Questions",
    Group.HTTP: "HTTP",
    Group.TLS: "TLS",
    Group.ROADS: "Roads round the gateway",
    Group.COMMANDS: "Commands",
    Group.CALLS: "System calls and code",
    Group.TAMPERING: "Tampering",
    Group.EVALUATION: "Evaluation",
    Group.PERMITTED: "Through what is permitted",
    Group.BROWSER: "Through the browser",
}


def attack_pages() -> dict[str, str]:
    """File names and texts: the table, and a page for each technique."""
    catalogue = load_catalogue()
    pages = {f"{one.id}.md": _page(one) for one in catalogue}
    return {"README.md": _index(catalogue), **pages}


def _index(catalogue: list[Technique]) -> str:
    supported = sum(one.not_supported is None for one in catalogue)
    lines = [
        "# The attack catalogue",
        NOTE,
        f"{supported} techniques are tried, {len(catalogue) - supported} wait for what they need. "
        "How each is judged: [proof](../concepts/proof.md). How to run them: [proving](../guides/proving.md)",
    ]
    for group, members in groupby(catalogue, key=lambda one: one.group):
        lines += ["", f"## {GROUPS[group]}\n", "| attack | stopped by | risk | |", "|---|---|---|---|"]
        lines += [
            f"| [{one.id}]({one.id}.md) | {one.layer} | {one.risk} | {_cell(one.title)}"
            f"{' *(not supported yet)*' if one.not_supported else ''} |"
            for one in members
        ]
    return "\n".join([*lines, ""])


def _page(one: Technique) -> str:
    facts = [
        ("group", f"{GROUPS[one.group]} (`--only {one.group}`)"),
        ("expected to stop it", LAYERS[one.layer]),
        ("risk", f"`{one.risk}`"),
        ("references", "; ".join(one.references)),
        ("needs", ", ".join(one.needs)),
        ("not supported yet", one.not_supported or ""),
        ("options of the run", " ".join(f"`{option}`" for option in one.options)),
        ("around it", ", ".join(one.before)),
        ("the host meanwhile", ", ".join(one.stages)),
    ]
    lines = [f"# {one.title}", NOTE, "| | |", "|---|---|"]
    lines += [f"| {name} | {_cell(value)} |" for name, value in facts if value]
    lines += ["", one.about, ""]
    if one.prompt:
        lines += ["What the agent is told:", "", *(f"> {line}" for line in one.prompt.splitlines()), ""]
    if one.not_supported is None:
        lines += ["## What shows that it worked\n", *_bullets(describe_witness(item) for item in one.arrives)]
        lines += ["", describe_control(one), ""]
        lines += ["## What refuses it\n", *_bullets(map(_refusal, one.stopped)), ""]
    lines += ["## Not covered\n", one.not_covered[:1].upper() + one.not_covered[1:], ""]
    source = f"../../src/stockade/prove/attacks/{one.id.replace('-', '_')}.py"
    lines += [
        "## Try it\n",
        "```",
        f"stockade prove --only {one.id}",
        "```",
        "",
        f"[Its source]({source})",
        "",
    ]
    return "\n".join(lines)


def _refusal(stopped: Stopped) -> str:
    return ("on record with " if not stopped.silent else "silent: ") + describe_stopped(stopped)


def _bullets(texts: Iterable[str]) -> list[str]:
    return [f"- {text}" for text in texts]


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
