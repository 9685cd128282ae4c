"""The evidence page in a real browser: it loads nothing, runs only its own filter, and fits a telephone.

Contrast is that of WCAG 2.1: (L1 + 0.05) / (L2 + 0.05), at least 4.5 for text (success criterion 1.4.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from doubles.made_up_proof import seal_proof

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(60), pytest.mark.needs("chromium")]

CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const line = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    return 0.2126 * line(r) + 0.7152 * line(g) + 0.0722 * line(b);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  let worst = 99, where = "";
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || ["SCRIPT", "STYLE"].includes(one.tagName)) continue;
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst) [worst, where] = [ratio, one.outerHTML.slice(0, 80)];
  }
  return [worst, where];
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        return seal_proof(tmp_path_factory.mktemp("page") / "evidence").page.as_uri()


@pytest.fixture
def open_page(chromium: Browser, address: str) -> Iterator[Any]:
    contexts = []

    def open_page(part: str = "", **options: Any) -> tuple[Page, list[str]]:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        noted: list[str] = []
        page.on("console", lambda message: noted.append(message.text))
        page.on("pageerror", lambda error: noted.append(str(error)))
        page.on("dialog", lambda dialog: (noted.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: noted.append(request.url) if _is_outside(request.url) else None)
        page.goto(address + part)
        return page, noted

    yield open_page
    for context in contexts:
        context.close()


def _is_outside(url: str) -> bool:
    return not url.startswith(("data:", "file:"))


def test_the_page_loads_nothing_runs_nothing_foreign_and_has_no_errors(open_page: Any) -> None:
    page, noted = open_page()
    assert page.locator("details.attack").count() == 5
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
    assert noted == []


def test_the_content_policy_stops_what_an_escape_would_have_missed(open_page: Any) -> None:
    """The counterpart: had a payload's script become markup, it would not run all the same."""
    page, noted = open_page()
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')")
    page.evaluate("const s = document.createElement('script'); s.text = 'alert(2)'; document.body.append(s)")
    page.wait_for_timeout(100)
    assert len(noted) >= 2
    assert all("Content Security Policy" in one for one in noted)


def test_the_filter_hides_rows_and_details_alike_and_headings_over_nothing(open_page: Any) -> None:
    page, _ = open_page()
    shown = "[...document.querySelectorAll('[data-text]')].filter((one) => one.checkVisibility()).length"
    assert page.evaluate(shown) == 10
    headings = "[...document.querySelectorAll('h3.group')].filter((one) => one.checkVisibility()).length"
    assert page.evaluate(headings) > 1
    page.get_by_label("Words").fill("browser metadata")
    assert page.evaluate(shown) == 2
    assert page.evaluate(headings) == 1, "a heading over nothing"
    assert page.locator("output").inner_text() == "1 of 5 shown"
    page.get_by_label("Words").fill("")
    page.get_by_label("Result").select_option("leaked")
    assert page.evaluate(shown) == 2
    page.get_by_label("Group").select_option("dns")
    assert page.evaluate(shown) == 0


def test_a_row_leads_to_its_opened_details(open_page: Any) -> None:
    page, _ = open_page()
    assert not page.locator("#one-odd").evaluate("(one) => one.open")
    page.get_by_role("link", name="Made-up attack one-odd").click()
    assert page.locator("#one-odd").evaluate("(one) => one.open")
    page, _ = open_page("#one-browser")
    assert page.locator("#one-browser").evaluate("(one) => one.open")


def test_without_scripts_everything_is_there_but_the_filter(open_page: Any) -> None:
    page, _ = open_page(java_script_enabled=False)
    assert page.locator("tbody tr").first.is_visible()
    assert page.locator(".filter").is_hidden()
    page.locator("#one-blocked summary").click()
    assert page.get_by_text("Control: without enforcement").first.is_visible()


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_nothing_is_wider_than_the_window(open_page: Any, width: int) -> None:
    """320 CSS pixels: WCAG 2.1, success criterion 1.4.10 (reflow)."""
    page, _ = open_page(viewport={"width": width, "height": 800})
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page: Any, scheme: str) -> None:
    page, _ = open_page(color_scheme=scheme)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    worst, where = page.evaluate(CONTRAST)
    assert worst >= 4.5, where


def test_on_paper_the_details_are_open(open_page: Any) -> None:
    page, _ = open_page()
    page.emulate_media(media="print")
    assert page.get_by_text("Who refused, as the ledger says").first.is_visible()
    assert page.locator(".filter").is_hidden()
