"""The lab's API on a real server: what it tells and when, and that nothing is scored twice.

Points are those of the fixed rules: decision 50, control 30, risk 20, nine events.
"""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_server import Caller, LabServer, lab_server

from stockade.lab.pack.pack import shipped_bank
from stockade.lab.pack.scenario import Scenario

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

BANK = shipped_bank().scenarios


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with lab_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


_people = iter(range(1000))


@pytest.fixture
def player(server: LabServer) -> Caller:
    """A browser with a learner of its own."""
    caller = Caller(server)
    caller.post("/api/learners", {"name": f"player {next(_people)}"})
    return caller


def find(event: dict[str, Any]) -> Scenario:
    """The row of the bank that an event shows."""
    (found,) = [one for one in BANK if _shown(one) == {name: event[name] for name in _shown(one)}]
    return found


def _shown(row: Scenario) -> dict[str, Any]:
    return {
        "attempt": row.attempt,
        "phase": str(row.phase),
        "identity": str(row.identity),
        "entry": str(row.entry),
        "answers": list(map(str, row.answers)),
        "came_from": row.came_from,
        "sni": row.sni,
        "stated_reason": row.stated_reason,
    }


def current(round_: dict[str, Any]) -> dict[str, Any]:
    (event,) = [one for one in round_["events"] if one["index"] == round_["current"]]
    return event


def right(event: dict[str, Any]) -> dict[str, Any]:
    key = find(event).key
    return {
        "index": event["index"],
        "decision": key.verdict.word,
        "risk": str(key.risk),
        "control": str(key.control),
    }


def wrong(event: dict[str, Any]) -> dict[str, Any]:
    other = "allow" if find(event).key.verdict.word == "deny" else "deny"
    return {**right(event), "decision": other}


def play_to_the_end(player: Caller, number: str, answer: Any = right) -> dict[str, Any]:
    while (round_ := player.get(f"/api/rounds/{number}"))["status"] == "open":
        player.post(f"/api/rounds/{number}/answers", answer(current(round_)))
    return round_


# --- what is told, and when ------------------------------------------------------------------


def test_the_state_tells_what_there_is_to_play(player: Caller) -> None:
    state = player.get("/api/state")
    assert state["bank"]["count"] == len(BANK)
    assert [(one["tier"], one["clock_s"], one["noise"]) for one in state["tiers"]] == [
        (1, None, 0),
        (2, 90, 3),
        (3, 60, 6),
        (4, 40, 10),
    ]
    words = {name: len(group) for name, group in state["words"].items()}
    assert words == {"decisions": 3, "risks": 7, "controls": 24, "classes": 19}
    assert state["learner"]["name"].startswith("player")
    assert (state["open_round"], state["settings"]) == (
        None,
        {"clock": "on", "theme": "system", "shortcuts": "on"},
    )
    assert state["live"]["state"] in ("starting", "ready", "unavailable")


def test_the_card_is_the_banks_policy(player: Caller) -> None:
    card = player.get("/api/card")
    assert card["text"] == (shipped_bank().folder / "bank-policy.yaml").read_text()
    assert card["lines"][0] == card["text"].splitlines()[0]


def test_an_event_tells_nothing_of_the_bank_before_its_answer_and_all_after(player: Caller) -> None:
    round_ = player.post("/api/rounds", {"tier": 3, "seed": "api"})
    event = current(round_)
    row = find(event)
    told = repr(round_)
    for secret in (row.id, row.event, row.technique, row.cue, row.why, row.source):
        assert secret == "none" or secret not in told
    assert {"scenario", "id", "key", "near", "live", "class"}.isdisjoint(event)
    said = player.post(f"/api/rounds/{round_['id']}/answers", right(event))
    feedback = said["feedback"]
    assert feedback["scenario"] == row.id
    assert (feedback["cue"], feedback["why"], feedback["source"]) == (row.cue, row.why, row.source)
    assert feedback["points"]["decision"] == 50
    assert feedback["points"]["control"] == 30
    assert feedback["points"]["risk"] == 20


