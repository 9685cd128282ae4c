"""A driver's steps: when it hears that one is on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stockade.errors import UserError
from stockade.run.agent_steps import record_step


class HeldLedger:
    """A ledger whose records become durable when the test says so."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []
        self._waiting: list[Callable[[], None]] = []

    def append(
        self, kind: str, fields: dict[str, Any], on_durable: Callable[[int], None] | None = None
    ) -> int:
        self.records.append((kind, fields))
        seq = len(self.records)
        if on_durable is not None:
            self._waiting.append(lambda: on_durable(seq))
        return seq

    def sync(self) -> None:
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()


class Session:
    def __init__(self) -> None:
        self.ledger = HeldLedger()
        self.steps: set[int] = set()


def ask(session: Session, heard: list[Any], **request: Any) -> None:
    record_step(session, request, heard.append)  # type: ignore[arg-type]


def test_the_driver_hears_of_a_record_when_it_is_durable_and_not_before() -> None:
    session, heard = Session(), []  # type: ignore[var-annotated]
    ask(session, heard, do="step", action="open", number=1, target="http://a.test/")
    assert [kind for kind, _ in session.ledger.records] == ["agent.step"]
    assert heard == []
    session.ledger.sync()
    assert heard == [{"seq": 1}]
    ask(session, heard, do="step-outcome", of=1, came="opened")
    assert len(heard) == 1
    session.ledger.sync()
    assert heard == [{"seq": 1}, {"seq": 2}]


def test_what_is_no_step_leaves_the_driver_without_an_answer_and_the_ledger_as_it_was() -> None:
    session, heard = Session(), []  # type: ignore[var-annotated]
    with pytest.raises(UserError, match="bad-step"):
        ask(session, heard, do="step", action="open", number=1, verdict="allow")
    assert (session.ledger.records, heard) == ([], [])
