"""A proof: the catalogue tried in lanes, judged, in order.

This process stays where it was called and attacks nothing. Each lane is a process in a range
of its own (`lane.py`), with as many lanes as there are processors; they share no network, so
what they try at the same time cannot be confused.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue

from msgspec import Struct

from stockade.errors import HostError
from stockade.prove.judge import judge
from stockade.prove.lane_process import LaneEnded, LaneProcess
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged, Order, Trial, Try

Tell = Callable[[Judged], None]
RESTARTS = 1  # of each lane


class Job(Struct, frozen=True):
    """One technique to try, with these layers given up; in the open too if it has no control yet."""

    technique: Technique
    layers_off: tuple[str, ...] = ()
    has_control: bool = True


def run_proof(
    techniques: Iterable[Technique],
    evidence: Path,
    tell: Tell,
    *,
    layers_off: tuple[str, ...] = (),
    lanes: int | None = None,
) -> list[Judged]:
    """Try all techniques and judge them; the result is in the order of the catalogue.

    Args:
        evidence: Folder for ledgers and screenshots.
        tell: Called after each, in the order in which they end.

    Raises:
        HostError: This host cannot make the range.
        ContainmentError: A lane found a way out of its network; nothing was tried there.
    """
    chosen = list(techniques)
    judged: dict[str, Judged] = {}

    def note(job: Job, trial: Trial) -> None:
        one = Judged(trial=trial, judgement=judge(job.technique, trial))
        judged[job.technique.id] = one
        tell(one)

    run_jobs([Job(technique, layers_off) for technique in chosen], evidence, note, lanes)
    return [judged[technique.id] for technique in chosen]


def run_jobs(
    jobs: Iterable[Job], evidence: Path, note: Callable[[Job, Trial], None], lanes: int | None = None
) -> None:
    """Have all jobs done in lanes; `note` is called with each trial, one call at a time.

    However this is left, by an error or an interrupt too, no lane is left running.

    Raises:
        HostError: This host cannot make the range, or lanes die again and again.
        ContainmentError: A lane found a way out of its network; nothing was tried there.
    """
    evidence = evidence.absolute()  # a contained run is started in a folder of its own
    waiting = _Waiting(jobs)
    processors = os.cpu_count() or 1
    # An attack without a browser waits for a third of its time, so half as many again keep all busy.
    count = min(lanes or processors + processors // 2, len(waiting))
    lock = threading.Lock()
    ended: SimpleQueue[BaseException | None] = SimpleQueue()
    workers = [
        _Worker(waiting, evidence, note, lock, ended, may_browse=number < (lanes or processors))
        for number in range(count)
    ]
    try:
        for worker in workers:
            worker.thread.start()
        for _ in workers:
            failure = ended.get()  # of whichever ends next, so that none waits for another's long trial
            if failure is not None:
                raise failure
    finally:
        waiting.clear()
        for worker in workers:
            worker.close()


class _Waiting:
    """Jobs that nobody has taken yet; those through the browser first, since they take the longest."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._lock = threading.Lock()
        self._browser: deque[Job] = deque()
        self._plain: deque[Job] = deque()
        for job in jobs:
            (self._browser if job.technique.is_browser else self._plain).append(job)

    def __len__(self) -> int:
        return len(self._browser) + len(self._plain)

    def take(self, may_browse: bool) -> Job | None:
        """The next one for a lane; None if there is none for it."""
        with self._lock:
            if may_browse and self._browser:
                return self._browser.popleft()
            return self._plain.popleft() if self._plain else None

    def clear(self) -> None:
        with self._lock:
            self._browser.clear()
            self._plain.clear()


class _Worker:
    """A thread that keeps one lane at work."""

    def __init__(
        self,
        waiting: _Waiting,
        evidence: Path,
        note: Callable[[Job, Trial], None],
        lock: threading.Lock,
        ended: SimpleQueue[BaseException | None],
        *,
        may_browse: bool,
    ) -> None:
        self.thread = threading.Thread(target=self._work, daemon=True)
        self._waiting = waiting
        self._evidence = evidence
        self._note = note
        self._lock = lock
        self._ended = ended
        self._may_browse = may_browse
        self._lane: LaneProcess | None = None
        self._deaths = 0
        self._is_closing = False

    def close(self) -> None:
        """End the lane, and with it the thread."""
        self._is_closing = True
        while self.thread.is_alive():
            if self._lane is not None:
                self._lane.close()
            self.thread.join(0.05)

    def _work(self) -> None:
        failure: BaseException | None = None
        try:
            while not self._is_closing and (job := self._waiting.take(self._may_browse)) is not None:
                self._perform(job)
        except BaseException as problem:  # noqa: BLE001  # handed to the caller's thread, which raises it
            failure = problem
            self._waiting.clear()
        finally:
            if self._lane is not None:
                self._lane.close()
            self._ended.put(failure)

    def _perform(self, job: Job) -> None:
        if self._lane is None:
            self._lane = LaneProcess()
            self._lane.start()
        order = Order(
            id=job.technique.id,
            evidence=str(self._evidence),
            layers_off=job.layers_off,
            has_control=job.has_control,
        )
        try:
            trial = self._lane.perform(order)
        except LaneEnded as end:
            if self._is_closing:
                return
            trial = self._replace(job, end)
        with self._lock:
            self._note(job, trial)

    def _replace(self, job: Job, end: LaneEnded) -> Trial:
        """The technique says nothing; the next one gets a new lane, once."""
        assert self._lane is not None
        self._lane.close()
        self._deaths += 1
        if self._deaths > RESTARTS:
            raise HostError(
                "lane-ended",
                f"lanes end again and again, the last while trying {job.technique.id}: {end}",
                "try that one alone with --only; `stockade doctor` says what this host can do",
            ) from end
        self._lane = None
        said = Try(problem=str(end))
        return Trial(id=job.technique.id, control=said, attempt=said, layers_off=job.layers_off)