def test_the_same_seed_and_tier_are_the_same_round(server: LabServer) -> None:
    """On any machine, for any learner: what two people play can be compared."""
    events = []
    for _ in range(2):
        player = Caller(server)
        player.post("/api/learners", {"name": f"player {next(_people)}"})
        number = player.post("/api/rounds", {"tier": 2, "seed": "class-of-2026"})["id"]
        done = play_to_the_end(player, number)
        events.append([one["attempt"] for one in done["events"]])
    assert events[0] == events[1]
    assert len(events[0]) == 9


def test_a_perfect_round_is_900_points_and_grade_s_with_a_debrief_result_and_card(player: Caller) -> None:
    number = player.post("/api/rounds", {"tier": 1})["id"]
    play_to_the_end(player, number)
    debrief = player.get(f"/api/rounds/{number}/debrief")
    assert (debrief["points"], debrief["percent"], debrief["grade"]) == (900, 100.0, "S")
    assert (debrief["leaks"], debrief["blocks"], debrief["missed"]) == ([], [], [])
    assert len(debrief["questions"]) == 8
    result = player.ask("GET", f"/api/rounds/{number}/result")
    assert result.headers["content-disposition"] == f'attachment; filename="stockade-lab-{number}.json"'
    assert result.json()["payloadType"] == "application/vnd.in-toto+json"
    card = player.ask("GET", f"/api/rounds/{number}/card.svg")
    assert card.headers["content-type"].startswith("image/svg+xml")
    assert player.get("/api/state")["progress"]["best"] == {"1": "S"}


