"""Everybody can use it: axe finds nothing, nothing is wider than a small window, nothing moves unasked.

axe's rules are those of WCAG 2.0 to 2.2, level AA, and its best practices; contrast is among them. Its
script has to be let into the page, so those pages alone run without the content policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from lab_player import Player, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.needs("chromium")]

PAGES = ("", "drill", "policy", "progress", "workshop", "reference", "about", "no-such-page")
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def faults(page: Page) -> list[str]:
    """What axe objects to, and a page that is wider than its window."""
    from axe_playwright_python.sync_playwright import Axe

    found = [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in Axe().run(page).response["violations"]
    ]
    return found + (["wider than the window"] if page.evaluate(WIDER) else [])


def visit(page: Page, name: str) -> None:
    page.evaluate("(name) => { location.hash = `#/${name}`; }", name)
    page.wait_for_timeout(100)
    until(page, "document.querySelector('main h1') !== null")
    page.wait_for_load_state("networkidle")


@pytest.fixture(
    params=[(320, "light"), (320, "dark"), (1280, "light"), (1280, "dark")],
    ids=lambda one: f"{one[0]}-{one[1]}",
)
def page(request: pytest.FixtureRequest, open_lab: Callable[..., Page]) -> Page:
    width, scheme = request.param
    return open_lab(
        request.node.name[:40],
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=True,
    )


def test_axe_finds_nothing_on_any_page(page: Page) -> None:
    found = {}
    for name in PAGES:
        visit(page, name)
        found[name] = faults(page)
    visit(page, "")
    for name in ("Settings", "Keys", "Learner"):
        page.get_by_role("button", name=name).click()
        page.wait_for_selector("dialog[open]")
        found[name] = faults(page)
        page.keyboard.press("Escape")
    assert not any(found.values()), found


def test_axe_finds_nothing_in_a_round(page: Page) -> None:
    player, found = Player(page), {}
    page.get_by_label("Tier 3").check()
    page.get_by_role("button", name="Play a round").click()
    player.wait_for_event()
    found["event"] = faults(page)
    player.press("h")
    for number in range(9):
        player.answer_right() if number % 2 else player.answer_wrong()
        if number < 2:
            found[f"feedback {number}"] = faults(page)
        player.next()
    page.wait_for_selector(".result")
    found["debrief"] = faults(page)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.get_by_role("button", name="Show as table").click()
    found["debrief opened"] = faults(page)
    assert not any(found.values()), found


def test_axe_finds_nothing_at_a_replay(page: Page) -> None:
    visit(page, "policy")
    page.get_by_role("button", name="Replay the bank").click()
    page.wait_for_selector(".numbers-of")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert faults(page) == []


def test_axe_sees_what_it_should(open_lab: Callable[..., Page]) -> None:
    """The counterpart: a fault put in is found."""
    page = open_lab(bypass_csp=True)
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    page.evaluate("document.querySelector('main h1').style.width = '3000px'")
    assert any(one.startswith("label") for one in faults(page))
    assert "wider than the window" in faults(page)


def test_at_twice_the_text_size_nothing_is_wider_than_the_window(open_lab: Callable[..., Page]) -> None:
    """WCAG 2.1, success criteria 1.4.4 and 1.4.10: 200 % of a window of 1280 is one of 640."""
    page = open_lab("zoom", viewport={"width": 640, "height": 450}, device_scale_factor=2)
    for name in PAGES:
        visit(page, name)
        assert not page.evaluate(WIDER), name


def test_what_has_the_focus_is_not_under_the_bar(open_lab: Callable[..., Page]) -> None:
    """WCAG 2.2, success criterion 2.4.11: focus not obscured."""
    page = open_lab("focus")
    player = Player(page)
    player.start(tier=1)
    for height in range(420, 720, 40):  # what comes to lie at the edge differs from event to event
        page.set_viewport_size({"width": 1180, "height": height})
        page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
        reached = set()
        for key, times in (("Tab", 25), ("ArrowDown", 24)):
            for _ in range(times):
                player.press(key)
                name, is_covered = page.evaluate(UNDER_THE_BAR)
                assert not is_covered, f"{height}, {key}: {name}"
                reached.add(name)
            player.tab_to("input[name=control]")
        assert reached >= {"decision", "risk", "control"}


UNDER_THE_BAR = """() => {
  const focus = document.activeElement, bar = document.querySelector('.send');
  const a = (focus.closest('label') ?? focus).getBoundingClientRect(), b = bar.getBoundingClientRect();
  const touches = a.bottom > b.top && a.top < b.bottom && a.right > b.left && a.left < b.right;
  const is_other = !bar.contains(focus) && focus !== document.body;
  return [focus.name || focus.className || focus.tagName, touches && is_other];
}"""


def test_nothing_moves_for_who_asked_for_less_motion(open_lab: Callable[..., Page]) -> None:
    page = open_lab("motion", reduced_motion="reduce")
    player = Player(page)
    player.start(tier=2)
    player.answer_right()
    assert page.evaluate("document.getAnimations().length") == 0


def test_with_forced_colors_the_choice_is_seen(open_lab: Callable[..., Page]) -> None:
    page = open_lab("forced", forced_colors="active")
    Player(page).start(tier=1)
    page.keyboard.press("3")
    chosen, other = (
        page.evaluate(
            "(word) => getComputedStyle(document.querySelector(`.choice.${word}`)).outlineStyle", word
        )
        for word in ("deny", "allow")
    )
    assert (chosen, other) == ("solid", "none")


def test_the_chosen_theme_holds_over_a_reload(open_lab: Callable[..., Page]) -> None:
    page = open_lab("theme", color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Dark").check()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.wait_for_selector("h1")
    assert page.evaluate(ground) == dark
