"""The guided half day in a real browser: ticked, verified, answered, and taken home."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab_player import until

from stockade.evidence.questions import QUESTIONS
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.workshop import STEPS
from stockade.lab.workshop_record import replay_on
from stockade.lab.workshop_verify import verify_workshop_record

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.needs("chromium")]


@pytest.fixture
def page(open_lab: Callable[..., Page], request: pytest.FixtureRequest) -> Page:
    page = open_lab(request.node.name[:40])
    open_page(page, "workshop")
    return page


def open_page(page: Page, name: str) -> None:
    page.evaluate("(name) => { location.hash = `#/${name}`; }", name)
    until(page, "document.querySelector('main h1') !== null")
    page.wait_for_load_state("networkidle")


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Evidence as `stockade prove --out` leaves it, with attacks that are made up."""
    from doubles.made_up_proof import seal_proof

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return seal_proof(tmp_path / "my-evidence").page.parent


def test_ticks_and_answers_are_there_again_after_a_reload(page: Page) -> None:
    first = page.get_by_label(f"{STEPS[0].title}: done")
    first.focus()
    page.keyboard.press("Space")
    until(page, "document.querySelector('progress').value === 1")
    page.get_by_label(QUESTIONS[1].text, exact=True).fill(
        "Because a score that could be read measures nothing."
    )
    until(page, "[...document.querySelectorAll('.saved')].some((one) => one.textContent === 'saved')")
    page.reload()
    until(page, "document.querySelector('progress')?.value === 1")
    assert first.is_checked()
    assert page.get_by_label(QUESTIONS[1].text, exact=True).input_value().startswith("Because")


def test_a_command_is_copied_with_the_button(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=f"Copy: {STEPS[3].commands[0].text}", exact=True).click()
    until(
        page, "[...document.querySelectorAll('[role=status]')].some((one) => one.textContent === 'Copied.')"
    )
    assert page.evaluate("navigator.clipboard.readText()") == STEPS[3].commands[0].text


def test_the_half_day_leaves_a_record_that_verifies_and_a_changed_folder_is_refused(
    page: Page, evidence: Path, tmp_path: Path, noted: list[str]
) -> None:
    assert page.locator(".missing li").count() == 2 + len(QUESTIONS)
    assert page.get_by_role("button", name="Download my record").count() == 0
    page.evaluate(
        "(text) => fetch('/api/policy', {method: 'PUT', body: JSON.stringify({text}),"
        " headers: {'Content-Type': 'application/json'}})",
        shipped_bank().policy_text,
    )
    page.get_by_label("Folder of the evidence").fill(str(tmp_path / "nowhere"))
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.folder .fault') !== null")
    noted.clear()  # the browser notes the refusal as well
    page.get_by_label("Folder of the evidence").fill(str(evidence))
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.outcome.is-true') !== null")
    for question in QUESTIONS:
        page.get_by_label(question.text, exact=True).fill(f"about {question.text}")
    until(page, "document.querySelector('.missing') === null")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save my answers as answers.json").click()
    answers = json.loads(Path(saved.value.path()).read_text())
    assert answers == {question.key: f"about {question.text}" for question in QUESTIONS}
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download my record").click()
    assert saved.value.suggested_filename == "my-half-day.json"
    bank = shipped_bank()
    found = verify_workshop_record(
        Path(saved.value.path()).read_bytes(), replay=replay_on(bank), bank_digest=bank.digest
    )
    assert found.is_replayed
    assert (found.said.policy.replay.leaks, found.said.policy.replay.breakages) == (0, 0)
    (evidence / "policy.yaml").write_text("changed")
    page.get_by_role("button", name="Verify", exact=True).click()
    until(page, "document.querySelector('.outcome.is-false') !== null")
    assert "policy.yaml" in page.locator(".outcome").inner_text()
    page.get_by_role("button", name="Download my record").click()
    until(
        page,
        "[...document.querySelectorAll('.fault')].some((one) => one.textContent.includes('policy.yaml'))",
    )
    noted.clear()


def test_about_and_reference_lead_to_their_sections_by_keyboard(page: Page) -> None:
    for name, title in (("about", "What touches a network here, and what does not"), ("reference", "Risks")):
        open_page(page, name)
        page.get_by_role("link", name=title, exact=True).focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == title
        assert page.url.endswith(f"#/{name}")
