"""What is known about a learner: what is due, what is missed most, how well the two kinds are told apart."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import Struct

from stockade.lab.game.book import Book
from stockade.lab.game.debrief import Overall
from stockade.lab.game.moment import Moment
from stockade.lab.game.present import tell_time
from stockade.lab.game.score import Right
from stockade.lab.game.sensitivity import Sensitivity, measure
from stockade.lab.progress.database import Database
from stockade.lab.progress.schedule import plan, rate
from stockade.lab.progress.tell import RoundLine, list_rounds

_MOST_MISSED = 10
_GRADES = "SABCD"


class Known(Struct, frozen=True):
    """Scenarios by number: due (the longest first), missed the last time (the latest first), ever seen."""

    due: tuple[str, ...]
    missed: tuple[str, ...]
    seen: tuple[str, ...]


class CardShown(Struct, frozen=True):
    """An event on the schedule; its words are shown, since it was answered before."""

    scenario: str
    attempt: str
    due_at: str
    is_due: bool
    seen: int
    missed: int


class MissedShown(Struct, frozen=True):
    """An event that is missed often, and its cue."""

    scenario: str
    attempt: str
    seen: int
    missed: int
    cue: str


class RiskSensitivity(Struct, frozen=True):
    """Sensitivity for the denied events of one risk, against all legitimate ones."""

    risk: str
    sensitivity: Sensitivity


class Tally(Struct, frozen=True):
    """The short form for the start page."""

    rounds: int
    answered: int
    best: dict[str, str]


class Progress(Struct, frozen=True):
    """The long form."""

    cards: tuple[CardShown, ...]
    sensitivity: Sensitivity
    per_risk: tuple[RiskSensitivity, ...]
    most_missed: tuple[MissedShown, ...]
    history: tuple[RoundLine, ...]
    due: int


class Review:
    """The schedule and the numbers of all learners."""

    def __init__(self, database: Database, book: Book) -> None:
        self._database = database
        self._book = book

    def note(
        self, change: sqlite3.Connection, learner: str, scenario: str, right: Right, hints: int, now: Moment
    ) -> None:
        """Put an answer into the schedule, inside the transaction that keeps it."""
        row = change.execute(
            "SELECT card, seen, missed FROM cards WHERE learner = ? AND scenario = ?", (learner, scenario)
        ).fetchone()
        planned = plan(row["card"] if row else None, rate(right, hints), now.wall_ms)
        seen, missed = (row["seen"], row["missed"]) if row else (0, 0)
        change.execute(
            "INSERT OR REPLACE INTO cards VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                learner, scenario, planned.card, planned.due_ms, seen + 1, missed + (not right.is_all),
                int(right.is_all), now.wall_ms,
            ),
        )  # fmt: skip

    def known(self, learner: str, now: Moment) -> Known:
        rows = [row for row in self._cards(learner) if self._book.knows(row["scenario"])]
        missed = sorted(
            (row for row in rows if not row["was_right"]), key=lambda row: (-row["at_ms"], row["scenario"])
        )
        return Known(
            due=tuple(row["scenario"] for row in rows if row["due_ms"] <= now.wall_ms),
            missed=tuple(row["scenario"] for row in missed),
            seen=tuple(row["scenario"] for row in rows),
        )

    def due_count(self, learner: str, now: Moment) -> int:
        return len(self.known(learner, now).due)

    def tally(self, learner: str) -> Tally:
        """How many rounds, how many answers, the best grade by tier."""
        rounds = list_rounds(self._database, learner)
        best: dict[str, str] = {}
        for one in rounds:
            if one.grade is not None and one.tier is not None:
                tier = str(one.tier)
                best[tier] = min(best.get(tier, one.grade), one.grade, key=_GRADES.index)
        done = sum(one.kind == "round" and one.status == "done" for one in rounds)
        return Tally(done, len(self._answers(learner)), dict(sorted(best.items())))

    def overall(self, learner: str) -> Overall:
        """All that the learner ever answered, in rounds and drills."""
        answers = self._answers(learner)
        return Overall(
            rounds=self.tally(learner).rounds,
            answered=len(answers),
            right=sum(row["is_right"] for row in answers),
            sensitivity=measure(map(_pair, answers)),
        )

    def progress(self, learner: str, now: Moment) -> Progress:
        cards = self._cards(learner)
        answers = self._answers(learner)
        legitimate = [_pair(row) for row in answers if row["key_decision"] != "deny"]
        risks = sorted({row["key_risk"] for row in answers if row["key_decision"] == "deny"})
        per_risk = tuple(
            RiskSensitivity(
                risk,
                measure(
                    [
                        *(
                            _pair(row)
                            for row in answers
                            if row["key_decision"] == "deny" and row["key_risk"] == risk
                        ),
                        *legitimate,
                    ]
                ),
            )
            for risk in risks
        )
        return Progress(
            cards=tuple(self._show_card(row, now) for row in cards if self._book.knows(row["scenario"])),
            sensitivity=measure(map(_pair, answers)),
            per_risk=per_risk,
            most_missed=self._most_missed(cards),
            history=tuple(list_rounds(self._database, learner)),
            due=self.due_count(learner, now),
        )

    def _show_card(self, row: Any, now: Moment) -> CardShown:
        return CardShown(
            row["scenario"],
            self._book.find(row["scenario"]).attempt,
            tell_time(row["due_ms"]),
            row["due_ms"] <= now.wall_ms,
            row["seen"],
            row["missed"],
        )

    def _most_missed(self, cards: list[sqlite3.Row]) -> tuple[MissedShown, ...]:
        missed = [row for row in cards if row["missed"] and self._book.knows(row["scenario"])]
        missed.sort(key=lambda row: (-row["missed"], row["seen"], row["scenario"]))
        found = []
        for row in missed[:_MOST_MISSED]:
            scenario = self._book.find(row["scenario"])
            found.append(MissedShown(scenario.id, scenario.attempt, row["seen"], row["missed"], scenario.cue))
        return tuple(found)

    def _cards(self, learner: str) -> list[sqlite3.Row]:
        return self._database.rows("SELECT * FROM cards WHERE learner = ? ORDER BY due_ms, scenario", learner)

    def _answers(self, learner: str) -> list[sqlite3.Row]:
        return self._database.rows(
            "SELECT a.* FROM answers a JOIN rounds r ON r.id = a.round WHERE r.learner = ? "
            "ORDER BY r.started_ms, r.rowid, a.place",
            learner,
        )


def _pair(row: Any) -> tuple[bool, bool]:
    """Had to be denied, was denied."""
    return row["key_decision"] == "deny", row["decision"] == "deny"
