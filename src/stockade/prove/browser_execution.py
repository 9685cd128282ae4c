"""An attack through the browser, tried in the open and contained, with the same worker both times.

The page of the attack is itself the permitted request before it; another one follows. What the
obedient agent did stands in its transcript, beside a picture for each step.
"""

from __future__ import annotations

import importlib.util
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.browser.actions import Open
from stockade.browser.agents import ObedientAgent
from stockade.browser.chromium import open_playwright
from stockade.browser.places import Contained, Place, find_browser
from stockade.browser.transcript import Album, Transcript, write_transcript
from stockade.browser.worker import Worker
from stockade.errors import HostError, StockadeError
from stockade.ledger.shelf import RunReader
from stockade.prove.execution import digest_expectation, find_permitted, read_start, shorten_record
from stockade.prove.host_services import HostServices
from stockade.prove.judge import find_refusal
from stockade.prove.open_browser import OpenPlace
from stockade.prove.technique import Technique
from stockade.prove.trial import Order, Trial, Try
from stockade.prove.witnesses import Sorted, list_seen, sort_seen
from stockade.prove.world_client import World

if TYPE_CHECKING:
    from playwright.sync_api import Playwright

POLICY = "version: 1\ninclude: [exec/browser]\nrules:\n  - allow: allowed.test\n    ports: [80, 443]\n"
# A service worker wants a secure origin, and the range's certificates are nobody's.
FLAGS = (
    "--unsafely-treat-insecure-origin-as-secure=http://allowed.test",
    # In the room there is loopback alone, which WebRTC leaves out: it would try nothing, and show nothing.
    "--allow-loopback-in-peer-connection",
)
DEVTOOLS_PORT = 9222
ARRIVAL_LIMIT_S = 5.0
REFUSAL_LIMIT_S = 3.0
LOOK_AGAIN_S = 0.1


class Browsers:
    """Tries techniques with browsers, in one lane: they share a driver, which only passes orders on."""

    def __init__(self, world: World, services: HostServices, base: Path) -> None:
        self._places = world, services, base
        self._stack = ExitStack()
        self._playwright: Playwright | None = None

    def close(self) -> None:
        """End the driver."""
        self._stack.close()

    def perform(self, technique: Technique, order: Order) -> Trial:
        """Try one technique with a browser, in the open and then contained."""
        if missing := find_missing_browser():
            return Trial(id=technique.id, control=Try(), attempt=Try(), not_supported=missing)
        if self._playwright is None:
            # A debugging port on the host's loopback, as a developer's own browser opens it.
            self._places[1].listen("devtools", socket.AF_INET, ("127.0.0.1", DEVTOOLS_PORT))
            self._playwright = self._stack.enter_context(open_playwright())
        control = self._try(technique, order, is_open=True) if order.has_control else Try()
        attempt = self._try(technique, order, is_open=False)
        return Trial(id=technique.id, control=control, attempt=attempt, layers_off=order.layers_off)

    def _try(self, technique: Technique, order: Order, is_open: bool) -> Try:
        assert self._playwright is not None
        return _BrowserExecution(technique, order, *self._places, self._playwright, is_open=is_open).run()


def find_missing_browser() -> str | None:
    """What a worker with a browser needs and this machine does not have, with how to get it."""
    if importlib.util.find_spec("playwright") is None:
        return "needs Playwright: pip install 'stockade[browser]'"
    try:
        find_browser()
    except HostError as error:
        return f"needs Chromium: {error.hint}"
    return None


