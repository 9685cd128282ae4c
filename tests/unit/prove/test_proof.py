"""Jobs in lanes: a lane that dies costs one technique and is replaced once; nothing is left running."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stockade.errors import ContainmentError, HostError
from stockade.prove import lane_process, proof
from stockade.prove.lane_process import LaneEnded, LaneProcess
from stockade.prove.proof import Job, run_jobs, run_proof
from stockade.prove.technique import Technique, load_catalogue
from stockade.prove.trial import Judged, Order, Result, Trial, Try

TECHNIQUES = [one for one in load_catalogue() if not one.is_browser][:6]
GOOD = Try(is_done=True, allowed_before=True, allowed_after=True, arrived=({"what": "tcp"},), exit_code=0)


class FakeLane:
    """Answers each order at once; dies at the ids in `deadly`; at those in `hanging` until it is closed."""

    deadly: frozenset[str] = frozenset()
    hanging: frozenset[str] = frozenset()
    cannot_start: Exception | None = None
    made: list[FakeLane] = []  # noqa: RUF012  # one test's lanes, emptied by the fixture

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.ended = threading.Event()
        self.made.append(self)

    def start(self) -> None:
        if self.cannot_start is not None:
            raise self.cannot_start

    def perform(self, order: Order) -> Trial:
        assert not self.ended.is_set()
        self.orders.append(order)
        if order.id in self.hanging:
            self.ended.wait()
            raise LaneEnded("the lane ended with code -15")
        if order.id in self.deadly:
            raise LaneEnded("the lane ended with code 1: MemoryError")
        return Trial(id=order.id, control=GOOD, attempt=GOOD, layers_off=order.layers_off)

    def close(self) -> None:
        self.ended.set()


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeLane]]:
    fake = type("Fake", (FakeLane,), {"made": []})
    monkeypatch.setattr(proof, "LaneProcess", fake)
    threads = threading.active_count()
    yield fake
    assert all(lane.ended.is_set() for lane in fake.made), "a lane was left running"
    assert threading.active_count() == threads


def prove(techniques: list[Technique], count: int = 2) -> list[Judged]:
    return run_proof(techniques, Path("/nowhere"), lambda _: None, lanes=count)


def test_all_are_tried_once_and_come_in_the_order_of_the_catalogue(lanes: type[FakeLane]) -> None:
    judged = prove(TECHNIQUES)
    assert [one.trial.id for one in judged] == [one.id for one in TECHNIQUES]
    orders = [order.id for lane in lanes.made for order in lane.orders]
    assert sorted(orders) == sorted(one.id for one in TECHNIQUES)


def test_a_relative_folder_for_evidence_is_the_same_for_a_run_that_starts_elsewhere(
    lanes: type[FakeLane], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_proof(TECHNIQUES[:1], Path("evidence"), lambda _: None)
    [order] = lanes.made[0].orders
    assert order.evidence == str(tmp_path / "evidence")


def test_a_lane_that_dies_makes_one_technique_inconclusive_and_is_started_again(
    lanes: type[FakeLane],
) -> None:
    lanes.deadly = frozenset({TECHNIQUES[1].id})
    judged = prove(TECHNIQUES, count=1)
    assert [one.judgement.result for one in judged if one.trial.id == TECHNIQUES[1].id] == [
        Result.INCONCLUSIVE
    ]
    assert "MemoryError" in judged[1].judgement.why
    assert len(lanes.made) == 2
    assert all(one.judgement.why != judged[1].judgement.why for one in judged if one is not judged[1])


def test_a_lane_that_dies_again_ends_the_proof_with_the_technique_s_name(lanes: type[FakeLane]) -> None:
    lanes.deadly = frozenset({TECHNIQUES[1].id, TECHNIQUES[3].id})
    with pytest.raises(HostError, match=TECHNIQUES[3].id):
        prove(TECHNIQUES, count=1)


@pytest.mark.parametrize("kind", [ContainmentError, HostError])
def test_a_lane_that_cannot_start_ends_the_proof(lanes: type[FakeLane], kind: type[Exception]) -> None:
    lanes.cannot_start = kind("not-sealed", "a way out")  # type: ignore[call-arg]
    with pytest.raises(kind, match="a way out"):
        prove(TECHNIQUES)


def test_an_interrupt_ends_the_lanes_in_the_middle_of_their_work(lanes: type[FakeLane]) -> None:
    lanes.hanging = frozenset({TECHNIQUES[-1].id})

    class Interrupt(BaseException):
        pass

    def interrupt(job: Job, trial: Trial) -> None:
        raise Interrupt

    with pytest.raises(Interrupt):
        run_jobs([Job(one) for one in TECHNIQUES[::-1]], Path("/nowhere"), interrupt, lanes=2)


def test_layers_and_controls_are_passed_on(lanes: type[FakeLane]) -> None:
    noted: list[tuple[str, tuple[str, ...]]] = []
    jobs = [Job(TECHNIQUES[0], ("room",), has_control=False)]
    run_jobs(jobs, Path("/kept"), lambda job, trial: noted.append((trial.id, trial.layers_off)))
    assert noted == [(TECHNIQUES[0].id, ("room",))]
    [order] = lanes.made[0].orders
    assert (order.evidence, order.layers_off, order.has_control) == ("/kept", ("room",), False)


# --- one lane as a process --------------------------------------------------------------------------

READY = "print('{\"ready\":true}', flush=True)\n"


@pytest.fixture
def lane_of() -> Iterator[object]:
    """Makes lanes of a script, and ends them."""
    made: list[LaneProcess] = []

    def make(script: str) -> LaneProcess:
        made.append(LaneProcess([sys.executable, "-c", script]))
        return made[-1]

    yield make
    for lane in made:
        lane.close()
        assert lane._process.poll() is not None


ORDER = Order(id="x", evidence="/nowhere")
ANSWER = 'print(\'{"id": "x", "control": {}, "attempt": {"seconds": 1.5}}\', flush=True)\n'


def test_a_lane_answers_an_order_with_a_trial(lane_of: type[LaneProcess]) -> None:
    lane = lane_of(READY + "input()\n" + ANSWER + "input()")
    lane.start()
    assert lane.perform(ORDER).attempt.seconds == 1.5


@pytest.mark.parametrize(
    ("code", "kind"), [(4, ContainmentError), (3, HostError), (1, HostError), (-9, HostError)]
)
def test_why_a_lane_did_not_start_is_told_in_its_own_words(
    lane_of: type[LaneProcess], code: int, kind: type[Exception]
) -> None:
    end = "os.kill(os.getpid(), 9)" if code < 0 else f"sys.exit({code})"
    lane = lane_of(f"import os, sys\nprint('lane: eth0 is up', file=sys.stderr, flush=True)\n{end}")
    with pytest.raises(kind, match="eth0 is up"):
        lane.start()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("input()\nimport sys\nsys.exit('MemoryError')", "code 1: MemoryError"),
        ("input()\nprint('nonsense', flush=True)\ninput()", "no trial"),
        ("import time\ntime.sleep(60)", "did not answer within 0.3 s"),
    ],
)
def test_a_lane_that_dies_hangs_or_talks_nonsense_has_ended(
    lane_of: type[LaneProcess], script: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_process, "TRIAL_LIMIT_S", 0.3)
    lane = lane_of(READY + script)
    lane.start()
    with pytest.raises(LaneEnded, match=problem):
        lane.perform(ORDER)


# --- who takes which ---------------------------------------------------------------------------------


def test_browsers_come_first_and_not_to_the_lanes_beyond_the_processors() -> None:
    browser = [one for one in load_catalogue() if one.is_browser][:2]
    waiting = proof._Waiting([Job(one) for one in (*TECHNIQUES[:2], *browser)])
    assert len(waiting) == 4
    taken = [waiting.take(may_browse) for may_browse in (False, True, True, True, True)]
    ids = [job.technique.id if job else None for job in taken]
    assert ids == [TECHNIQUES[0].id, browser[0].id, browser[1].id, TECHNIQUES[1].id, None]
    only_browsers = proof._Waiting([Job(browser[0])])
    assert only_browsers.take(may_browse=False) is None
    only_browsers.clear()
    assert only_browsers.take(may_browse=True) is None
