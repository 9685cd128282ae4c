"""The files of the pages: nothing that the content policy forbids, and nothing that waits for another."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import stockade.lab.web

STATIC = Path(stockade.lab.web.__file__).parent / "static"
SCRIPTS = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
INDEX = (STATIC / "index.html").read_text()

# Each would either be refused by the content policy in the browser, or make text into markup or code.
FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "dangerouslySetInnerHTML",
    "document.write",
    "eval(",
    "new Function",
    " style=",
    "onclick=",
    "javascript:",
    "http://",
    "https://",
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_a_script_makes_no_markup_from_text_and_loads_nothing_from_outside(path: Path) -> None:
    text = path.read_text()
    if path.parent.name == "pages":  # they quote request lines
        text = re.sub(r"https?://", "", text)
    assert [word for word in FORBIDDEN if word in text] == []


def test_the_page_has_no_inline_script_or_style() -> None:
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", INDEX)


def test_each_module_is_preloaded_so_that_none_waits_for_another() -> None:
    """A browser learns of an import only when it has read what imports it: eight trips instead of one."""
    preloaded = set(re.findall(r'rel="modulepreload" href="/static/([^"]+)"', INDEX))
    modules = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js")}
    assert preloaded == modules - {"theme.js", "app.js"}


def test_every_import_names_a_file() -> None:
    for path in SCRIPTS:
        for name in re.findall(r'^(?:import|export)\b[^;]*?from "([^"]+)"', path.read_text(), re.MULTILINE):
            assert (path.parent / name).is_file(), f"{path.name}: {name}"


def test_the_library_is_the_one_that_was_looked_at() -> None:
    for line in (STATIC / "vendor" / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