def test_an_open_round_has_no_debrief_and_no_result(player: Caller) -> None:
    number = player.post("/api/rounds", {"tier": 1})["id"]
    for path in ("debrief", "result", "card.svg"):
        assert player.ask("GET", f"/api/rounds/{number}/{path}").status_code == 409
    player.post(f"/api/rounds/{number}/leave")
    assert player.get(f"/api/rounds/{number}")["status"] == "broken-off"
    assert player.get("/api/state")["open_round"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/api/rounds", {"tier": 5}, 400, "no-such-tier"),
        ("/api/rounds", {"tier": "1"}, 422, "bad-request"),
        ("/api/rounds", {}, 422, "bad-request"),
        ("/api/rounds", {"tier": 1, "odd": 1}, 422, "bad-request"),
        ("/api/drills", {"kind": "odd"}, 400, None),
        ("/api/learners", {"name": " "}, 400, "bad-name"),
        ("/api/rounds/0/answers", {"index": 0, "decision": "deny", "risk": "ssrf", "control": ""}, 400, None),
        ("/api/rounds/0000000000000000/show", {"index": 0}, 404, "no-such-round"),
        ("/api/progress/reset", {"confirm": "yes"}, 400, None),
        ("/api/live", {}, 404, "no-such-scenario"),
        ("/api/live", {"scenario": "E000"}, 404, "no-such-scenario"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_with_code_and_line(
    player: Caller, path: str, body: dict[str, Any], status: int, code: str | None
) -> None:
    said = player.post(path, body, status)
    assert set(said) == {"error", "message", "hint"}
    assert code is None or said["error"] == code
    assert said["message"]


# --- nothing is scored twice -----------------------------------------------------------------


def test_an_answer_counts_once(player: Caller) -> None:
    round_ = player.post("/api/rounds", {"tier": 1})
    event, path = current(round_), f"/api/rounds/{round_['id']}/answers"
    first = player.post(path, wrong(event))
    again = player.post(path, wrong(event))
    assert (first["again"], again["again"]) == (False, True)
    assert again["feedback"] == first["feedback"]
    other = player.post(path, right(event), 409)
    assert other["error"] == "already-answered"
    assert other["feedback"] == first["feedback"]
    assert player.get("/api/state")["progress"]["answered"] == 1


def test_two_tabs_that_answer_at_the_same_time_score_once(server: LabServer, player: Caller) -> None:
    round_ = player.post("/api/rounds", {"tier": 1})
    event, path = current(round_), f"/api/rounds/{round_['id']}/answers"
    answers = [right(event), wrong(event)] * 8
    said: list[tuple[int, dict[str, Any]]] = []
    barrier = threading.Barrier(len(answers))

    def tab(body: dict[str, Any]) -> None:
        barrier.wait()
        answer = player.ask("POST", path, body)
        said.append((answer.status_code, answer.json()))

    tabs = [threading.Thread(target=tab, args=(body,)) for body in answers]
    for one in tabs:
        one.start()
    for one in tabs:
        one.join()
    assert sum(status == 200 and not body["again"] for status, body in said) == 1
    assert sorted({status for status, _ in said}) == [200, 409]
    assert len({repr(body["feedback"]) for _, body in said}) == 1
    state = player.get(f"/api/rounds/{round_['id']}")
    assert state["answered"] == 1
    assert state["points"] == said[0][1]["feedback"]["points"]["total"]


def test_a_hint_is_paid_once_and_its_cost_is_known_before(player: Caller) -> None:
    number = player.post("/api/rounds", {"tier": 1})["id"]
    path = f"/api/rounds/{number}"
    costs = [player.post(f"{path}/hints", {"index": 0})["hint"]["cost"] for _ in range(3)]
    assert costs == [0, 5, 15]
    assert player.post(f"{path}/hints", {"index": 0}, 409)["error"] == "no-hint-left"
    event = current(player.get(path))
    assert [one["cost"] for one in event["hints"]["taken"]] == [0, 5, 15]
    said = player.post(f"{path}/answers", right(event))
    assert said["feedback"]["points"]["total"] == 100 - 20


def test_another_learners_round_does_not_exist(server: LabServer, player: Caller) -> None:
    number = player.post("/api/rounds", {"tier": 1})["id"]
    other = Caller(server)
    other.post("/api/learners", {"name": f"player {next(_people)}"})
    event = current(player.get(f"/api/rounds/{number}"))
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/debrief", None),
        ("GET", "/result", None),
        ("GET", "/card.svg", None),
        ("POST", "/answers", right(event)),
        ("POST", "/hints", {"index": 0}),
        ("POST", "/show", {"index": 0}),
        ("POST", "/leave", {}),
        ("PUT", "/notes", {"key": "what", "text": "x"}),
    ):
        answer = other.ask(method, f"/api/rounds/{number}{path}", body)
        assert (answer.status_code, answer.json()["error"]) == (404, "no-such-round"), path
    live = other.ask("POST", "/api/live", {"round": number, "index": 0})
    assert live.status_code == 404
    assert player.get(f"/api/rounds/{number}")["status"] == "open"
    assert other.get("/api/rounds") == []


# --- live -------------------------------------------------------------------------------------


def test_a_live_try_before_the_call_would_be_the_answer_and_is_refused(player: Caller) -> None:
    round_ = player.post("/api/rounds", {"tier": 1})
    event = current(round_)
    row = find(event)
    by_place = player.post("/api/live", {"round": round_["id"], "index": event["index"]}, 409)
    by_number = player.post("/api/live", {"scenario": row.id}, 409)
    later = player.post("/api/live", {"round": round_["id"], "index": 5}, 409)
    assert {one["error"] for one in (by_place, by_number, later)} == {"not-answered-yet"}
    player.post(f"/api/rounds/{round_['id']}/answers", right(event))
    said = player.post("/api/live", {"round": round_["id"], "index": event["index"]})
    assert said["scenario"] == row.id
    assert said["state"] in ("done", "waits", "unavailable", "failed")


def test_a_round_that_was_left_hides_nothing_any_more(player: Caller) -> None:
    round_ = player.post("/api/rounds", {"tier": 1})
    row = find(current(round_))
    player.post("/api/live", {"scenario": row.id}, 409)
    player.post(f"/api/rounds/{round_['id']}/leave")
    assert player.post("/api/live", {"scenario": row.id})["scenario"] == row.id


def test_what_waits_for_a_control_says_so_at_once(player: Caller) -> None:
    row = next(one for one in BANK if one.live == "content")
    said = player.post("/api/live", {"scenario": row.id})
    assert said["state"] == "waits"
    assert str(row.key.control) in said["why"]
    assert player.get("/api/live")["before"] is None


@pytest.mark.needs("room", "bwrap")
def test_who_waits_for_a_live_try_hears_how_many_stand_before(server: LabServer) -> None:
    players = []
    for _ in range(4):
        players.append(Caller(server))
        players[-1].post("/api/learners", {"name": f"player {next(_people)}"})
    results: list[dict[str, Any]] = []

    def try_it(player: Caller) -> None:
        results.append(player.post("/api/live", {"scenario": "E067"}))

    tries = [threading.Thread(target=try_it, args=(player,)) for player in players]
    for one in tries:
        one.start()
    heard = set()
    while any(one.is_alive() for one in tries):
        heard |= {player.get("/api/live")["before"] for player in players}
    for one in tries:
        one.join()
    assert {0, 1, 2, 3} <= heard
    assert [one["record"]["verdict"] for one in results] == ["deny"] * 4
    assert [one["arrived"] for one in results] == [[]] * 4
    assert players[0].get("/api/live")["before"] is None


# --- what is kept -----------------------------------------------------------------------------


def test_killed_and_started_again_the_round_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGKILL in the middle of a round; same data folder, another port and another token."""
    server = LabServer(tmp_path)
    player = Caller(server)
    player.post("/api/learners", {"name": "Ada"})
    number = player.post("/api/rounds", {"tier": 2})["id"]
    for _ in range(4):
        player.post(f"/api/rounds/{number}/answers", right(current(player.get(f"/api/rounds/{number}"))))
    player.post(f"/api/rounds/{number}/hints", {"index": 4})
    last = current(player.get(f"/api/rounds/{number}"))
    before = player.get(f"/api/rounds/{number}")
    server.process.kill()
    assert server.end()[0] == -signal.SIGKILL

    with lab_server(tmp_path) as server:
        learner = {one.name: one.value for one in player.session.cookies if "learner" in one.name}
        again = Caller(server)
        again.session.cookies.update(learner)
        state = again.get("/api/state")
        assert (state["learner"]["name"], state["open_round"]) == ("Ada", number)
        after = again.get(f"/api/rounds/{number}")
        for one in (before, after):
            one["events"][-1].pop("shown_ms")
        assert after == before
        said = again.post(f"/api/rounds/{number}/answers", right(last))
        assert said["again"] is False
        done = play_to_the_end(again, number)
        assert (done["answered"], done["status"]) == (9, "done")
        assert again.get("/api/state")["progress"]["answered"] == 9


def test_an_open_page_of_an_earlier_start_hears_that_it_has_to_be_opened_again(tmp_path: Path) -> None:
    server = LabServer(tmp_path)
    player = Caller(server)
    server.process.kill()
    server.end()
    with lab_server(tmp_path, port=server.port):
        answer = player.ask("GET", "/api/state")
        assert (answer.status_code, answer.json()["error"]) == (401, "not-signed-in")
        assert "printed" in answer.json()["hint"]


@pytest.mark.parametrize("set_back_ms", [3_600_000, -3_600_000], ids=["set back", "set forward"])
def test_a_clock_that_was_changed_between_two_starts_gives_no_bonus(tmp_path: Path, set_back_ms: int) -> None:
    """The clock itself cannot be set in a test; that the event was shown later or earlier is the same."""
    server = LabServer(tmp_path)
    player = Caller(server)
    number = player.post("/api/rounds", {"tier": 4})["id"]
    player.post(f"/api/rounds/{number}/show", {"index": 0})
    server.end()
    with sqlite3.connect(tmp_path / "progress.db") as database:
        database.execute("UPDATE steps SET shown_wall_ms = shown_wall_ms + ? WHERE place = 0", (set_back_ms,))
    database.close()
    with lab_server(tmp_path) as server:
        player = Caller(server)
        event = current(player.get(f"/api/rounds/{number}"))
        points = player.post(f"/api/rounds/{number}/answers", right(event))["feedback"]["points"]
        assert (points["bonus"], points["total"]) == (0, 100)
        # The next event was shown in this start, and its time counts.
        player.post(f"/api/rounds/{number}/show", {"index": 1})
        event = current(player.get(f"/api/rounds/{number}"))
        assert player.post(f"/api/rounds/{number}/answers", right(event))["feedback"]["points"]["bonus"] > 0


def test_two_servers_on_one_folder_score_once(tmp_path: Path) -> None:
    """Somebody starts the lab twice: both see the same round, and an answer counts once."""
    with lab_server(tmp_path) as one, lab_server(tmp_path) as other:
        here, there = Caller(one), Caller(other)
        round_ = here.post("/api/rounds", {"tier": 1})
        event, path = current(round_), f"/api/rounds/{round_['id']}/answers"
        first = here.post(path, wrong(event))
        second = there.post(path, right(event), 409)
        assert second["feedback"] == first["feedback"]
        assert there.get("/api/state")["progress"]["answered"] == 1


def test_settings_notes_and_gaps_are_kept(player: Caller) -> None:
    set_now = {"clock": "off", "theme": "system", "shortcuts": "on"}
    assert player.put("/api/settings", {"clock": "off"}) == set_now
    set_now |= {"theme": "dark", "shortcuts": "off"}
    assert player.put("/api/settings", {"theme": "dark", "shortcuts": "off"}) == set_now
    for wrong in ({"theme": "pink"}, {"shortcuts": "odd"}, {"clock": "double", "theme": ""}):
        assert player.put("/api/settings", wrong, 400)["error"] == "bad-setting"
    assert player.put("/api/settings", {"clock": "odd"}, 400)["error"] == "bad-setting"
    assert player.get("/api/state")["settings"] == set_now
    number = player.post("/api/rounds", {"tier": 4})["id"]
    assert player.get(f"/api/rounds/{number}")["clock_s"] is None
    player.post(f"/api/rounds/{number}/leave")
    player.put(f"/api/rounds/{number}/notes", {"key": "what", "text": "noted <b>"})
    player.put(f"/api/rounds/{number}/notes", {"key": "odd", "text": "x"}, 404)
    questions = player.get(f"/api/rounds/{number}/debrief")["questions"]
    assert {one["key"]: one["note"] for one in questions}["what"] == "noted <b>"
    gap = player.post("/api/gaps", {"text": "what is DSSE?", "from": number})
    assert player.put(f"/api/gaps/{gap['id']}", {"done": True})["done"] is True
    assert player.get("/api/gaps")["gaps"] == [
        {"id": gap["id"], "text": "what is DSSE?", "from": number, "done": True}
    ]
    assert player.put("/api/gaps/999999", {"done": True}, 404)["error"] == "no-such-gap"


def test_export_holds_everything_and_reset_forgets_it(player: Caller) -> None:
    number = player.post("/api/rounds", {"tier": 1})["id"]
    play_to_the_end(player, number, wrong)
    assert player.get("/api/progress")["history"][0]["grade"] == "D"
    export = player.ask("GET", "/api/progress/export")
    assert "attachment" in export.headers["content-disposition"]
    assert [len(one["answers"]) for one in export.json()["rounds"]] == [9]
    player.post("/api/progress/reset", {"confirm": "reset"})
    assert player.get("/api/state")["progress"] == {"rounds": 0, "answered": 0, "best": {}}
    assert player.ask("GET", f"/api/rounds/{number}").status_code == 404


def test_an_export_tells_nothing_of_events_that_are_still_to_be_called(player: Caller) -> None:
    round_ = player.post("/api/rounds", {"tier": 1})
    event = current(round_)
    row = find(event)
    assert row.id not in player.ask("GET", "/api/progress/export").text
    player.post(f"/api/rounds/{round_['id']}/answers", right(event))
    exported = player.get("/api/progress/export")["rounds"][0]
    assert [one["scenario"] for one in exported["steps"]] == [row.id] + [None] * 8


def test_what_was_missed_comes_back_in_a_drill(player: Caller) -> None:
    number = player.post("/api/rounds", {"tier": 1})["id"]
    done = play_to_the_end(player, number, wrong)
    missed = {find(one).id for one in done["events"]}
    drill = player.post("/api/drills", {"kind": "missed"})
    assert (drill["kind"], drill["clock_s"], drill["tier"]) == ("drill", None, None)
    done = play_to_the_end(player, drill["id"])
    assert {find(one).id for one in done["events"]} == missed
    assert done["grade"] is None


# --- policy and half day ----------------------------------------------------------------------


def test_a_policy_is_linted_replayed_and_kept(player: Caller) -> None:
    start = player.get("/api/policy/start")
    assert player.get("/api/policy") == {"text": None}
    assert player.post("/api/policy/lint", {"text": start["text"]})["ok"] is True
    bad = player.post("/api/policy/lint", {"text": "version: 1\nrules:\n  - alow: docs.test\n"})
    assert bad["ok"] is False
    assert {(one["line"], one["severity"]) for one in bad["findings"]} == {(3, "error")}
    nothing = player.post("/api/policy/replay", {"text": start["text"]})
    assert (nothing["leaks"], nothing["grade_word"]) == ([], "D")
    assert nothing["breakages"]
    assert player.post("/api/policy/replay", {"text": "version: 7"}, 400)["message"]
    card = player.get("/api/card")["text"]
    whole = player.post("/api/policy/replay", {"text": card})
    assert (whole["leaks"], whole["breakages"], whole["grade_word"]) == ([], [], "S")
    assert whole["right"] == whole["total"]
    player.put("/api/policy", {"text": card})
    assert player.get("/api/policy") == {"text": card}


def test_the_half_day_ends_with_a_signed_record(player: Caller, tmp_path: Path) -> None:
    """The folder is evidence as `stockade prove --out` leaves it, with attacks that are made up."""
    from doubles.made_up_proof import seal_proof

    workshop = player.get("/api/workshop")
    assert workshop["missing"][:2] == ["policy", "evidence"]
    assert player.ask("GET", "/api/workshop/record").status_code == 400
    assert (
        player.post("/api/workshop/verify", {"path": str(tmp_path / "none")}, 400)["error"] == "no-evidence"
    )
    assert player.post("/api/workshop/verify", {"path": ""}, 400)["error"] == "no-evidence"
    assert player.post("/api/workshop/verify", {"path": "~nobody-here/x"}, 400)["error"] == "no-evidence"
    assert player.post("/api/workshop/verify", {"path": "a\0b"}, 400)["error"] == "no-evidence"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        folder = seal_proof(tmp_path / "evidence").page.parent
    found = player.post("/api/workshop/verify", {"path": str(folder)})
    assert (found["verifies"], found["exit_code"]) == (True, 0)
    player.put("/api/policy", {"text": player.get("/api/card")["text"]})
    notes = {one["key"]: f"about {one['text']}" for one in workshop["questions"]}
    player.put("/api/workshop", {"ticks": {"read": True, "verify": True}, "notes": notes})
    assert player.get("/api/workshop")["missing"] == []
    record = player.ask("GET", "/api/workshop/record")
    assert record.headers["content-disposition"] == 'attachment; filename="my-half-day.json"'

    from stockade.lab.workshop_record import replay_on
    from stockade.lab.workshop_verify import verify_workshop_record

    bank = shipped_bank()
    verified = verify_workshop_record(record.content, replay=replay_on(bank), bank_digest=bank.digest)
    assert (verified.said.policy.replay.leaks, verified.said.policy.replay.breakages) == (0, 0)
    assert verified.said.done == ["read", "verify"]
    assert verified.said.answers == notes
    assert verified.said.evidence.statement_sha256 == found["statement_sha256"]

    (folder / "policy.yaml").write_text("changed")
    changed = player.post("/api/workshop/verify", {"path": str(folder)})
    assert (changed["verifies"], changed["exit_code"]) == (False, 5)
    assert player.ask("GET", "/api/workshop/record").status_code == 422


def test_ticks_of_two_tabs_do_not_undo_each_other(player: Caller) -> None:
    steps = [one["key"] for one in player.get("/api/workshop")["steps"]]
    tabs = [
        threading.Thread(target=player.put, args=("/api/workshop", {"ticks": {key: True}})) for key in steps
    ]
    for one in tabs:
        one.start()
    for one in tabs:
        one.join()
    assert all(one["is_done"] for one in player.get("/api/workshop")["steps"])
    assert player.put("/api/workshop", {"ticks": {"odd": True}}, 400)["error"] == "unknown-step"


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 30, "9" * 5000])
def test_a_line_that_the_gap_log_has_not_is_not_found(player: Caller, number: str) -> None:
    assert player.put(f"/api/gaps/{number}", {"done": True}, status=404)["error"] == "no-such-gap"
