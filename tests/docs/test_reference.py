"""The generated pages agree with the code, and the hand-written ones name what exists."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stockade.policy.keys import SECTIONS
from stockade.vocabulary import REASONS, Reason

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
sys.path.insert(0, str(ROOT / "tools"))

from reference import command_parsers  # noqa: E402  # tools is no package

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_reason_has_one_sentence_and_a_line_in_the_docs() -> None:
    assert set(REASONS) == set(Reason)
    page = (REFERENCE / "reasons.md").read_text()
    for reason in Reason:
        assert f"| `{reason.value}` |" in page


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS.keys())
def test_every_policy_key_is_documented(section: object) -> None:
    page = (REFERENCE / "policy-keys.md").read_text()
    for name in section.names():  # type: ignore[attr-defined]
        assert f"`{name}`" in page


def test_every_command_and_flag_is_documented_and_explained() -> None:
    page = (REFERENCE / "commands.md").read_text()
    for parser in command_parsers():
        assert f"## `{parser.prog}`" in page
        for action in parser._actions:
            for option in set(action.option_strings) - {"-h", "--help"}:
                assert re.search(rf"`{re.escape(option)}[ `]", page), f"{parser.prog} {option}"
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction):
                assert action.help or (not action.option_strings and parser.epilog), (
                    f"{parser.prog}: {action.dest}"
                )


def commands_shown(page: Path) -> list[str]:
    """Lines of code blocks that call stockade or make."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"(\.venv/bin/)?stockade [a-z]|make [a-z]", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_that_the_pages_show_exist(page: Path) -> None:
    known = {parser.prog for parser in command_parsers()}
    flags = {option for parser in command_parsers() for a in parser._actions for option in a.option_strings}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in commands_shown(page):
        words = line.partition("  #")[0].split(" -- ")[0].split()
        if words[0] == "make":
            assert words[1] in targets, line
            continue
        assert f"stockade {words[1]}" in known, line
        for word in words[2:]:
            if word.startswith("-"):
                assert word.partition("=")[0] in flags, line


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_without_an_argument_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in re.findall(r"^([a-z-]+):", makefile, re.MULTILINE):
        assert f"make {target} " in listed
