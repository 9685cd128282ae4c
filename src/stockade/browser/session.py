"""One session of `stockade browse`: a contained browser, an agent, and what is kept of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from stockade.browser.agents import Agent, ObedientAgent
from stockade.browser.chromium import open_playwright
from stockade.browser.model_agent import Dialect, ModelAgent
from stockade.browser.places import Contained, find_browser
from stockade.browser.transcript import Album, TakenStep, Transcript, write_transcript
from stockade.browser.worker import STEP_LIMIT, Worker
from stockade.errors import UserError

OBEDIENT = "obedient"
AGENTS = (OBEDIENT, *map(str, Dialect))
DEFAULT_POLICY = "version: 1\ninclude: [exec/browser]\n"


class BrowseOptions(Struct, frozen=True, kw_only=True):
    """What `stockade browse` was asked to do.

    Attributes:
        policy: The policy file; None permits the browser's own programs and no network.
        out: Where transcript and pictures go; None keeps nothing but the ledger.
        model: The provider's name of the model, for an agent that is one.
        model_url: Base address of its API; empty for the provider's own.
    """

    url: str
    prompt: str = "Do what the page says."
    agent: str = OBEDIENT
    policy: Path | None = None
    out: Path | None = None
    ledger: Path | None = None
    model: str = ""
    model_url: str = ""
    step_limit: int = STEP_LIMIT


def browse(options: BrowseOptions, tell: Callable[[TakenStep], None]) -> Transcript:
    """Run one session.

    Args:
        tell: Called after each step.

    Raises:
        UserError: The options do not fit, or the output folder holds a transcript already.
        HostError: Chromium or Playwright is missing, the browser does not start, a model does not answer.
    """
    find_browser()
    if options.agent != OBEDIENT and not options.model:
        raise UserError("no-model", f"--agent {options.agent} needs the name of a model", "--model NAME")
    _prepare_output(options.out)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="stockade-session-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        place = Contained(_policy_of(options, folder), _absolute(options.ledger), _workspace(folder))
        stack.callback(place.close)
        playwright = stack.enter_context(open_playwright())
        agent = _make_agent(options, place, stack)
        worker = Worker(
            playwright, place, agent, Album(options.out), step_limit=options.step_limit, on_step=tell
        )
        stack.callback(worker.close)
        ended = "error"
        try:
            ended = worker.work(options.prompt, options.url)
        finally:
            transcript = worker.transcript(options.prompt, options.agent, ended)
            if options.out is not None:
                write_transcript(transcript, options.out)
        return transcript


def _prepare_output(folder: Path | None) -> None:
    if folder is None:
        return
    if (folder / "transcript.json").exists():
        raise UserError("out-exists", f"{folder} holds a transcript already", "name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError("out-folder", f"--out {folder}: {error.strerror}") from error


def _policy_of(options: BrowseOptions, folder: Path) -> Path:
    if options.policy is not None:
        return options.policy.absolute()
    default = folder / "policy.yaml"
    default.write_text(DEFAULT_POLICY)
    return default


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()


def _workspace(folder: Path) -> Path:
    """An empty folder: what the operator has in his own is nothing for a page to read."""
    workspace = folder / "work"
    workspace.mkdir(mode=0o755)
    folder.chmod(0o755)
    return workspace


def _make_agent(options: BrowseOptions, place: Contained, stack: ExitStack) -> Agent:
    if options.agent == OBEDIENT:
        return ObedientAgent()
    dialect = Dialect(options.agent)
    helper = place.start_helper("model_payload")
    stack.callback(helper.close)
    return ModelAgent(
        helper.ask,
        dialect,
        options.model,
        options.model_url or dialect.default_url,
        os.environ.get(dialect.key_variable),
    )
