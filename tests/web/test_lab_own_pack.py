"""`stockade lab --pack`: a pack of one's own is what is played, drilled, replayed, tried and verified."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_server import COMMAND, Caller, LabServer, lab_server

from stockade.lab.live.client import BenchState, LiveBench
from stockade.lab.pack.load import load_pack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

CARD = """\
version: 1
rules:
  - allow: docs.lib.test
    class: docs
"""


def write_pack(folder: Path, good: int, bad: int, name: str = "Ours") -> Path:
    """A pack whose ids are those of the shipped bank: `good` events to let through, `bad` to deny."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.yaml").write_text(CARD)
    rows = [
        {"id": f"E{number:03}", "attempt": f"GET https://docs.lib.test/{number}", "verdict": "allow",
         "risk": "benign", "control": "allowlist-exact", "class": "docs", "event": f"Reads page {number}",
         "cue": "the listed host", "why": "The card lists it."}
        for number in range(1, good + 1)
    ] + [
        {"id": f"E{number:03}", "attempt": f"GET https://docs.lib.test.m{number}.example/", "verdict": "deny",
         "risk": "exfiltration", "control": "allowlist-exact", "class": "unknown",
         "event": f"Reads elsewhere {number}", "cue": "the end of the name", "why": "It is not listed.",
         "near": f"E{number - good:03}"}
        for number in range(good + 1, good + bad + 1)
    ]  # fmt: skip
    pack = {"version": 1, "name": name, "policy": "card.yaml", "scenarios": rows}
    path = folder / "pack.yaml"
    path.write_text(json.dumps(pack))  # JSON is YAML
    return path


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=30)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack(tmp_path_factory.mktemp("pack"), 8, 8)


