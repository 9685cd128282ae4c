"""What runs inside the worker: each attack imports the standard library and the tools beside it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stockade.prove.scenery import PIECES
from stockade.prove.stages import STAGES
from stockade.prove.technique import ATTACKS_FOLDER, TOOLS, Technique, load_catalogue

FILES = sorted(path for path in ATTACKS_FOLDER.glob("*.py") if path.name != "__init__.py")
PERMITTED = sys.stdlib_module_names | {Path(name).stem for name in TOOLS}
CATALOGUE = load_catalogue()


def imported_by(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield (node.module or ".").partition(".")[0] if not node.level else "."


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_attack_imports_nothing_that_is_not_in_the_worker(path: Path) -> None:
    assert set(imported_by(path.read_text())) - PERMITTED == set()


def test_an_import_of_ours_or_of_a_package_is_found() -> None:
    text = "import json\ndef f():\n    from stockade.errors import X\nimport yaml.nodes\nfrom . import kit\n"
    assert set(imported_by(text)) - PERMITTED == {"stockade", "yaml", "."}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_there_and_is_no_technique(name: str) -> None:
    assert "ATTACK = " not in (ATTACKS_FOLDER / name).read_text()


@pytest.mark.parametrize("technique", CATALOGUE, ids=lambda one: one.id)
def test_a_technique_says_how_it_works_and_what_it_does_not_cover(technique: Technique) -> None:
    assert "\n\n" in technique.about, "what is tried, and how it works"
    assert technique.not_covered
    assert set(technique.stages) <= set(STAGES)
    assert set(technique.before) <= set(PIECES)


def test_titles_are_told_apart() -> None:
    titles = [technique.title for technique in CATALOGUE]
    assert len(set(titles)) == len(titles)
