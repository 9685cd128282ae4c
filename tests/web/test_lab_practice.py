"""Drill, policy as the answer, progress and learners, in a real browser and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab_player import Player, until

import stockade.lab

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(90), pytest.mark.needs("chromium")]

CARD = (Path(stockade.lab.__file__).parent / "bank" / "bank-policy.yaml").read_text()


def go(player: Player, name: str) -> None:
    """Follow a link of the header, by keyboard."""
    player.page.evaluate("document.activeElement.blur()")
    player.tab_to(f".top nav a[href='#/{name}']")
    player.press("Enter")
    until(player.page, "document.activeElement.tagName === 'H1'")


def test_a_drill_by_keyboard_alone(player: Player) -> None:
    """What is missed in a round comes back in the drill of what was missed, and nothing else does."""
    page = player.page
    player.start(tier=1)
    missed = [player.answer_wrong()["id"]]
    player.next()
    for _ in range(8):
        player.answer_right()
        player.next()
    page.wait_for_selector(".result")
    go(player, "drill")
    player.tab_to(".drills li:nth-child(3) button")
    player.press("Enter")
    player.wait_for_event()
    assert page.get_by_text("No clock").is_visible()
    count = player.round()["count"]
    seen = []
    for _ in range(count):
        seen.append(player.answer_right()["id"])
        player.next()
    assert seen == missed
    page.wait_for_selector(".result")
    assert page.locator(".grade").count() == 0, "a drill has no grade"


def open_policy(player: Player) -> None:
    go(player, "policy")
    player.page.wait_for_selector("#policy-text")
    player.tab_to("#policy-text")


def replace_text(player: Player, text: str) -> None:
    player.press("ControlOrMeta+a")
    player.page.keyboard.insert_text(text)


def replay(player: Player) -> list[str]:
    """Leave the editor by Esc and Tab, replay, and read the numbers."""
    player.press("Escape", "Tab")
    assert player.page.evaluate("document.activeElement.id") != "policy-text"
    player.tab_to(".policy-columns button.primary")
    player.press("Enter")
    player.page.wait_for_selector(".numbers-of")
    return player.page.locator(".numbers-of dd").all_inner_texts()


def test_a_policy_answer_by_keyboard_alone(player: Player) -> None:
    """The bank's own card is a whole answer; the text to begin with breaks all work and leaks nothing."""
    page = player.page
    open_policy(player)
    leaks, breakages, _ = replay(player)
    assert leaks.split()[0] == "0"
    assert breakages.split()[0] == breakages.split()[2]
    assert page.locator(".replay details").count() == int(breakages.split()[0])
    player.tab_to(".replay summary")
    player.press("Enter")
    assert page.locator(".replay details[open]").count() == 1
    page.evaluate("document.activeElement.blur()")
    player.tab_to("#policy-text")
    replace_text(player, CARD)
    leaks, breakages, grade = replay(player)
    until(page, "document.querySelectorAll('.replay details').length === 0")
    leaks, breakages, grade = page.locator(".numbers-of dd").all_inner_texts()
    assert [leaks.split()[0], breakages.split()[0], grade] == ["0", "0", "S"]
    until(page, "document.querySelector('.policy-columns .status').innerText === 'Draft saved'")
    page.reload()
    page.wait_for_selector("#policy-text")
    assert page.locator("#policy-text").input_value() == CARD


def test_a_result_is_led_to_goes_out_of_date_and_gives_way_to_a_fault(
    player: Player, noted: list[str], tmp_path: Path
) -> None:
    page = player.page
    open_policy(player)
    replay(player)
    until(page, "document.activeElement.id === 'replay-title'")
    assert page.evaluate("document.activeElement.getBoundingClientRect().top < innerHeight / 2")
    page.locator("#policy-text").fill("version: 1\nrules: [")
    page.get_by_text("The text has changed since").wait_for()
    page.get_by_role("button", name="Replay the bank").click()
    page.locator(".replay-fault").wait_for()
    assert "your policy, line 3" in page.locator(".replay-fault").inner_text()
    assert page.locator(".replay").count() == 0
    page.locator("#policy-text").fill(CARD)
    until(page, "document.querySelector('.replay-fault') === null")
    with page.expect_download() as begun:
        page.get_by_role("button", name="Save as file").click()
    assert begun.value.suggested_filename == "my-policy.yaml"
    begun.value.save_as(tmp_path / "saved")
    assert (tmp_path / "saved").read_text() == CARD
    noted.clear()


def test_findings_come_as_one_types_and_lead_to_their_line(player: Player) -> None:
    page = player.page
    open_policy(player)
    replace_text(player, "version: 1\n\nrules:\n  - allow: '*.com'\nunknown: deny\n")
    finding = page.locator(".findings li").filter(has_text="Line 4").first
    finding.wait_for()
    player.press("Escape", "Tab")
    player.tab_to(".findings li button")
    player.press("Enter")
    assert page.evaluate("document.activeElement.id") == "policy-text"
    before = page.evaluate(
        "(({value, selectionStart}) => value.slice(0, selectionStart))(document.activeElement)"
    )
    assert before == "version: 1\n\nrules:\n"


def test_tab_indents_and_the_keyboard_is_not_trapped(player: Player) -> None:
    """WCAG 2.1, success criterion 2.1.2."""
    page = player.page
    open_policy(player)
    replace_text(player, "a")
    player.press("Tab")
    assert page.locator("#policy-text").input_value() == "a  "
    player.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") != "policy-text"
    player.tab_to("#policy-text")
    player.press("Escape", "Tab")
    assert page.evaluate("document.activeElement.id") != "policy-text"
    assert page.locator("#policy-text").input_value() == "a  "


def test_notes_and_gaps_are_kept(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    for _ in range(9):
        player.answer_right()
        player.next()
    page.wait_for_selector(".result")
    page.get_by_label("Why not?").fill("The list decides. <b>Not</b> the parser.")
    until(
        page, "[...document.querySelectorAll('.question .status')].some((one) => one.innerText === 'saved')"
    )
    page.get_by_label("A gap").fill("NAT64 <i>addresses</i>")
    page.get_by_label("A gap").press("Enter")
    page.get_by_role("checkbox", name="NAT64").check()
    page.reload()
    page.wait_for_selector(".result")
    assert page.get_by_label("Why not?").input_value() == "The list decides. <b>Not</b> the parser."
    assert page.get_by_role("checkbox", name="NAT64 <i>addresses</i>").is_checked()


def test_learners_are_kept_apart_and_a_reset_asks_first(
    player: Player, open_lab: Callable[..., Page]
) -> None:
    page = player.page
    player.start(tier=1)
    player.answer_right()
    other = open_lab("somebody else")
    other.get_by_role("link", name="Progress").first.click()
    other.get_by_text("None yet.").wait_for()
    go(player, "progress")
    rows = page.get_by_role("region", name="Rounds and drills").locator("tbody tr")
    rows.first.wait_for()
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_role("button", name="Keep everything").click()
    assert rows.count() == 1
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_role("button", name="Forget everything").click()
    page.get_by_text("None yet.").wait_for()


def test_a_new_learner_is_one_dialog_away(player: Player) -> None:
    page = player.page
    player.tab_to(".tools button")
    player.press("Enter")
    player.tab_to("dialog input")
    page.keyboard.type("Ada & <b>Co</b>")
    player.press("Enter")
    until(page, "document.querySelector('.tools button').innerText.includes('Ada & <b>Co</b>')")
    assert page.locator("dialog[open]").count() == 0
