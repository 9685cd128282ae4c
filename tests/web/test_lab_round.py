"""A round in a real browser, by keyboard alone; what is said of right and wrong; reload and second tabs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from lab_player import Player, until
from lab_server import COMMAND, lab_server

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(90), pytest.mark.needs("chromium")]


def test_a_whole_round_by_keyboard_alone(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    assert page.evaluate("document.activeElement.id") == "event-title"
    for number in range(9):
        assert page.locator("#event-title").inner_text().startswith(f"Event {number + 1}")
        row = player.answer_right()
        assert "All three parts" in player.headline()
        shown = page.locator(".explanation").first.inner_text()
        assert row["cue"] in shown
        assert row["source"] in shown
        assert page.locator(".log tbody tr").count() == number + 1
        assert page.locator(".map .spot").count() == number + 1
        player.next()
    page.wait_for_selector(".grade")
    assert page.locator(".grade").inner_text() == "S"
    assert "100.0 %" in page.locator(".result").inner_text()
    assert page.get_by_role("button", name="Drill what you missed").count() == 0
    assert page.locator("section button.primary").inner_text() == "Next round, tier 2"
    assert "that you missed" not in page.locator(".questions").inner_text()
    assert page.locator("h1").inner_text() == "Debrief"
    assert page.evaluate("document.activeElement.tagName") == "H1"
    until(page, "document.querySelector('.share img').naturalWidth > 0")


def test_the_signed_result_that_one_takes_home_verifies(player: Player, tmp_path: Path) -> None:
    player.start(tier=1)
    for _ in range(9):
        player.answer_right()
        player.next()
    player.page.wait_for_selector(".share")
    player.tab_to(".share a[href$='/result']")
    with player.page.expect_download() as begun:
        player.press("Enter")
    path = tmp_path / "result.json"
    begun.value.save_as(path)
    told = subprocess.run([COMMAND, "lab", "verify", str(path)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    changed = path.read_bytes().replace(b"payload", b"payloaf", 1)
    path.write_bytes(changed)
    told = subprocess.run([COMMAND, "lab", "verify", str(path)], capture_output=True, text=True, check=False)
    assert told.returncode != 0


def test_a_leak_and_a_wrong_block_are_named_and_cost_points(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    leaks = blocks = 0
    points = 0
    for _ in range(9):
        row = player.answer_wrong()
        if row["verdict"] == "deny":
            leaks += 1
            points += -50 + 20 + 30
            assert "This was a leak" in player.headline()
        else:
            blocks += 1
            points += -25 + 20 + 30
            assert "This was a wrong block" in player.headline()
        assert f"{points} point" in page.locator(".score").inner_text()
        player.next()
    page.wait_for_selector(".grade")
    assert page.locator(".grade").inner_text() == "D"
    assert page.locator("section button.primary").inner_text() == "Drill what you missed"
    assert "that you missed" in page.locator(".questions").inner_text()
    assert page.get_by_role("heading", name="Leaks").inner_text() == f"Leaks {leaks}"
    assert page.get_by_role("heading", name="Wrong blocks").inner_text() == f"Wrong blocks {blocks}"
    assert leaks + blocks == 9
    assert leaks in (4, 5)


def test_without_single_keys_letters_do_nothing_and_tab_and_arrows_do_all(player: Player) -> None:
    """WCAG 2.1, success criterion 2.1.4: single-key shortcuts can be switched off."""
    page = player.page
    player.press("?")
    page.wait_for_selector("dialog[open]")
    player.tab_to("dialog input[type=checkbox]")
    player.press(" ", "Escape")
    player.start(tier=1)
    player.press("3", "b", "h", "?")
    assert page.locator(".answer input[type=radio]:checked").count() == 0
    assert page.locator(".hints li, dialog[open]").count() == 0
    player.tab_to("input[name=decision]")
    player.press("ArrowDown")
    player.tab_to("input[name=risk]")
    player.press("ArrowRight", "ArrowRight")
    player.tab_to("input[name=control]")
    player.press("ArrowDown")
    chosen = page.evaluate(
        "[...document.querySelectorAll('.answer input[type=radio]:checked')].map((one) => one.value)"
    )
    assert chosen == ["proxy", "ssrf", "default-deny"]
    player.press("Enter")
    player.wait_for_feedback()


def test_every_control_has_its_letter_also_where_it_means_something_else_outside(player: Player) -> None:
    """h, n, p and r are hint, next, policy and run it elsewhere; among the controls they choose.

    In the second event, when the listeners of the controls are younger than all others.
    """
    page = player.page
    player.start(tier=1)
    player.answer_right()
    player.next()
    player.press("c")
    chosen = []
    for letter in "abcdefghijklmnopqrstuvwx":
        player.press(letter)
        page.wait_for_timeout(40)
        chosen.append(page.locator("input[name=control]:checked").get_attribute("value"))
    assert len(set(chosen)) == 24
    assert page.locator(".hints li").count() == 0
    player.press("Escape", "h")
    page.wait_for_selector(".hints li")


def test_a_control_is_found_by_typing_and_keys_are_text_in_the_field(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    player.press("/")
    page.keyboard.type("mirror")
    assert page.locator("input[name=risk]:checked, input[name=decision]:checked").count() == 0
    shown = page.locator("label.control").all_inner_texts()
    assert shown
    assert all("mirror" in one.lower() for one in shown)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("vetted")
    player.press("Enter")
    until(page, "document.activeElement.value === 'vetted-mirror-pinned'")
    assert page.locator("input[name=control]:checked").get_attribute("value") == "vetted-mirror-pinned"
    player.press("Escape")
    assert page.evaluate("document.activeElement.name") == "decision"


def test_what_is_chosen_and_what_is_answered_survive_a_reload(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    player.answer_right()
    player.next()
    row = player.key()
    player.choose(row["verdict"], row["risk"], row["control"])
    page.reload()
    player.wait_for_event()
    assert page.locator("#event-title").inner_text().startswith("Event 2")
    assert page.locator(".log tbody tr").count() == 1
    assert page.locator(".answer input[type=radio]:checked").count() == 3
    player.press("Enter")
    player.wait_for_feedback()
    assert "200 points" in page.locator(".score").inner_text()


def test_a_second_browser_gets_the_first_answer_and_nothing_counts_twice(
    open_lab: Callable[..., Page], noted: list[str]
) -> None:
    first = Player(open_lab("two browsers"))
    first.start(tier=1)
    second = Player(open_lab("two browsers"))
    second.page.get_by_role("link", name="Resume").click()
    second.wait_for_event()
    row = first.answer_right()
    second.choose("proxy", row["risk"], "default-deny")
    second.press("Enter")
    second.wait_for_feedback()
    assert "All three parts" in second.headline()
    assert second.page.get_by_text("This event was answered before").count() == 1
    assert second.round()["points"] == 100
    assert all("409" in one for one in noted)  # Chromium's own note of the refusal
    noted.clear()


def test_a_round_outlives_its_server_and_the_page_says_what_is_the_matter(
    chromium: Browser, tmp_path: Path
) -> None:
    context = chromium.new_context()
    page = context.new_page()
    player = Player(page)
    with lab_server(tmp_path) as first:
        page.goto(first.address)
        page.wait_for_selector("h1")
        player.start(tier=1)
        player.answer_right()
        player.next()
        row = player.key()
    player.choose(row["verdict"], row["risk"], row["control"])
    player.press("Enter")
    page.get_by_text("The lab's server does not answer.").first.wait_for()
    with lab_server(tmp_path, first.port) as second:
        player.press("Enter")
        page.get_by_text("has not shown the token of this start").first.wait_for()
        page.goto(second.address)
        page.get_by_role("link", name="Resume").click()
        player.wait_for_event()
        assert page.locator("#event-title").inner_text().startswith("Event 2")
        assert page.locator(".answer input[type=radio]:checked").count() == 3
        player.press("Enter")
        player.wait_for_feedback()
        assert "200 points" in page.locator(".score").inner_text()
    context.close()


def test_another_tab_of_the_browser_follows(player: Player) -> None:
    player.start(tier=1)
    other = player.page.context.new_page()
    other.goto(player.page.url)
    other.wait_for_selector(".answer")
    player.answer_right()
    other.wait_for_selector("#feedback-title")
    assert other.locator(".log tbody tr").count() == 1


def test_a_request_line_stays_text_and_shows_what_is_hidden(player: Player) -> None:
    """The counterpart to the content policy: what an agent wrote never becomes markup."""
    evil = "GET https://a.test/<img src=x onerror=alert(1)>\u200b\u202etset\u0000</code><h1 id=evil>"

    def forge(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for event in body["events"]:
            event["attempt"] = evil
            event["stated_reason"] = "<script>alert(2)</script>"
        route.fulfill(response=answer, json=body)

    page = player.page
    page.route("**/api/rounds/r*", forge)
    page.route("**/api/rounds/*", forge)
    player.tab_to("form button.primary")
    player.press("Enter")
    player.wait_for_event()
    line = page.locator(".event .request")
    assert line.inner_text() == (
        "GET https://a.test/<img src=x onerror=alert(1)>\\u{200b}\\u{202e}tset\\u{0}</code><h1 id=evil>"
    )
    assert line.locator(".hidden-character").count() == 3
    assert page.locator("#evil, main img, main script").count() == 0
    assert "<script>alert(2)</script>" in page.locator(".reason").inner_text()


def test_a_hint_costs_what_it_says(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    for text in ("free", "costs 5 points", "costs 15 points"):
        assert text in page.locator(".hints button").inner_text()
        before = page.locator(".hints li").count()
        player.press("h")
        if text != "free":
            page.get_by_role("button", name="Press again for −").wait_for()
            assert page.locator(".hints li").count() == before
            player.press("h")
        until(page, "(n) => document.querySelectorAll('.hints li').length > n", before)
    assert page.locator(".hints button").count() == 0
    player.answer_right()
    assert "80 points" in page.locator(".score").inner_text()


def test_the_clock_counts_down_and_can_be_switched_off(player: Player) -> None:
    """WCAG 2.1, success criterion 2.2.1: timing is adjustable."""
    page = player.page
    player.start(tier=2)
    timer = page.get_by_role("timer")
    assert timer.inner_text().startswith(("1:30", "1:29"))
    until(page, "document.querySelector('[role=timer]').innerText.startsWith('1:28')")
    page.get_by_role("link", name="Play", exact=True).click()
    page.get_by_role("button", name="Break it off").click()
    page.get_by_text("Off", exact=False).first.click()
    until(page, "document.querySelector('input[name=clock][value=off]').checked")
    page.get_by_role("button", name="Play a round").click()
    player.wait_for_event()
    assert page.get_by_role("timer").count() == 0
    assert page.get_by_text("No clock").is_visible()


@pytest.mark.needs("world", "userns", "bwrap", "room")
def test_run_it_shows_record_worker_and_target(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    tried: set[str] = set()
    for _ in range(9):
        row = player.answer_right()
        if (
            row["live"] == "yes"
            and row["verdict"] not in tried
            and row["entry"] in ("transparent", "http-proxy")
        ):
            tried.add(row["verdict"])
            result = run_it(player)
            assert result["record"]["verdict"] == row["verdict"]
            columns = page.locator(".three > section")
            assert columns.count() == 3
            assert row["control"] in columns.nth(0).inner_text()
            arrived = columns.nth(2).inner_text()
            assert ("No byte reached it" in arrived) == (row["verdict"] == "deny")
            assert "differs" not in page.locator(".agrees").inner_text()
        player.next()
    assert "deny" in tried


def run_it(player: Player) -> Any:
    """Press r once the sandbox is ready; returns what the server said."""
    player.page.get_by_text("Nothing leaves it.").wait_for()
    with player.page.expect_response("**/api/live") as answer:
        player.press("r")
    player.page.wait_for_selector(".three")
    return answer.value.json()


def test_where_the_line_alone_says_otherwise_the_page_says_so(player: Player) -> None:
    """A key that rests on a look inside differs from what the engine says of the line: both are told."""

    def forge(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        key = body["feedback"]["key"]["decision"]
        body["feedback"]["engine"]["verdict"] = "proxy" if key == "deny" else "deny"
        route.fulfill(response=answer, json=body)

    page = player.page
    player.start(tier=1)
    player.answer_right()
    assert page.get_by_text("It says so of the line alone.").count() == 0
    player.next()
    page.route("**/answers", forge)
    player.answer_right()
    assert page.get_by_text("It says so of the line alone.").count() == 1


def wait_for_line(page: Page, number: int) -> None:
    """Wait until a line of the card is inside its box: the page scrolls it there after it has drawn it."""
    until(
        page,
        """(number) => {
            const box = document.querySelector('.card .lines').getBoundingClientRect();
            const line = document.querySelectorAll('.card .lines li')[number - 1].getBoundingClientRect();
            return line.top >= box.top - 2 && line.bottom <= box.bottom + 2;
        }""",
        number,
    )


def test_the_card_begins_at_its_rules_and_an_answer_wins_over_a_search(player: Player) -> None:
    page = player.page
    player.start(tier=1)
    lines = player.ask("/api/card")["lines"]
    rules = next(at for at, text in enumerate(lines, 1) if text.startswith("rules:"))
    wait_for_line(page, rules)
    page.get_by_label("Find").fill("unknown: deny")
    last = next(at for at, text in reversed(list(enumerate(lines, 1))) if "unknown: deny" in text)
    until(page, "document.querySelectorAll('.card .target').length === 1")
    wait_for_line(page, last)
    page.evaluate("document.activeElement.blur()")
    for _ in range(9):
        player.answer_right()
        rests = player.round()["events"][-1 if player.round()["current"] is None else -2]["feedback"][
            "rests_on"
        ]
        if rests["line"] and rests["line"] != last:
            break
        player.next()
    until(
        page, "(one) => document.querySelector('.card .target .number').innerText === one", str(rests["line"])
    )
    wait_for_line(page, rests["line"])
    assert page.get_by_label("Find").input_value() == "unknown: deny"
    page.get_by_label("Find").fill("")
    page.evaluate("document.activeElement.blur()")
    player.next()
    wait_for_line(page, rules)


def test_the_attempt_stays_in_view_while_its_panel_is_scrolled_away(player: Player) -> None:
    page = player.page
    page.set_viewport_size({"width": 1366, "height": 768})
    player.start(tier=3)
    for part in (".decisions", ".risks", ".controls legend"):
        place = page.locator(part).bounding_box()
        bar = page.locator(".send").bounding_box()
        assert place is not None
        assert bar is not None
        assert place["y"] + place["height"] <= bar["y"], part
    assert page.locator(".pinned p").count() == 0
    page.evaluate("document.querySelector('.controls').scrollIntoView()")
    page.locator(".pinned p").wait_for()
    assert page.locator(".pinned p").inner_text() == player.round()["events"][0]["attempt"]


def test_a_seed_that_is_none_is_said_beside_its_field(player: Player, noted: list[str]) -> None:
    page = player.page
    page.get_by_text("Play the same round as others").click()
    page.get_by_label("Seed").fill("team lunch \u00e4")
    page.get_by_label("Seed").press("Enter")
    page.get_by_role("alert").filter(has_text="letters, digits").wait_for()
    assert page.evaluate("document.activeElement.getAttribute('aria-invalid')") == "true"
    page.keyboard.type("x")
    until(page, "!document.querySelector('[aria-invalid=true]')")
    assert page.locator("details.seed[open]").count() == 1
    noted.clear()


def test_settings_hold_whatever_address_the_server_has_the_next_time(
    chromium: Browser, tmp_path: Path
) -> None:
    """A browser keeps its own storage by port, and the port changes: so the server keeps them."""
    for is_first in (True, False):
        context = chromium.new_context()
        page = context.new_page()
        with lab_server(tmp_path) as server:
            page.goto(server.address)
            page.wait_for_selector("h1")
            page.get_by_role("button", name="Settings").click()
            dark, keys = page.get_by_label("Dark"), page.get_by_label("Single-key shortcuts")
            assert (dark.is_checked(), keys.is_checked()) == (not is_first, is_first)
            if is_first:
                dark.check()
                keys.uncheck()
                page.wait_for_load_state("networkidle")
            page.keyboard.press("Escape")
            page.keyboard.press("?")
            assert page.locator("dialog[open]").count() == 0
            assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        context.close()
