"""Steps of an agent outside, as records of the run: asked for over the control socket, durable then."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from stockade.errors import UserError
from stockade.run.control import ask_run

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room")]

DIGEST = "ab" * 32
RUN = "steps"


class Session:
    """A run that waits for its end of input, and its driver."""

    def __init__(self, stockade: Any) -> None:
        self.stockade = stockade
        self.worker: subprocess.Popen[bytes] = stockade.start(["cat"], extra=["-q", "--run-id", RUN])
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        self.worker.stdin.write(b"up\n")
        self.worker.stdin.flush()
        assert self.worker.stdout.readline() == b"up\n"

    def step(self, **fields: Any) -> int:
        return int(ask_run(RUN, {"do": "step", "number": 1, "action": "open", **fields})["seq"])

    def outcome(self, of: int, **fields: Any) -> int:
        return int(ask_run(RUN, {"do": "step-outcome", "of": of, "came": "opened", **fields})["seq"])

    def on_disk(self) -> list[dict[str, Any]]:
        found = self.stockade.read_ledger(self.stockade.ledger)
        return [record for record in found if record["kind"].startswith("agent.")]

    def end(self) -> Any:
        out, err = self.worker.communicate(timeout=15)
        return self.stockade.finish(self.worker, out, err)


@pytest.fixture
def session(stockade: Any) -> Iterator[Session]:
    session = Session(stockade)
    yield session
    if session.worker.poll() is None:
        session.worker.kill()
        session.worker.communicate()


def test_a_step_is_on_disk_when_it_is_answered_and_its_outcome_points_to_it(session: Session) -> None:
    seq = session.step(target="http://a.test/", address="http://b.test/", screenshot=DIGEST)
    [step] = session.on_disk()
    assert (step["kind"], step["seq"], step["action"], step["number"]) == ("agent.step", seq, "open", 1)
    assert (step["target"], step["address"], step["screenshot"]) == (
        "http://a.test/",
        "http://b.test/",
        DIGEST,
    )
    session.outcome(seq, address="http://a.test/")
    _, outcome = session.on_disk()
    assert (outcome["kind"], outcome["of"], outcome["came"]) == ("agent.outcome", seq, "opened")
    run = session.end()
    assert run.records[-1]["kind"] == "run.closed"
    assert run.report["complete"] is True


def test_an_outcome_belongs_to_one_step(session: Session) -> None:
    first = session.step()
    session.outcome(first)
    for of in (first, 0, 999):
        with pytest.raises(UserError, match="bad-step"):
            session.outcome(of)
    assert [record["kind"] for record in session.on_disk()] == ["agent.step", "agent.outcome"]


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "Open!"},
        {"action": ""},
        {"screenshot": "short"},
        {"screenshot": DIGEST.upper()},
        {"number": "one"},
        {"verdict": "allow"},
        {"seq": 0},
        {"argv": "not a list"},
    ],
)
def test_what_is_no_step_is_refused_and_leaves_no_record(session: Session, fields: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="bad-step"):
        session.step(**fields)
    assert session.on_disk() == []


def test_foreign_text_in_a_step_is_cleaned_as_everywhere(session: Session) -> None:
    seq = session.step(
        target="http://user:pass@a.test/?token=abc",
        address="a\nb\x1b[31m\u202e",
        argv=["curl", "-u", "me:secret"],
    )
    session.outcome(seq, came="x" * 5_000)
    step, outcome = session.on_disk()
    text = str(step)
    assert "pass@" not in text
    assert "token=abc" not in text
    assert "me:secret" not in text
    assert step["address"] == "a\\nb\\u{1b}[31m\\u{202e}"
    assert len(outcome["came"]) < 700
