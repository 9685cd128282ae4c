"""The lab's server as a class of learners has it: first paint, an answer, "run it", and what it costs.

Run by `main.py` with a folder; prints rows as JSON. The server is the real command, in a process of its
own; learners are threads of this one, each with a connection of its own, and Chromium is the distribution's.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rig import pss_kb, stop

LEARNERS = 30
COMMAND = Path(sys.executable).with_name("stockade")
CALL = {"decision": "deny", "risk": "benign", "control": "default-deny"}
TRIED = ("E001", "E043", "E067", "E087", "E121", "E092")  # a pass, refused names and addresses, a command


class Server:
    """`stockade lab` on any free port."""

    def __init__(self, folder: Path) -> None:
        began = time.perf_counter()
        command = [str(COMMAND), "lab", "--no-open", "--data", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip()
        self.start_ms = (time.perf_counter() - began) * 1e3
        self.origin, _, token = self.address.partition("/?")
        self.host = self.origin.removeprefix("http://")
        self.query = f"/?{token}"

    def memory_mb(self) -> tuple[float, float]:
        """Proportional set size of the server, and of all that it has started."""
        below = descendants(self.process.pid)
        return pss_kb(self.process.pid) / 1024, sum(map(pss_kb, below)) / 1024


class Learner:
    """One browser's connection."""

    def __init__(self, server: Server, name: str) -> None:
        self._connection = http.client.HTTPConnection(server.host, timeout=120)
        self._headers = {"Origin": server.origin, "Content-Type": "application/json"}
        self._connection.request("GET", server.query)
        answer = self._connection.getresponse()
        answer.read()
        self._headers["Cookie"] = str(answer.headers["set-cookie"]).partition(";")[0]
        self._connection.request("POST", "/api/learners", json.dumps({"name": name}), self._headers)
        answer = self._connection.getresponse()
        answer.read()
        self._headers["Cookie"] += "; " + str(answer.headers["set-cookie"]).partition(";")[0]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[float, Any]:
        """Milliseconds until the whole answer is there, and the answer."""
        began = time.perf_counter()
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        data = answer.read()
        taken = (time.perf_counter() - began) * 1e3
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:200]!r}")
        return taken, json.loads(data)

    def play(self, end: float, pause_s: float, answers: list[float], others: list[float]) -> None:
        """Play rounds as the page does: show, answer, look at the result."""
        dice = random.Random(id(self))
        while time.perf_counter() < end:
            taken, round_ = self.ask("POST", "/api/rounds", {"tier": dice.randint(1, 4)})
            others.append(taken)
            for index in range(round_["count"]):
                others.append(self.ask("POST", f"/api/rounds/{round_['id']}/show", {"index": index})[0])
                if pause_s:
                    time.sleep(dice.uniform(0.5, 1.5) * pause_s)
                if time.perf_counter() >= end:
                    return
                call = {"index": index, **CALL}
                answers.append(self.ask("POST", f"/api/rounds/{round_['id']}/answers", call)[0])
                others.append(self.ask("GET", f"/api/rounds/{round_['id']}")[0])


def measure_answers(server: Server, name: str, pause_s: float, seconds: float) -> dict[str, Any]:
    """All learners at the same time, each with a pause before each answer."""
    learners = [Learner(server, f"answers {bool(pause_s)} {number}") for number in range(LEARNERS)]
    answers: list[float] = []
    others: list[float] = []
    began = time.perf_counter()
    in_parallel(lambda one: one.play(began + seconds, pause_s, answers, others), learners)
    elapsed = time.perf_counter() - began
    return {"name": name, **percentiles(answers), "per_s": (len(answers) + len(others)) / elapsed}


def measure_live(server: Server, tries: int) -> list[dict[str, Any]]:
    """Live tries, one after the other; then of all learners at once, who wait for each other."""
    one = Learner(server, "live")
    while one.ask("GET", "/api/state")[1]["live"]["state"] == "starting":
        time.sleep(0.1)
    state = one.ask("GET", "/api/state")[1]["live"]
    if state["state"] != "ready":
        return [{"name": "run it, warm", "missing": state["why"]}]
    alone = []
    for number in range(tries):
        time.sleep(1)  # one reads the result; meanwhile the next sandbox starts
        alone.append(try_one(one, TRIED[number % len(TRIED)]))
    together: list[float] = []
    learners = [Learner(server, f"live {number}") for number in range(LEARNERS)]
    in_parallel(lambda each: together.append(try_one(each, "E067")), learners)
    return [
        {"name": "run it, warm", **percentiles(alone)},
        {"name": f"run it, {LEARNERS} at the same time", **percentiles(together)},
    ]


def try_one(learner: Learner, scenario: str) -> float:
    taken, result = learner.ask("POST", "/api/live", {"scenario": scenario})
    if result["state"] != "done":
        raise RuntimeError(f"{scenario}: {result['state']}: {result['why']}")
    return taken


def measure_paint(server: Server, times: int) -> list[dict[str, Any]]:
    """In Chromium, with nothing cached: the first paint, and when the first button can be pressed."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return [{"name": "first paint", "missing": "no playwright"}]
    paints, usable = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", chromium_sandbox=False, args=["--disable-gpu"]
        )
        for _ in range(times):
            context = browser.new_context()
            page = context.new_page()
            page.goto(server.address, wait_until="commit")
            page.wait_for_selector("main button")
            usable.append(page.evaluate("performance.now()"))
            paints.append(
                page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 1e4")
            )
            context.close()
        browser.close()
    return [
        {"name": "first paint, nothing cached", **percentiles(paints)},
        {"name": "the page can be used", **percentiles(usable)},
    ]


def in_parallel(task: Callable[[Learner], None], learners: list[Learner]) -> None:
    """Do it for each in a thread of its own; the first fault is ours."""
    faults: list[Exception] = []

    def run(one: Learner) -> None:
        try:
            task(one)
        except Exception as fault:  # noqa: BLE001  # told by the main thread
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(one,)) for one in learners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "p50_ms": ordered[len(ordered) // 2],
        "p99_ms": ordered[len(ordered) * 99 // 100],
        "max_ms": ordered[-1],
        "count": len(ordered),
    }


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def main() -> None:
    """Measure everything on one server; the folder is where its data lies."""
    is_quick = bool(os.environ.get("BENCH_QUICK"))
    folder = Path(sys.argv[1]) / "lab"
    server = Server(folder)
    try:
        idle, _ = server.memory_mb()
        rows: list[dict[str, Any]] = [
            {"name": "from the command to its address", "p50_ms": server.start_ms, "mb": idle}
        ]
        rows += measure_paint(server, 5 if is_quick else 15)
        rows += measure_live(server, 6 if is_quick else 18)
        seconds = 5 if is_quick else 20
        rows.append(measure_answers(server, f"answer, {LEARNERS} learners, one a second each", 1, seconds))
        rows.append(measure_answers(server, f"answer, {LEARNERS} learners without a pause", 0, seconds))
        own, below = server.memory_mb()
        rows.append({"name": "memory after that: server", "mb": own})
        rows.append({"name": "memory after that: range and warm sandboxes", "mb": below})
    finally:
        stop(server.process)
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
