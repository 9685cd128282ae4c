"""Rounds as they are kept: each step of the game is one transaction of load, play, write."""

from __future__ import annotations

import secrets
import sqlite3
from typing import Any

from msgspec import Struct

from stockade.errors import UserError
from stockade.lab.game.book import Book
from stockade.lab.game.debrief import Debrief, debrief
from stockade.lab.game.draw import draw_round, parse_seed
from stockade.lab.game.drills import compose_drill
from stockade.lab.game.feedback import present_feedback
from stockade.lab.game.hints import Hint, tell_hint
from stockade.lab.game.moment import Moment
from stockade.lab.game.present import present_event, present_hints, present_round, present_summary
from stockade.lab.game.rounds import (
    Conflict,
    Given,
    Kind,
    RoundState,
    Step,
    begin,
    give_answer,
    leave,
    show,
    take_hint,
)
from stockade.lab.game.score import Answer, judge, parse_answer
from stockade.lab.game.shown import Event, Feedback, Round, Summary
from stockade.lab.game.standing import add_up
from stockade.lab.progress.database import Database
from stockade.lab.progress.desk import Desk
from stockade.lab.progress.people import Missing, People
from stockade.lab.progress.review import Review
from stockade.lab.progress.tell import RoundLine, list_rounds
from stockade.lab.progress.unanswered import list_unanswered

# The same for every round that is not there: whether another learner has it is nobody's business.
_SWITCHED = "did another tab of this browser enter another learner? Then enter yours again"


class Answered(Struct, frozen=True):
    """What follows an answer; `again` tells that this answer had been given before."""

    feedback: Feedback
    round: Summary
    again: bool


class AlreadyAnswered(Conflict):
    """Another answer to an event that has one.

    Attributes:
        feedback: That of the first answer, which counts.
    """

    def __init__(self, first: Conflict, feedback: Feedback) -> None:
        super().__init__(first.code, first.message, first.hint)
        self.feedback = feedback


class HintTaken(Struct, frozen=True):
    """A hint that was bought, and what is left."""

    hint: Hint
    left: int
    next_cost: int | None


