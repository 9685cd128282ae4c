"""The teaching pages: they load nothing, link to nothing outside, and say what they must."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stockade.lab

PAGES = Path(stockade.lab.__file__).parent / "web" / "static" / "pages"
NAMES = ("about.js", "prose.js", "reference.js", "workshop.js")
ABOUT = (PAGES / "about.js").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_links_to_pages_of_the_lab_only(name: str) -> None:
    links = re.findall(r'href="([^"$]*)"', (PAGES / name).read_text())
    assert [link for link in links if not link.startswith("#/")] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_no_style_or_markup_that_the_security_policy_forbids(name: str) -> None:
    text = (PAGES / name).read_text()
    for forbidden in (
        " style=",
        "innerHTML",
        "dangerouslySetInnerHTML",
        "eval(",
        "<script",
        "<img",
        "<iframe",
    ):
        assert forbidden not in text


@pytest.mark.parametrize("name", NAMES)
def test_a_page_imports_files_of_the_lab_only(name: str) -> None:
    sources = re.findall(r'from "([^"]+)"', (PAGES / name).read_text())
    assert sources
    assert all(source.startswith(("./", "../")) for source in sources)


def test_every_address_in_the_text_is_reserved_special_or_legitimate() -> None:
    hosts = set(re.findall(r"https?://([^/\s`\"]+)", ABOUT))
    assert hosts <= {"blog.tutorials.example", "docs.framework.test"}


def test_about_says_what_it_stands_on_and_what_could_not_be_confirmed() -> None:
    assert "google-research/harness2" in ABOUT
    assert re.search(r"2610\.14224\. We could not confirm that number", ABOUT)
    assert "CVE-" not in ABOUT
    for section in ("teaches", "axes", "real", "metadata", "provider", "network", "keys", "limits", "words"):
        assert f'id: "about-{section}"' in ABOUT


@pytest.mark.parametrize(
    "word", ["verdict", "risk", "control", "phase", "identity", "room", "range", "ledger"]
)
def test_about_explains_the_words_of_the_lab(word: str) -> None:
    assert f'["{word}", "' in ABOUT