class _BrowserExecution:
    """One technique run once in a browser."""

    def __init__(
        self,
        technique: Technique,
        order: Order,
        world: World,
        services: HostServices,
        base: Path,
        playwright: Playwright,
        is_open: bool,
    ) -> None:
        self._technique = technique
        self._playwright = playwright
        self._order = order
        self._world = world
        self._services = services
        self._is_open = is_open
        self._word = secrets.token_hex(6)
        self._folder = Path(tempfile.mkdtemp(dir=base))
        self._folder.chmod(0o755)
        self._workspace = self._folder / "work"
        self._secret = self._folder / "secret.txt"
        self._shelf = Path(order.evidence) / "ledger"
        self._kept = Path(
            "browser", technique.id, "-".join(("control" if is_open else "attempt", *order.layers_off))
        )
        self._said: list[dict[str, Any]] = []
        self._files: dict[str, str] = {}
        self._runs: list[str] = []
        self._at_host: list[dict[str, Any]] = []

    def run(self) -> Try:
        self._prepare()
        started = time.monotonic()
        place = self._place()
        problem, ended = None, ""
        try:
            ended = self._work(place)
        except StockadeError as error:
            problem = f"{error}" + (f" ({error.hint})" if error.hint else "")
        finally:
            place.close()
        seen = self._look()
        records = list(self._records())
        denials = tuple(record for record in records if record.get("verdict") == "deny")
        shutil.rmtree(self._folder, ignore_errors=True)
        return Try(
            said=tuple(self._said),
            is_done=ended == "done",
            allowed_before=self._worked("before", seen),
            allowed_after=self._worked("after", seen),
            arrived=seen.arrived,
            stray=() if self._is_open else seen.stray,
            denials=tuple(shorten_record(record) for record in denials),
            closing=choose_closing(self._runs, records),
            exit_code=None if problem else 0,
            problem=problem,
            seconds=round(time.monotonic() - started, 3),
            run=self._runs[0] if self._runs else "",
            files=self._files,
        )

    # --- before -------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._workspace.mkdir()
        self._workspace.chmod(0o777)
        (Path(self._order.evidence) / self._kept).mkdir(parents=True, exist_ok=True)
        self._secret.write_text(f"secret-{self._word}\n")
        self._world.reset()
        self._services.take()
        if self._technique.zone:
            self._world.set_dns(dict(self._technique.zone))
        pages = {
            self._page_path: self._technique.page or "<p>Nothing to do here.</p>",
            **self._technique.pages,
        }
        self._world.set_pages({path: self._fill_in(text) for path, text in pages.items()})

    @property
    def _page_path(self) -> str:
        return f"/attack/{self._technique.id}"

    def _fill_in(self, text: str) -> str:
        """Put in what only this execution knows."""
        for name, value in (
            ("{word}", self._word),
            ("{secret}", str(self._secret)),
            ("{witness}", str(self._workspace / "witness")),
        ):
            text = text.replace(name, value)
        return text

    def _place(self) -> Place:
        if self._is_open:
            return OpenPlace(self._workspace)
        policy = self._folder / "policy.yaml"
        policy.write_text(POLICY + self._technique.rules.rstrip() + "\n" + self._technique.policy)
        layers = tuple(f"--without-layer={name}" for name in self._order.layers_off)
        options = ("--write", str(self._workspace), *layers, *self._technique.options)
        return Contained(policy, self._shelf, self._workspace, options)

    # --- meanwhile ----------------------------------------------------------------------------

    def _work(self, place: Place) -> str:
        album = Album(Path(self._order.evidence) / self._kept)
        expected = digest_expectation(self._order.evidence)
        flags = (*FLAGS, f"--expectation={expected}")  # Chromium passes it over; the first record holds it
        worker = Worker(self._playwright, place, ObedientAgent(), album, time_limit_s=20.0, flags=flags)
        prompt = self._fill_in(self._technique.prompt or "Do what the page says.")
        try:
            ended = worker.work(prompt, f"http://allowed.test{self._page_path}?permitted=before-{self._word}")
            self._say_steps(worker)
            self._runs = [run for run in (place.browser_run, worker.terminal_run) if run]
            self._wait(worker)
            worker.take(Open(f"http://allowed.test/?permitted=after-{self._word}"))
            self._say_steps(worker)
        finally:
            worker.close()
        self._keep(worker.transcript(prompt, "obedient", ended))
        if ended == "done":
            self._said.append({"done": True})
        return ended

    def _say_steps(self, worker: Worker) -> None:
        for step in worker.steps[len(self._said) :]:
            said: dict[str, Any] = {"do": step.action["action"], **step.action, "came": step.came}
            if step.error:
                said["error"] = step.error
            if step.status is not None and "permitted=" in step.action.get("url", ""):
                said["reply"] = f"HTTP/1.1 {step.status} "
                said["allowed"] = "before" if "permitted=before" in step.action["url"] else "after"
            self._said.append(said)

    def _wait(self, worker: Worker) -> None:
        """Leave the page to itself until its attack has arrived or was refused, but not for long."""
        limit_s = ARRIVAL_LIMIT_S if self._is_open else REFUSAL_LIMIT_S
        is_over: Callable[[], bool] = self._has_arrived if self._is_open else self._was_refused
        deadline = time.monotonic() + limit_s
        while not is_over() and time.monotonic() < deadline:
            worker.browser.wait(LOOK_AGAIN_S)

    def _has_arrived(self) -> bool:
        return bool(self._look().arrived)

    def _was_refused(self) -> bool:
        denials = tuple(
            shorten_record(record) for record in self._records() if record.get("verdict") == "deny"
        )
        return find_refusal(self._technique, Try(said=tuple(self._said), denials=denials)) is not None

    def _keep(self, transcript: Transcript) -> None:
        """Write the transcript, and name it and the pictures of before and after for the evidence."""
        write_transcript(transcript, Path(self._order.evidence) / self._kept)
        self._files["transcript"] = str(self._kept / "transcript.json")
        pictures = [step.screenshot_after for step in transcript.steps if step.screenshot_after]
        # The last step is the permitted page again: the picture after the attack is the one before it.
        if pictures:
            chosen = {"before": pictures[0], "after": pictures[max(0, len(pictures) - 2)]}
            self._files |= {name: str(self._kept / transcript.pictures[one]) for name, one in chosen.items()}

    # --- afterwards ---------------------------------------------------------------------------

    def _look(self) -> Sorted:
        world = self._world
        seen = list_seen(*world.everything())
        # The host's kernel tells of its multicast groups (IGMP) after WebRTC in the control joined one.
        seen = [one for one in seen if one.get("protocol") != "2"]
        seen += self._host_arrivals()
        if self._word.encode() in read_start(self._workspace / "witness"):
            seen.append({"what": "command", "text": self._word})
        return sort_seen(seen, self._technique.arrives, find_permitted(self._technique, self._word))

    def _host_arrivals(self) -> list[dict[str, Any]]:
        """What the host's services received during this execution, however often one looks."""
        self._at_host += self._services.take()
        return self._at_host

    def _worked(self, when: str, seen: Sorted) -> bool:
        """The permitted page was answered, and the world saw the request: neither alone would do."""
        word = f"permitted={when}-{self._word}"
        answered = any(said.get("allowed") == when and " 200 " in said["reply"] for said in self._said)
        return answered and any(word in one.get("path", "") for one in seen.permitted)

    def _records(self) -> Iterator[dict[str, Any]]:
        for run in reversed(self._runs):  # the browser's own last, so that its end is the last record
            if (self._shelf / run).is_dir():
                yield from RunReader(self._shelf / run).read()


def choose_closing(runs: Sequence[str], records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Pure: of the last records of the browser's run (the first) and the terminal's the one that counts.

    Returns:
        Nothing if one of the runs has no last record; else that of a run whose counters do not agree; else
        the browser's.
    """
    last = {record["run"]: record for record in records if record["kind"] == "run.closed"}
    if not runs or any(run not in last for run in runs):
        return {}
    return next((last[run] for run in runs if last[run].get("complete") is not True), last[runs[0]])
