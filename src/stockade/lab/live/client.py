"""The bench from outside: a child process in its own range, its state, and one try at a time.

The web server holds one of these. `start` returns at once; what can be said meanwhile stands in `state`
and `why`. A bench that died is started again once for each try: if that dies too, the try says so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from stockade.errors import StockadeError
from stockade.lab.live.result import LiveResult, Order, State, order_for
from stockade.lab.live.waiting import why_it_waits
from stockade.lab.pack.call import Caller
from stockade.lab.pack.pack import Pack
from stockade.lab.pack.scenario import Live, Scenario
from stockade.prove.lane_process import OWN_PYTHON, LaneEnded, LaneProcess
from stockade.vocabulary import Word

# A worker's start, its try and its end at their own limits (worker.py), and some for the world.
TRY_LIMIT_S = 60.0


class BenchState(Word):
    STARTING = "starting"
    READY = "ready"
    UNAVAILABLE = "unavailable"


def bench_command(pack: Pack) -> tuple[str, ...]:
    """The command of a bench in a range of its own; the digest, since the bench reads the pack again."""
    bench = (*OWN_PYTHON, "stockade.lab.live.bench", str(pack.file), pack.digest)
    return (*OWN_PYTHON, "stockade.prove.range", "--", *bench)


class LiveBench:
    """Tries scenarios of one pack for real. Threads may share it; tries wait for each other.

    Attributes:
        why: Why it is unavailable, with what would help; else empty.
    """

    def __init__(self, pack: Pack, command: Sequence[str] | None = None) -> None:
        self._pack = pack
        self._caller = Caller(pack.policy)
        self._command = tuple(command or bench_command(pack))
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._state = BenchState.STARTING
        self.why = ""
        self._process: LaneProcess | None = None
        self._is_closed = False

    @property
    def state(self) -> BenchState:
        return self._state

    def start(self) -> None:
        """Start it in the background."""
        threading.Thread(target=self._start_alone, daemon=True).start()

    def wait_until_ready(self, limit_s: float = 90.0) -> BenchState:
        """Wait until it is ready, or is known not to be."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is not BenchState.STARTING, limit_s)
        return self._state

    def try_scenario(self, scenario: str | Scenario) -> LiveResult:
        """Try a scenario of the pack, by its number, or one of the caller's own.

        Never raises for what the bench or the host could not do: the result says it.
        """
        wanted = self._pack.find(scenario) if isinstance(scenario, str) else scenario
        if wanted is None:
            return LiveResult(
                state=State.FAILED, why=f"the pack has no scenario {scenario}", scenario=str(scenario)
            )
        if wanted.live is not Live.YES:
            return LiveResult(state=State.WAITS, why=why_it_waits(wanted, self._caller), scenario=wanted.id)
        if self.wait_until_ready() is not BenchState.READY:
            return LiveResult(
                state=State.UNAVAILABLE, why=self.why or "it is still starting", scenario=wanted.id
            )
        with self._lock:
            return self._perform(order_for(wanted))

    def close(self) -> None:
        """End it, and with it the range and all that runs there."""
        self._is_closed = True
        self._set(BenchState.UNAVAILABLE, "it was closed")
        process = self._process
        if process is not None:
            process.close()

    def _start_alone(self) -> None:
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._is_closed:
            return
        self._set(BenchState.STARTING, "")
        # A range covers a folder of the machine with its own, but never the one that it is started in.
        process = self._process = LaneProcess(self._command, "bench", self._pack.folder)
        if self._is_closed:  # meanwhile; whoever closed it saw no process
            process.close()
            return
        try:
            process.start()
        except StockadeError as problem:
            process.close()
            self._set(
                BenchState.UNAVAILABLE,
                f"{problem.message} ({problem.hint})" if problem.hint else problem.message,
            )
        else:
            self._set(BenchState.READY, "")

    def _perform(self, order: Order) -> LiveResult:
        for _ in range(2):
            if self._process is None or self._state is not BenchState.READY:
                break
            try:
                line = self._process.exchange(msgspec.json.encode(order), TRY_LIMIT_S)
                return msgspec.json.decode(line, type=LiveResult)
            except (LaneEnded, msgspec.DecodeError) as end:
                self._process.close()
                why = str(end)
                self._start()
        else:
            return LiveResult(state=State.FAILED, why=f"the bench died twice: {why}", scenario=order.id)
        return LiveResult(state=State.UNAVAILABLE, why=self.why or "the bench is closed", scenario=order.id)

    def _set(self, state: BenchState, why: str) -> None:
        with self._changed:
            if self._is_closed:
                state, why = BenchState.UNAVAILABLE, "it was closed"
            self._state, self.why = state, why
            self._changed.notify_all()