@pytest.fixture(scope="module")
def server(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with lab_server(tmp_path_factory.mktemp("lab"), pack=pack) as server:
        yield server


@pytest.fixture
def caller(server: LabServer, request: pytest.FixtureRequest) -> Caller:
    caller = Caller(server)
    caller.post("/api/learners", {"name": request.node.name[:40]})
    return caller


def call(event: dict[str, Any]) -> dict[str, Any]:
    """The right answer, read off the line."""
    is_listed = event["attempt"].startswith("GET https://docs.lib.test/")
    decision, risk = ("allow", "benign") if is_listed else ("deny", "exfiltration")
    return {"index": event["index"], "decision": decision, "risk": risk, "control": "allowlist-exact"}


def play(caller: Caller, round_: dict[str, Any]) -> str:
    number = str(round_["id"])
    for index in range(round_["count"]):
        events = caller.get(f"/api/rounds/{number}")["events"]
        (event,) = [one for one in events if one["index"] == index]
        assert "docs.lib.test" in event["attempt"]
        said = caller.post(f"/api/rounds/{number}/answers", call(event))
        assert said["feedback"]["points"]["total"] >= 100
    return number


def test_the_page_tells_of_the_given_pack(caller: Caller) -> None:
    state = caller.get("/api/state")
    assert (state["bank"]["name"], state["bank"]["count"]) == ("Ours", 16)
    assert caller.get("/api/card")["text"] == CARD
    assert caller.get("/api/policy/start")
    shown = [one["example"]["attempt"] for one in state["words"]["controls"] if one["example"]]
    assert shown  # the words' own examples, and not what has their number here
    assert not any("lib.test" in attempt for attempt in shown)


def test_a_round_of_it_is_played_and_its_result_verifies_with_the_pack_alone(
    caller: Caller, pack: Path, tmp_path: Path
) -> None:
    number = play(caller, caller.post("/api/rounds", {"tier": 1, "seed": "ours"}))
    assert caller.get(f"/api/rounds/{number}/debrief")["grade"] == "S"
    result = tmp_path / "result.json"
    result.write_bytes(caller.ask("GET", f"/api/rounds/{number}/result").content)
    for words in (
        ("lab", "verify", result, "--pack", pack),
        ("lab", "--pack", pack, "verify", result),
    ):
        done = run(*words)
        assert (done.returncode, "scenarios: Ours" in done.stdout) == (0, True), done.stderr
    done = run("lab", "verify", result)
    assert done.returncode == 5
    assert "other-bank" in done.stderr
    assert "--pack PACK" in done.stderr


def test_drills_and_progress_are_of_the_pack(caller: Caller) -> None:
    drill = caller.post("/api/drills", {"kind": "near-pairs"})
    play(caller, drill)
    progress = caller.get("/api/progress")
    assert len(progress["cards"]) == drill["count"] == 10
    assert all("docs.lib.test" in one["attempt"] for one in progress["cards"])
    assert caller.post("/api/drills", {"kind": "due"})["count"] == 6  # what it never asked


def test_a_policy_is_replayed_on_the_pack(caller: Caller) -> None:
    found = caller.post("/api/policy/replay", {"text": CARD})
    assert (found["total"], found["right"], found["leaks"], found["breakages"]) == (16, 16, [], [])
    assert len(caller.post("/api/policy/replay", {"text": "version: 1\n"})["breakages"]) == 8


@pytest.mark.needs("world", "bwrap", "room")
def test_a_bench_refuses_a_pack_that_was_changed_since_it_was_read(tmp_path: Path) -> None:
    path = write_pack(tmp_path, 1, 1)
    bench = LiveBench(load_pack(path))
    (tmp_path / "card.yaml").write_text(CARD + "# more\n")
    bench.start()
    assert bench.wait_until_ready(50) is BenchState.UNAVAILABLE
    assert "was changed since it was read" in bench.why
    bench.close()


@pytest.mark.needs("world", "bwrap", "room")
def test_run_it_tries_the_event_of_the_pack_under_its_card(caller: Caller) -> None:
    for number, verdict in (("E001", "allow"), ("E009", "deny")):  # E009 of the shipped bank is another
        result = caller.post("/api/live", {"scenario": number})
        assert (result["state"], result["record"]["verdict"]) == ("done", verdict), result
        assert result["record"]["name"].startswith("docs.lib.test")
        assert set(result["agrees"].values()) == {True}


def test_a_pack_too_small_for_a_round_says_so_and_is_drilled(tmp_path: Path) -> None:
    with lab_server(tmp_path / "data", pack=write_pack(tmp_path / "pack", 2, 1)) as server:
        caller = Caller(server)
        refused = caller.post("/api/rounds", {"tier": 1}, 400)
        assert refused["error"] == "pack-too-small"
        assert "drill" in refused["hint"]
        play(caller, caller.post("/api/drills", {"kind": "due"}))
        assert caller.get("/api/state")["progress"]["answered"] == 3


def test_packs_that_number_their_events_alike_keep_their_schedules_apart(tmp_path: Path, pack: Path) -> None:
    data, other = tmp_path / "data", write_pack(tmp_path / "other", 8, 8, "Others")
    with lab_server(data, pack=pack) as server:
        caller = Caller(server)
        play(caller, caller.post("/api/drills", {"kind": "near-pairs"}))
    for known, named in ((0, None), (0, other), (10, pack)):
        with lab_server(data, pack=named) as server:
            assert len(Caller(server).get("/api/progress")["cards"]) == known


def test_an_edited_pack_goes_on_with_its_schedule_and_not_with_its_open_round(tmp_path: Path) -> None:
    path = write_pack(tmp_path / "pack", 8, 8)
    with lab_server(tmp_path / "data", pack=path) as server:
        caller = Caller(server)
        play(caller, caller.post("/api/drills", {"kind": "near-pairs"}))
        number = caller.post("/api/rounds", {"tier": 1})["id"]
    (path.parent / "card.yaml").write_text(CARD + "# more\n")
    with lab_server(tmp_path / "data", pack=path) as server:
        caller = Caller(server)
        assert len(caller.get("/api/progress")["cards"]) == 10
        assert caller.ask("GET", f"/api/rounds/{number}").json()["error"] == "other-bank"
        assert caller.post("/api/rounds", {"tier": 1})["count"] == 9


def test_a_pack_that_does_not_load_is_told_before_anything_is_served(tmp_path: Path) -> None:
    path = write_pack(tmp_path / "pack", 2, 1)
    path.write_text(path.read_text().replace('"allow"', '"alow"'))
    for named, said in ((path, "pack.yaml:1"), (tmp_path / "none.yaml", "pack-file")):
        done = run("lab", "--no-open", "--data", tmp_path / "data", "--pack", named)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
    assert not (tmp_path / "data").exists()


def test_check_takes_the_pack_in_either_place(pack: Path) -> None:
    for words in (("lab", "check", "--no-live", pack), ("lab", "--pack", pack, "check", "--no-live")):
        assert run(*words).stdout.startswith("Ours: 16 of 16 scenarios")