class Play:
    """The rounds and drills of all learners."""

    def __init__(self, database: Database, book: Book, people: People, desk: Desk, review: Review) -> None:
        self._database = database
        self.book = book
        self._people = people
        self._desk = desk
        self._review = review

    # begin

    def begin_round(self, learner: str, tier: int, seed: str | None, now: Moment) -> Round:
        """A new round; an open one of the learner is broken off. Without a seed one is thrown."""
        chosen = parse_seed(seed) if seed else secrets.token_hex(4)
        try:
            drawn = draw_round(self.book.pack, chosen, tier)
        except UserError as error:
            if error.code == "pack-too-small":
                raise UserError(error.code, error.message, "a drill takes any number of events") from error
            raise
        return self._begin(learner, "round", tier, chosen, drawn, now)

    def begin_drill(self, learner: str, kind: str, now: Moment) -> Round:
        """A new drill; an open round of the learner stays open, an open drill is broken off."""
        seed = secrets.token_hex(4)
        known = self._review.known(learner, now)
        waiting = list_unanswered(self._database, learner)
        scenarios = compose_drill(
            self.book, kind, seed, due=known.due, missed=known.missed, seen=known.seen, waiting=waiting
        )
        return self._begin(learner, "drill", None, seed, scenarios, now)

    def _begin(
        self, learner: str, kind: Kind, tier: int | None, seed: str, scenarios: tuple[str, ...], now: Moment
    ) -> Round:
        self._people.find(learner)
        clock = self._people.clock(learner)
        state = begin(secrets.token_hex(8), kind, tier, seed, self.book.pack.digest, clock, scenarios, now)
        with self._database.change() as change:
            open_ones = change.execute(
                "SELECT id FROM rounds WHERE learner = ? AND kind = ? AND ended_ms IS NULL", (learner, kind)
            ).fetchall()
            for row in open_ones:
                self._break_off(change, learner, row["id"], now)
            change.execute(
                "INSERT INTO rounds (id, learner, kind, tier, seed, bank, clock, started_ms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (state.id, learner, kind, tier, seed, state.bank, clock, state.started_ms),
            )
            change.executemany(
                "INSERT INTO steps (round, place, scenario) VALUES (?, ?, ?)",
                [(state.id, place, step.scenario) for place, step in enumerate(state.steps)],
            )
        return present_round(self.book, state, now)

    # look

    def rounds(self, learner: str) -> list[RoundLine]:
        """All rounds and drills of a learner, the latest first."""
        return list_rounds(self._database, learner)

    def open_round(self, learner: str) -> str | None:
        """The learner's open round or drill that can be gone on with, the latest if there are two."""
        for row in self._database.rows(
            "SELECT id FROM rounds WHERE learner = ? AND ended_ms IS NULL AND bank = ? "
            "ORDER BY started_ms DESC, rowid DESC",
            learner,
            self.book.pack.digest,
        ):
            return str(row["id"])
        return None

    def round(self, learner: str, number: str, now: Moment) -> Round:
        return present_round(self.book, self._load(learner, number), now)

    def state(self, learner: str, number: str) -> RoundState:
        """The round as the game keeps it, for results."""
        return self._load(learner, number)

    # play

    def show(self, learner: str, number: str, index: int, now: Moment) -> Event:
        """Note that an event is on the screen; only the first time counts."""
        with self._database.change() as change:
            before = self._load(learner, number)
            state = show(before, index, now)
            shown = state.steps[index].shown
            if state is not before and shown is not None:
                change.execute(
                    "UPDATE steps SET shown_wall_ms = ?, shown_mono_ms = ?, shown_start = ? "
                    "WHERE round = ? AND place = ?",
                    (shown.wall_ms, shown.mono_ms, shown.start, number, index),
                )
        return present_event(self.book, state, index, now)

    def hint(self, learner: str, number: str, index: int) -> HintTaken:
        """Buy the next hint of the current event."""
        with self._database.change() as change:
            state, bought = take_hint(self._load(learner, number), index)
            change.execute(
                "UPDATE steps SET hints = ? WHERE round = ? AND place = ?", (bought, number, index)
            )
        row = self.book.find(state.steps[index].scenario)
        left = present_hints(self.book, row, bought)
        return HintTaken(tell_hint(self.book, row, bought), left.left, left.next_cost)

    def answer(
        self, learner: str, number: str, index: int, words: tuple[str, str, str], now: Moment
    ) -> Answered:
        """Take an answer (decision, risk, control), once.

        Raises:
            AlreadyAnswered: The event has another answer; its feedback comes with it.
        """
        answer = parse_answer(*words)
        with self._database.change() as change:
            before = self._load(learner, number)
            try:
                state, again = give_answer(before, index, answer, now)
            except Conflict as first:
                if first.code == "already-answered":
                    raise AlreadyAnswered(first, present_feedback(self.book, before, index)) from first
                raise
            if not again:
                self._write_answer(change, state, index, now)
                step = state.steps[index]
                right = judge(self.book.find(step.scenario).key, answer)
                self._review.note(change, learner, step.scenario, right, step.hints, now)
        return Answered(present_feedback(self.book, state, index), present_summary(self.book, state), again)

    def _write_answer(self, change: sqlite3.Connection, state: RoundState, index: int, now: Moment) -> None:
        step = state.steps[index]
        given, key = step.given, self.book.find(step.scenario).key
        assert given is not None
        answer = given.answer
        change.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                state.id, index, answer.decision.word, str(answer.risk), str(answer.control), given.ms,
                now.wall_ms, step.scenario, key.verdict.word, str(key.risk), str(key.control), str(key.place),
                int(judge(key, answer).is_all),
            ),
        )  # fmt: skip
        if state.ended_ms is not None:
            self._close(change, state)

    def leave(self, learner: str, number: str, now: Moment) -> Summary:
        """Break a round off; nothing that was answered is lost."""
        with self._database.change() as change:
            state = leave(self._load(learner, number), now)
            self._close(change, state)
        return present_summary(self.book, state)

    def _break_off(self, change: sqlite3.Connection, learner: str, number: str, now: Moment) -> None:
        """Leave a round for another one; one of other scenarios cannot be counted any more."""
        if self._need(learner, number)["bank"] == self.book.pack.digest:
            self._close(change, leave(self._load(learner, number), now))
        else:
            change.execute(
                "UPDATE rounds SET ended_ms = max(started_ms, ?), is_left = 1 WHERE id = ?",
                (now.wall_ms, number),
            )

    def _close(self, change: sqlite3.Connection, state: RoundState) -> None:
        standing = add_up(self.book, state)
        change.execute(
            "UPDATE rounds SET ended_ms = ?, is_left = ?, points = ?, percent = ?, grade = ? WHERE id = ?",
            (
                state.ended_ms, int(state.is_left), standing.points,
                standing.percent if state.status == "done" else None, standing.grade, state.id,
            ),
        )  # fmt: skip

    # afterwards

    def debrief(self, learner: str, number: str) -> Debrief:
        """What a round showed.

        Raises:
            Conflict: It is still open.
        """
        state = self._load(learner, number)
        if state.status == "open":
            raise Conflict("round-open", "the round is not over yet")
        return debrief(
            self.book,
            state,
            notes=self._desk.notes(number),
            gaps=self._desk.gaps(learner),
            overall=self._review.overall(learner),
        )

    def put_note(self, learner: str, number: str, key: str, text: str) -> None:
        """Keep the answer to a review question."""
        self._need(learner, number)
        self._desk.put_note(number, key, text)

    # load

    def _need(self, learner: str, number: str) -> sqlite3.Row:
        rows = self._database.rows("SELECT * FROM rounds WHERE id = ? AND learner = ?", number, learner)
        if not rows:
            raise Missing("no-such-round", "there is no such round", _SWITCHED)
        return rows[0]

    def _load(self, learner: str, number: str) -> RoundState:
        row = self._need(learner, number)
        steps = self._database.rows(
            "SELECT s.*, a.decision, a.risk, a.control, a.ms FROM steps s "
            "LEFT JOIN answers a USING (round, place) WHERE s.round = ? ORDER BY place",
            number,
        )
        if row["bank"] != self.book.pack.digest:
            raise Conflict(
                "other-bank", "this round was played with another version of the scenarios", "begin a new one"
            )
        return _read_state(row, steps)


def _read_state(row: Any, steps: list[sqlite3.Row]) -> RoundState:
    return RoundState(
        id=row["id"],
        kind=row["kind"],
        tier=row["tier"],
        seed=row["seed"],
        bank=row["bank"],
        clock=row["clock"],
        steps=tuple(map(_read_step, steps)),
        started_ms=row["started_ms"],
        ended_ms=row["ended_ms"],
        is_left=bool(row["is_left"]),
    )


def _read_step(row: sqlite3.Row) -> Step:
    shown = given = None
    if row["shown_start"] is not None:
        shown = Moment(row["shown_wall_ms"], row["shown_mono_ms"], row["shown_start"])
    if row["decision"] is not None:
        answer: Answer = parse_answer(row["decision"], row["risk"], row["control"])
        given = Given(answer, row["ms"])
    return Step(row["scenario"], shown, row["hints"], given)
