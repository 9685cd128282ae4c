"""A proof: the catalogue tried in lanes, judged, in order.

This process stays where it was called and attacks nothing. Each lane is a process in a range
of its own (`lane.py`), with as many lanes as there are processors; they share no network, so
what they try at the same time cannot be confused.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from stockade.errors import ContainmentError, HostError
from stockade.prove.judge import judge
from stockade.prove.lane import Order
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged, Trial, Try

Tell = Callable[[Judged], None]


class LaneProcess:
    """One lane as a child process; `perform` blocks until the trial is there."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "stockade.prove.range", "--"]
        command += [sys.executable, "-m", "stockade.prove.lane"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def perform(self, order: Order) -> Trial:
        """Have one order done.

        Raises:
            HostError: The lane ended; what it said stands on standard error.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            if code == ContainmentError.exit_code:
                raise ContainmentError(
                    "not-sealed", "a lane is not sealed off the network; it says how above"
                )
            raise HostError(
                "lane-ended", f"a lane of the range ended with code {code} while trying {order.id}"
            )
        return msgspec.json.decode(line, type=Trial)

    def close(self) -> None:
        """End it; the range ends with it."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_proof(
    techniques: Iterable[Technique],
    evidence: Path,
    tell: Tell,
    *,
    layers_off: tuple[str, ...] = (),
    controls: dict[str, Try] | None = None,
    lanes: int | None = None,
) -> list[Judged]:
    """Try all techniques and judge them; the result is in the order of the catalogue.

    Args:
        evidence: Folder for ledgers and screenshots.
        tell: Called after each, in the order in which they end.
        controls: Those of an earlier proof, by technique, instead of trying them again (ablation).

    Raises:
        HostError: This host cannot make the range.
        ContainmentError: A lane found a way out of its network; nothing was tried there.
    """
    chosen = list(techniques)
    # The long ones first, so that no lane ends with one of them while the others are idle.
    waiting: queue.SimpleQueue[Technique] = queue.SimpleQueue()
    for technique in sorted(chosen, key=lambda one: not one.is_browser):
        waiting.put(technique)
    judged: dict[str, Judged] = {}
    failures: list[BaseException] = []
    lock = threading.Lock()

    def work() -> None:
        lane = None
        try:
            lane = LaneProcess()
            while not failures:
                try:
                    technique = waiting.get_nowait()
                except queue.Empty:
                    return
                known = None if controls is None else controls.get(technique.id)
                order = Order(
                    id=technique.id, evidence=str(evidence), layers_off=layers_off, has_control=known is None
                )
                trial = lane.perform(order)
                if known is not None:
                    trial = msgspec.structs.replace(trial, control=known)
                one = Judged(trial=trial, judgement=judge(technique, trial))
                with lock:
                    judged[technique.id] = one
                    tell(one)
        except BaseException as problem:  # noqa: BLE001  # handed to the caller's thread, which raises it
            failures.append(problem)
        finally:
            if lane is not None:
                lane.close()

    count = lanes or min(os.cpu_count() or 1, len(chosen)) or 1
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [judged[technique.id] for technique in chosen]
