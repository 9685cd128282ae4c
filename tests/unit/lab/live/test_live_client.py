"""The bench from outside: a host without a range says so, and nothing that waits is tried."""

from __future__ import annotations

import sys

import pytest
from live_rows import scenario

from stockade.lab.live.client import BenchState, LiveBench
from stockade.lab.live.result import State
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.pack.scenario import Live

# A bench that is ready, answers each first order by dying, and is no range at all.
READY_AND_GONE = (sys.executable, "-c", "print('{}', flush=True); input()")


def bench_of(*command: str) -> LiveBench:
    bench = LiveBench(shipped_bank(), command)
    bench.start()
    return bench


def test_a_host_that_cannot_make_a_range_says_so_and_why() -> None:
    bench = bench_of("/bin/sh", "-c", "echo 'range: no user namespaces here' >&2; exit 3")
    assert bench.wait_until_ready() is BenchState.UNAVAILABLE
    assert "no user namespaces here" in bench.why
    result = bench.try_scenario("E001")
    assert (result.state, result.why) == (State.UNAVAILABLE, bench.why)
    bench.close()


def test_a_row_that_waits_is_not_tried_and_says_for_what() -> None:
    bench = LiveBench(shipped_bank(), ("/bin/false",))  # never started
    result = bench.try_scenario("E007")
    assert result.state is State.WAITS
    assert "operation-scope" in result.why
    assert "bank-policy.yaml:42 limits methods" in result.why
    no = bench.try_scenario(scenario("GET http://x.test/", live=Live.NO))
    assert (no.state, "learners" in no.why) == (State.WAITS, True)
    assert bench.try_scenario("E999").state is State.FAILED


def test_a_bench_that_dies_is_started_again_once_for_a_try() -> None:
    bench = bench_of(*READY_AND_GONE)
    assert bench.wait_until_ready() is BenchState.READY
    result = bench.try_scenario("E001")
    assert (result.state, result.why.startswith("the bench died twice")) == (State.FAILED, True)
    assert bench.state is BenchState.READY  # the third one: the next try has it
    bench.close()


def test_a_closed_bench_is_unavailable() -> None:
    bench = bench_of(*READY_AND_GONE)
    bench.wait_until_ready()
    bench.close()
    assert bench.state is BenchState.UNAVAILABLE
    assert bench.try_scenario("E001").state is State.UNAVAILABLE


@pytest.mark.parametrize("state", list(BenchState))
def test_the_states_are_the_words_of_the_page(state: BenchState) -> None:
    assert state.value in ("starting", "ready", "unavailable")
